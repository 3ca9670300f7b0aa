/** The conformance suite of the engine: the same ensembles, the same crashes and the same answers on every storage. */

import type { ExecutionEngine } from '../../engine/ports/execution-engine.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import { embeddedEngine } from '../engine/embedded-engine.ts';
import type { EmbeddedEngineOptions } from '../engine/engine-options.ts';
import { cancelCases } from './engine-suite/cancels.ts';
import type { Declare } from './engine-suite/context.ts';
import { damageCases } from './engine-suite/damage.ts';
import { deadlineCases } from './engine-suite/deadlines.ts';
import { definitionCases } from './engine-suite/definitions.ts';
import { runFlow } from './engine-suite/flow.ts';
import { PLAIN_FLOWS, TIMED_FLOWS } from './engine-suite/flows.ts';
import { CHILD_FLOWS } from './engine-suite/flows-of-children.ts';
import { FORM_FLOWS, PARALLEL_FLOWS } from './engine-suite/flows-of-forms.ts';
import { BLOCK_FLOWS, OTHER_FLOWS, STATE_FLOWS } from './engine-suite/flows-of-many.ts';
import { WAIT_FLOWS } from './engine-suite/flows-of-waits.ts';
import { queueCases } from './engine-suite/queues.ts';
import { retentionCases } from './engine-suite/retention.ts';
import { retryCases } from './engine-suite/retries.ts';
import { sharedCases } from './engine-suite/rivals.ts';
import { signalCases } from './engine-suite/signals.ts';
import { standstillCases } from './engine-suite/standstills.ts';
import { stateCases } from './engine-suite/states.ts';
import type { CreateSubject } from './engine-suite/subject.ts';
import { takeoverCases } from './engine-suite/takeovers.ts';
import { inWorld, type SuiteStore, type WorldParts } from './engine-suite/world.ts';
import type { SuiteRunner } from './http-suite.ts';

export interface EngineSuiteOptions {
  readonly name: string;
  /** A store that is fresh and empty, as several processes see it; called several times a test. */
  readonly create: () => MaybePromise<SuiteStore>;
  /** Default: `embeddedEngine`. */
  readonly engine?: (options: EmbeddedEngineOptions) => ExecutionEngine;
  /** `many`: several processes may work on one store at once; then that is tested too. Default `one`. */
  readonly owners?: 'one' | 'many';
  /**
   * Which of the flows run with a crash at every commit: every `of`-th one, beginning with the one at `part` (from 0). For slow
   * stores, where each run of the tests takes another part. Default: all of them.
   */
  readonly share?: { readonly part: number; readonly of: number };
  readonly test: SuiteRunner;
}

const FLOWS = [
  ...PLAIN_FLOWS,
  ...TIMED_FLOWS,
  ...BLOCK_FLOWS,
  ...STATE_FLOWS,
  ...PARALLEL_FLOWS,
  ...FORM_FLOWS,
  ...WAIT_FLOWS,
  ...CHILD_FLOWS,
  ...OTHER_FLOWS,
];

const ALWAYS = [
  takeoverCases,
  stateCases,
  deadlineCases,
  cancelCases,
  signalCases,
  retryCases,
  queueCases,
  definitionCases,
  damageCases,
  retentionCases,
];

/** Where several processes may work on one store at once. */
const SHARED = [sharedCases, standstillCases];

/** @param createSubject - makes an orchestrator */
export function declareEngineSuite(options: EngineSuiteOptions, createSubject: CreateSubject): void {
  const { describe, it } = options.test;
  const { part, of } = readShare(options);
  const parts: WorldParts = { create: options.create, engine: options.engine ?? embeddedEngine, createSubject };
  describe(`${options.name} under the engine`, () => {
    for (const [place, flow] of FLOWS.entries()) {
      if (place % of !== part) continue;
      it(`a crash at every commit: ${flow.title}`, () => runFlow(parts, flow));
    }
    const declare: Declare = {
      it: (title, body) => it(title, () => inWorld(parts, body)),
      itWorlds: (title, body) => it(title, () => body((within) => inWorld(parts, within))),
    };
    for (const cases of ALWAYS) cases(declare);
    if (options.owners === 'many') for (const cases of SHARED) cases(declare);
  });
}

function readShare({ share = { part: 0, of: 1 } }: EngineSuiteOptions): { readonly part: number; readonly of: number } {
  const { part, of } = share;
  if (Number.isSafeInteger(part) && Number.isSafeInteger(of) && part >= 0 && part < of) return share;
  throw new TypeError(`engineSuite: share needs whole numbers with 0 <= part < of, not part ${part} of ${of}`);
}
