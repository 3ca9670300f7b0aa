/** The conformance suite of the storage port: the rules that every `Storage` must follow. It runs on any test runner with `describe` and `it`. */

import type { MaybePromise } from '../engine/operation/operation.port.ts';
import type { Storage, StorageParts } from '../engine/storage/storage.port.ts';
import { allKvCases, allObjectCases, allReopenedKvCases, allReopenedObjectCases } from './data-suite.ts';
import { declareCases, declareOnPart } from './declare-cases.ts';
import type { SuiteRunner } from './http-suite.ts';
import { rateCases } from './limit-store-suite.ts';
import { chargeCases, reopenedChargeCases } from './storage-suite/charges.ts';
import { commitCases } from './storage-suite/commits/commits.ts';
import { decisionCases } from './storage-suite/commits/decisions.ts';
import { fenceCases, sharedFenceCases } from './storage-suite/commits/fences.ts';
import { handoverCases, sharedHandoverCases } from './storage-suite/commits/handovers.ts';
import { keyCases } from './storage-suite/commits/keys.ts';
import { replacingCases } from './storage-suite/commits/records-replaced.ts';
import { releaseCases } from './storage-suite/commits/releases.ts';
import { reopenedCommitCases } from './storage-suite/commits/reopened.ts';
import { lateRepeatCases, repeatCases } from './storage-suite/commits/repeats.ts';
import { startCases } from './storage-suite/commits/starts.ts';
import { valueCases } from './storage-suite/commits/values.ts';
import type { StorageCase } from './storage-suite/context.ts';
import { definitionCases, reopenedDefinitionCases } from './storage-suite/definitions.ts';
import { deliveryCases, reopenedDeliveryCases, sharedDeliveryCases } from './storage-suite/deliveries.ts';
import { documentCases, reopenedDocumentCases } from './storage-suite/documents.ts';
import { cancelCases, sharedCancelCases } from './storage-suite/executions/cancels.ts';
import { childCases } from './storage-suite/executions/children.ts';
import { claimCases, sharedClaimCases } from './storage-suite/executions/claims.ts';
import { findingCases } from './storage-suite/executions/finding.ts';
import { listingCases } from './storage-suite/executions/listings.ts';
import { pauseCases } from './storage-suite/executions/pauses.ts';
import { pollCases } from './storage-suite/executions/polls.ts';
import { deletionCases, purgeCases, sharedPurgeCases } from './storage-suite/executions/purges.ts';
import { recordCases } from './storage-suite/executions/records.ts';
import { reopenedExecutionCases } from './storage-suite/executions/reopened.ts';
import { slimReadCases } from './storage-suite/executions/slim-reads.ts';
import { sharedTakeCases, takeCases } from './storage-suite/executions/takes.ts';
import { turnCases } from './storage-suite/executions/turns.ts';
import { closeCases, concurrentHandleCases, type HandlesCase } from './storage-suite/handles.ts';
import { limitRuleCases } from './storage-suite/limit-rules.ts';
import { fairCases, limitCases, sharedLimitCases } from './storage-suite/limits.ts';
import { reopenedScheduleCases, scheduleCases } from './storage-suite/schedules.ts';
import { awaitedSignalCases } from './storage-suite/signals/awaited-signals.ts';
import { sentSignalCases, sharedSignalCases } from './storage-suite/signals/sent-signals.ts';
import { reopenedSignalCases, signalCases } from './storage-suite/signals/signals.ts';
import { sharedSlotCases, slotCases } from './storage-suite/slots.ts';
import { reopenedStateCases, stateCases } from './storage-suite/state.ts';
import { reopenedTallyCases, sharedTallyCases, tallyCases } from './storage-suite/tallies.ts';
import { reopenedBlameCases, sharedBlameCases, successionBlameCases } from './storage-suite/workers/blame.ts';
import { heldCases, reopenedHeldCases, sharedHeldCases } from './storage-suite/workers/held.ts';
import { reclaimCases } from './storage-suite/workers/reclaims.ts';
import { successionCases, workerCases } from './storage-suite/workers/workers.ts';
import { reopenedTokenCases, tokenCases } from './token-suite.ts';

export interface StorageSuiteOptions {
  readonly name: string;
  /** Opens a new, empty store. The suite calls it once per test, and closes the store after the test. */
  readonly create: () => MaybePromise<Storage>;
  /**
   * `many`: several workers may work on one store at the same time. `one`: a store has a single worker; the next worker that
   * registers replaces it, and what it held is free. Default `one`.
   */
  readonly workers?: 'one' | 'many' | undefined;
  /**
   * Opens another handle on the data of the store that `create` opened last. The suite closes the handle after the test.
   * Without this option, the suite leaves out the tests that need a second handle: a store in memory has none.
   */
  readonly reopen?: (() => MaybePromise<Storage>) | undefined;
  /**
   * `many`: several handles are open at the same time. `one`: the suite closes a handle before it opens the next one. Default:
   * the value of `workers`.
   */
  readonly handles?: 'one' | 'many' | undefined;
  readonly test: SuiteRunner;
}

type DeclareCases = (it: StorageCase) => void;

/** The cases of one part of the port. */
interface Group {
  /** For every store. */
  readonly always: readonly DeclareCases[];
  /** For stores on which several workers may work at the same time. */
  readonly many?: readonly DeclareCases[];
  /** For stores that have a single worker. */
  readonly one?: readonly DeclareCases[];
  /** For stores that can be opened again. */
  readonly reopened?: readonly DeclareCases[];
}

/** One group for each part, one for the commits that span them, and one for the storage itself. */
const GROUPS: { readonly [Part in keyof StorageParts | 'commits' | 'handles']: Group } = {
  workers: {
    always: [workerCases, heldCases],
    many: [reclaimCases, sharedBlameCases, sharedHeldCases],
    one: [successionCases, successionBlameCases],
    reopened: [reopenedHeldCases, reopenedBlameCases],
  },
  executions: {
    always: [
      ...[claimCases, takeCases, turnCases, pollCases, cancelCases, childCases],
      ...[
        purgeCases,
        deletionCases,
        recordCases,
        listingCases,
        findingCases,
        slimReadCases,
        limitCases,
        fairCases,
        limitRuleCases,
        pauseCases,
      ],
    ],
    many: [sharedClaimCases, sharedTakeCases, sharedCancelCases, sharedPurgeCases, sharedLimitCases],
    reopened: [reopenedExecutionCases],
  },
  signals: {
    always: [signalCases, awaitedSignalCases, sentSignalCases],
    many: [sharedSignalCases],
    reopened: [reopenedSignalCases],
  },
  state: { always: [stateCases], reopened: [reopenedStateCases] },
  schedules: { always: [scheduleCases], reopened: [reopenedScheduleCases] },
  definitions: { always: [definitionCases], reopened: [reopenedDefinitionCases] },
  documents: { always: [documentCases], reopened: [reopenedDocumentCases] },
  deliveries: { always: [deliveryCases], many: [sharedDeliveryCases], reopened: [reopenedDeliveryCases] },
  usage: { always: [chargeCases, slotCases], many: [sharedSlotCases], reopened: [reopenedChargeCases] },
  tallies: { always: [tallyCases], many: [sharedTallyCases], reopened: [reopenedTallyCases] },
  rates: { always: [(it) => rateCases(declareOnPart(it, ({ rates }) => rates))] },
  tokens: {
    always: [(it) => tokenCases(declareOnPart(it, ({ tokens }) => tokens))],
    reopened: [(it) => reopenedTokenCases(declareOnPart(it, ({ tokens }) => tokens))],
  },
  kv: {
    always: [(it) => allKvCases(declareOnPart(it, ({ kv }) => kv))],
    reopened: [(it) => allReopenedKvCases(declareOnPart(it, ({ kv }) => kv))],
  },
  objects: {
    always: [(it) => allObjectCases(declareOnPart(it, ({ objects }) => objects))],
    reopened: [(it) => allReopenedObjectCases(declareOnPart(it, ({ objects }) => objects))],
  },
  commits: {
    always: [
      ...[startCases, keyCases, commitCases, fenceCases, repeatCases, lateRepeatCases],
      ...[replacingCases, releaseCases, handoverCases, valueCases, decisionCases],
    ],
    many: [sharedFenceCases, sharedHandoverCases],
    reopened: [reopenedCommitCases],
  },
  handles: { always: [closeCases] },
};

/**
 * Declares the suite's tests: one for each rule of the `Storage` port. A store may return values or promises.
 *
 * @param options - see {@link StorageSuiteOptions}
 * @example
 * ```ts no-run
 * import { memoryStorage } from 'ensemble-orchestrator';
 * import { storageSuite } from 'ensemble-orchestrator/conformance';
 * import { describe, it } from 'vitest';
 *
 * storageSuite({ name: 'memoryStorage', create: () => memoryStorage(), workers: 'many', test: { describe, it } });
 * ```
 */
export function storageSuite(options: StorageSuiteOptions): void {
  const { workers = 'one', handles = workers, reopen, test } = options;
  const it = declareCases(options);
  test.describe(`${options.name} as a Storage`, () => {
    for (const [title, group] of Object.entries<Group>(GROUPS)) {
      test.describe(title, () => {
        const { always, [workers]: ofWorkers = [], reopened = [] } = group;
        for (const declare of [...always, ...ofWorkers, ...(reopen ? reopened : [])]) declare(it);
        if (title === 'handles' && reopen && handles === 'many') concurrentHandleCases(onHandles(it, reopen));
      });
    }
  });
}

/** Declares cases that have several handles open at the same time. */
function onHandles(it: StorageCase, reopen: () => MaybePromise<Storage>): HandlesCase {
  return (name, body) =>
    it(name, async (storage) => {
      const opened: Storage[] = [];
      try {
        await body(storage, async () => {
          const handle = await reopen();
          opened.push(handle);
          return handle;
        });
      } finally {
        for (const handle of opened) await handle.close();
      }
    });
}
