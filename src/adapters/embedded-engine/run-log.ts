/**
 * The run logs of the embedded engine: a run writes through the commit writer and reads from the storage. No failure of the storage is a
 * failure of the run: the run loses its journal, and is resumed later from its last stored result.
 */

import type { RunRecords } from '../../engine/execution/execution-engine.port.ts';
import { JournalLostError } from '../../engine/execution/journal.port.ts';
import type { RunLog } from '../../engine/execution/run-log.port.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { RunDependencies } from '../../engine/running/run-journal.ts';
import type { StorageRetry } from '../../engine/running/storage-retry.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import type { CommitWriter } from './commit-writer.ts';
import type { Lease } from './worker.ts';

/** What a run needs. All runs of a worker share it. */
export type RunPartsOf = (worker: string) => RunDependencies;

export function createRunDependencies(dependencies: {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly withRetry: StorageRetry;
  readonly writer: CommitWriter;
  readonly worker: Lease;
}): RunPartsOf {
  const { storage, clock, withRetry, writer, worker: lease } = dependencies;
  const read = readForRuns(withRetry);
  const toParts = (worker: string): RunDependencies => {
    const log: RunLog = {
      write: (entry) => writer.write(worker, entry),
      readState: (ensemble) => read(() => storage.state.read(ensemble)),
      listSignals: (executionId, query) => read(() => storage.signals.list(executionId, query)),
      executions: {
        get: (executionId, query) => read(() => storage.executions.get(executionId, query)),
      },
    };
    if (storage.transact) Object.assign(log, { transact: () => storage.transact?.(worker) });
    const waitForLease = () => (lease.isLeaseValid(worker) ? undefined : lease.waitForLease(worker));
    return { clock, log: storage.capabilities.shared ? { ...log, waitForLease } : log };
  };
  let current: { readonly worker: string; readonly dependencies: RunDependencies } | undefined;
  return (worker) => {
    if (current?.worker !== worker) current = { worker, dependencies: toParts(worker) };
    return current.dependencies;
  };
}

/** The records that runs read besides their own: each failed read rejects with JournalLostError. */
export function createRunRecords(storage: Storage, withRetry: StorageRetry): RunRecords {
  const read = readForRuns(withRetry);
  return {
    signals: { list: (executionId, query) => read(() => storage.signals.list(executionId, query)) },
    executions: {
      get: (id, query) => read(() => storage.executions.get(id, query)),
      countDescendants: (rootId, limit) => read(() => storage.executions.countDescendants(rootId, limit)),
    },
  };
}

function readForRuns(withRetry: StorageRetry) {
  return <T>(call: () => MaybePromise<T>): MaybePromise<T> => {
    const answer = withRetry(call);
    return answer instanceof Promise ? answer.catch(loseJournal) : answer;
  };
}

/** @throws JournalLostError */
function loseJournal(cause: unknown): never {
  throw new JournalLostError(cause);
}
