/** The conformance suite of the storage port: what each `Storage` must do, for any test runner with `describe` and `it`. */

import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { Storage } from '../../engine/ports/storage.ts';
import type { SuiteRunner } from './http-suite.ts';
import { awaitedSignalCases } from './storage-suite/awaited-signals.ts';
import { blameCases, blameOfSuccessionCases } from './storage-suite/blame.ts';
import { cancelCases, sharedCancelCases } from './storage-suite/cancels.ts';
import { childCases } from './storage-suite/children.ts';
import { claimCases, sharedClaimCases } from './storage-suite/claims.ts';
import { commitCases } from './storage-suite/commits.ts';
import type { HandlesCase, StorageCase } from './storage-suite/context.ts';
import { fenceCases, rivalCases } from './storage-suite/fences.ts';
import { besideCases, durableCases } from './storage-suite/handles.ts';
import { listingCases } from './storage-suite/listings.ts';
import { deliveryCases, noteCases } from './storage-suite/notes-and-deliveries.ts';
import { ownerCases, successionCases } from './storage-suite/owners.ts';
import { electedPurgeCases, purgeCases } from './storage-suite/purges.ts';
import { recordCases, valueCases } from './storage-suite/records.ts';
import { replacingCases } from './storage-suite/records-replaced.ts';
import { recoveryCases } from './storage-suite/recoveries.ts';
import { releaseCases } from './storage-suite/releases.ts';
import { lateRepeatCases, repeatCases } from './storage-suite/repeats.ts';
import { durableScheduleCases, scheduleCases } from './storage-suite/schedules.ts';
import { sentSignalCases, sharedSignalCases } from './storage-suite/sent-signals.ts';
import { signalCases } from './storage-suite/signals.ts';
import { slimReadCases } from './storage-suite/slim-reads.ts';
import { startCases } from './storage-suite/starts.ts';
import { definitionCases, stateCases } from './storage-suite/state-and-definitions.ts';
import { heldCases, rivalHeldCases, surveyCases } from './storage-suite/surveys.ts';
import { turnCases } from './storage-suite/turns.ts';

export interface StorageSuiteOptions {
  readonly name: string;
  /** A store that is fresh and empty; called once a test, and closed behind it. */
  readonly create: () => MaybePromise<Storage>;
  /**
   * `many`: several owners may work on one store at once. `one`: a store takes one owner alone, and the next one to join
   * takes over what it held. Default `one`.
   */
  readonly owners?: 'one' | 'many';
  /**
   * Opens the data of the store that `create` gave last once more; closed behind the test. Without it, what needs a second
   * handle is not tested.
   */
  readonly reopen?: () => MaybePromise<Storage>;
  /**
   * `many`: handles that `reopen` gives work beside the first one. `one`: it is called when the one before is closed. Default
   * as `owners`.
   */
  readonly handles?: 'one' | 'many';
  readonly test: SuiteRunner;
}

const ALWAYS = [
  startCases,
  commitCases,
  fenceCases,
  repeatCases,
  lateRepeatCases,
  replacingCases,
  releaseCases,
  ownerCases,
  claimCases,
  turnCases,
  surveyCases,
  heldCases,
  cancelCases,
  childCases,
  signalCases,
  awaitedSignalCases,
  sentSignalCases,
  purgeCases,
  recordCases,
  valueCases,
  noteCases,
  deliveryCases,
  listingCases,
  slimReadCases,
  stateCases,
  definitionCases,
  scheduleCases,
];
const OF_MANY = [
  rivalCases,
  recoveryCases,
  blameCases,
  sharedClaimCases,
  rivalHeldCases,
  sharedCancelCases,
  sharedSignalCases,
  electedPurgeCases,
];

/**
 * Declares the suite's tests: one for each promise of the `Storage` port. They take answers at once and promises alike.
 *
 * @param options - see {@link StorageSuiteOptions}
 * @example
 * ```ts no-run
 * import { memoryStorage } from 'ensemble-orchestrator';
 * import { storageSuite } from 'ensemble-orchestrator/testing';
 * import { describe, it } from 'vitest';
 *
 * storageSuite({ name: 'memoryStorage', create: () => memoryStorage(), owners: 'many', test: { describe, it } });
 * ```
 */
export function storageSuite(options: StorageSuiteOptions): void {
  const { owners = 'one', handles = owners, reopen: open } = options;
  const { describe, it } = options.test;
  const declare: StorageCase = (name, body) => {
    it(name, async () => {
      const storage = await options.create();
      try {
        await body(storage);
      } finally {
        await storage.close();
      }
    });
  };
  const declareWithHandles = (reopen: () => MaybePromise<Storage>): HandlesCase => {
    return (name, body) =>
      declare(name, async (storage) => {
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
  };
  describe(`${options.name} as a Storage`, () => {
    for (const cases of ALWAYS) cases(declare);
    if (owners === 'many') for (const cases of OF_MANY) cases(declare);
    else for (const cases of [successionCases, blameOfSuccessionCases]) cases(declare);
    if (!open) return;
    durableCases(declareWithHandles(open));
    durableScheduleCases(declareWithHandles(open));
    if (handles === 'many') besideCases(declareWithHandles(open));
  });
}
