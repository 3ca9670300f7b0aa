/** Puts the components of an orchestrator together: their source, what this process knows of them, and the public object. */

import { storageComponents } from '../../adapters/components/storage-components.ts';
import { andThen } from '../../engine/base/maybe-promise.ts';
import type {
  ComponentSource,
  ResolveComponent,
  StoredComponent,
} from '../../engine/component/component-source.port.ts';
import type { Emitter } from '../../engine/events/rules/emitter.ts';
import type { Execution } from '../../engine/execution/execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import { functionsOf } from '../options/functions-of.ts';
import type { OrchestratorOptions } from '../options/options.ts';
import { type ComponentCache, createComponentCache } from './component-cache.ts';
import { type Components, createComponents } from './components.ts';
import { ensureComponents } from './ensure-components.ts';
import { resolveComponents } from './resolve-component.ts';
import { createRollouts, type DeployedPlace, type DeploymentStore, type Rollouts } from './rollouts.ts';
import { createReadSplitKey } from './split-key.ts';

export interface ComponentParts {
  /** The public `orchestrator.components`. */
  readonly api: Components;
  readonly resolve: ResolveComponent;
  readonly rollouts: Rollouts;
  /** An execution has ended in this process. */
  ended(execution: Pick<Execution, 'id' | 'ensemble' | 'status' | 'components'>): void;
}

interface ComponentNeeds {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: Emitter;
}

/** The components that a storage keeps. */
export function componentsIn({ documents }: Pick<Storage, 'documents'>, clock: Clock): ComponentSource {
  return storageComponents(documents, clock);
}

export function createComponentParts(
  options: OrchestratorOptions,
  { storage, clock, logger, events }: ComponentNeeds,
): ComponentParts {
  const functions = functionsOf(options);
  const source = options.components ?? componentsIn(storage, clock);
  const cache = createComponentCache(source, { clock, logger });
  const resolve = resolveComponents(cache, createReadSplitKey(functions));
  const store = deploymentsOf(source, cache, { logger, events });
  const rollouts = createRollouts({ store, documents: storage.documents, clock, logger });
  const calls = createComponents({ source, cache, clock, resolve, functions, templates: options.templates });
  return {
    api: { ...calls, ensure: (given) => ensureComponents(calls, cache.content, given) },
    resolve,
    rollouts,
    ended({ id: executionId, ensemble, status, components = [] }) {
      if (status === 'cancelled') return;
      for (const { name, ref: environment, version, split } of components)
        if (split) rollouts.ended({ name, environment }, version, status !== 'completed', { executionId, ensemble });
    },
  };
}

function deploymentsOf(
  source: ComponentSource,
  cache: ComponentCache,
  { logger, events }: Pick<ComponentNeeds, 'logger' | 'events'>,
): DeploymentStore {
  const find = (component: StoredComponent | undefined, { environment }: DeployedPlace) =>
    component?.deployments.find((one) => one.environment === environment);
  return {
    kind: 'component-rollout',
    nameOf: (_deployment, version) => version,
    mayHaveGuard: (place) =>
      andThen(cache.read(place.name), (component) => find(component, place)?.rollout !== undefined),
    read: (place) => andThen(source.read(place.name), (component) => find(component, place)),
    async move({ name, environment }, expected, deployment) {
      const isMoved = await source.move(name, { environment, expected, deployment });
      cache.forget(name);
      return isMoved;
    },
    report({ name, environment }, change, last) {
      const details = { component: name, environment, ...change };
      logger.warn({ ...last, ...details }, 'a component was rolled back by its guard');
      if (events.hasListeners) events.emit('component.rolledBack', { ...last, ...details });
    },
  };
}
