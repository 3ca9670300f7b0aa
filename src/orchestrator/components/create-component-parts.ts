/** Puts the components of an orchestrator together: their source, what this process knows of them, and the public object. */

import { storageComponents } from '../../adapters/components/storage-components.ts';
import type { Emitter } from '../../engine/events/rules/emitter.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { ComponentSource, ResolveComponent } from '../../engine/component/component-source.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import { functionsOf } from '../options/functions-of.ts';
import type { OrchestratorOptions } from '../options/options.ts';
import { createComponentCache } from './component-cache.ts';
import { type Components, createComponents } from './components.ts';
import { ensureComponents } from './ensure-components.ts';
import { resolveComponents } from './resolve-component.ts';
import { createRollouts, type Rollouts } from './rollouts.ts';
import { createReadSplitKey } from './split-key.ts';

export interface ComponentParts {
  /** The public `orchestrator.components`. */
  readonly api: Components;
  readonly resolve: ResolveComponent;
  readonly rollouts: Rollouts;
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
  const rollouts = createRollouts({ source, cache, documents: storage.documents, clock, logger, events });
  const calls = createComponents({ source, cache, clock, resolve, functions, templates: options.templates });
  return {
    api: { ...calls, ensure: (given) => ensureComponents(calls, cache.content, given) },
    resolve,
    rollouts,
  };
}
