/** Puts the components of an orchestrator together: their source, what this process knows of them, and the public object. */

import { storageComponents } from '../../adapters/components/storage-components.ts';
import type { Emitter } from '../../engine/events/emitter.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import type { ComponentSource, ResolveComponent } from '../../engine/ports/component-source.ts';
import type { Logger } from '../../engine/ports/logger.ts';
import type { Storage } from '../../engine/ports/storage.ts';
import { functionsOf } from '../functions-of.ts';
import type { OrchestratorOptions } from '../options.ts';
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
