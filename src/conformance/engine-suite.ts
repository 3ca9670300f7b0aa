/** The conformance suite of the engine: the same ensembles, crashes and results on every storage, and with every engine. */

import { embeddedEngine } from '../adapters/embedded-engine/embedded-engine.ts';
import type { EmbeddedEngineOptions } from '../adapters/embedded-engine/engine-options.ts';
import type { ExecutionEngine } from '../engine/execution/execution-engine.port.ts';
import type { MaybePromise } from '../engine/operation/operation.port.ts';
import { cancelCases } from './engine-suite/cancels.ts';
import { damageCases } from './engine-suite/damage.ts';
import { deadlineCases } from './engine-suite/deadlines.ts';
import { definitionCases } from './engine-suite/definitions.ts';
import { runFlow } from './engine-suite/flow.ts';
import { PLAIN_FLOWS, TIMED_FLOWS } from './engine-suite/flows/flows.ts';
import { BLOCK_FLOWS, OTHER_FLOWS, STATE_FLOWS } from './engine-suite/flows/flows-of-blocks.ts';
import { CHILD_FLOWS } from './engine-suite/flows/flows-of-children.ts';
import { FORM_FLOWS, PARALLEL_FLOWS } from './engine-suite/flows/flows-of-forms.ts';
import { PART_FLOWS } from './engine-suite/flows/flows-of-parts.ts';
import { WAIT_FLOWS } from './engine-suite/flows/flows-of-waits.ts';
import { pausedProcessCases } from './engine-suite/paused-processes.ts';
import { queueCases } from './engine-suite/queues.ts';
import { recoveryCases } from './engine-suite/recovery.ts';
import { retentionCases } from './engine-suite/retention.ts';
import { retryCases } from './engine-suite/retries.ts';
import { sharedStorageCases } from './engine-suite/shared-storage.ts';
import { signalCases } from './engine-suite/signals.ts';
import { stateCases } from './engine-suite/states.ts';
import type { Declare } from './engine-suite/world/context.ts';
import type { EngineProcessOptions, EngineWorld, WorldReader } from './engine-suite/world/engine-world.ts';
import { openStorageWorld, type SuiteStore } from './engine-suite/world/storage-world.ts';
import { storedRowCases } from './engine-suite/world/stored-rows.ts';
import type { CreateSubject } from './engine-suite/world/subject.ts';
import { inWorld, type World, type WorldParts } from './engine-suite/world/world.ts';
import type { SuiteRunner } from './http-suite.ts';

interface CommonOptions {
  readonly name: string;
  /**
   * The flows that run with a crash at every commit: every `of`-th flow, beginning with the flow at `part` (from 0). Use it for
   * slow stores, with another part in each run of the tests. Default: all flows.
   */
  readonly share?: { readonly part: number; readonly of: number };
  readonly test: SuiteRunner;
}

/** For an engine that keeps its data in a `Storage`. */
export interface StorageEngineSuiteOptions extends CommonOptions {
  /** Returns a new, empty store. Called several times per test. */
  readonly create: () => MaybePromise<SuiteStore>;
  /** Default: `embeddedEngine`. */
  readonly engine?: ((options: EmbeddedEngineOptions) => ExecutionEngine) | undefined;
  /** `many`: several processes may work on one store at the same time, and the suite tests it. Default `one`. */
  readonly workers?: 'one' | 'many' | undefined;
}

/** For any other engine. The suite leaves out the tests of leases and of stored rows. */
export interface WorldEngineSuiteOptions extends CommonOptions {
  /** Returns a new world without data. Called several times per test. */
  readonly world: () => MaybePromise<EngineWorld>;
}

export type EngineSuiteOptions = StorageEngineSuiteOptions | WorldEngineSuiteOptions;

const FLOWS = [
  ...PLAIN_FLOWS,
  ...TIMED_FLOWS,
  ...BLOCK_FLOWS,
  ...STATE_FLOWS,
  ...PARALLEL_FLOWS,
  ...FORM_FLOWS,
  ...WAIT_FLOWS,
  ...CHILD_FLOWS,
  ...PART_FLOWS,
  ...OTHER_FLOWS,
];

const ALWAYS = [
  ...[recoveryCases, stateCases, deadlineCases, cancelCases, signalCases],
  ...[retryCases, queueCases, definitionCases, retentionCases],
];

/** For engines that keep their data in a storage. */
const ON_STORAGE = [damageCases, storedRowCases];

/** For stores on which several processes may work at the same time. */
const SHARED = [sharedStorageCases, pausedProcessCases];

/** @param createSubject - creates an orchestrator */
export function declareEngineSuite(options: EngineSuiteOptions, createSubject: CreateSubject): void {
  const { describe, it } = options.test;
  const { part, of } = readShare(options);
  const declareIn = <O extends EngineProcessOptions, R extends WorldReader>(
    parts: WorldParts<O, R>,
  ): Declare<World<O, R>> => ({
    it: (title, body) => it(title, () => inWorld(parts, body)),
    itWorlds: (title, body) => it(title, () => body((within) => inWorld(parts, within))),
  });
  const declareAlways = (parts: WorldParts) => {
    for (const [index, flow] of FLOWS.entries()) {
      if (index % of === part) it(`a crash at every commit: ${flow.title}`, () => runFlow(parts, flow));
    }
    for (const cases of ALWAYS) cases(declareIn(parts));
  };
  describe(`${options.name} under the engine`, () => {
    if ('world' in options) return declareAlways({ createSubject, openWorld: options.world });
    const { create, engine = embeddedEngine, workers = 'one' } = options;
    const parts = { createSubject, openWorld: () => openStorageWorld({ create, engine }) };
    declareAlways(parts);
    for (const cases of workers === 'many' ? [...ON_STORAGE, ...SHARED] : ON_STORAGE) cases(declareIn(parts));
  });
}

function readShare({ share = { part: 0, of: 1 } }: EngineSuiteOptions): { readonly part: number; readonly of: number } {
  const { part, of } = share;
  if (Number.isSafeInteger(part) && Number.isSafeInteger(of) && part >= 0 && part < of) return share;
  throw new TypeError(`engineSuite: share must hold whole numbers with 0 <= part < of, not part ${part} and of ${of}`);
}
