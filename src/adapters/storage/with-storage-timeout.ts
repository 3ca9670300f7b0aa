/**
 * Adds a timeout to every call of a storage. A call that times out is rejected; it may or may not have had its effect. Commits and
 * failures are measured.
 */

import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import { andThen } from '../../engine/base/maybe-promise.ts';
import { METRICS, type Measure } from '../../engine/events/measurement.ts';
import { estimateEntryBytes } from '../../engine/execution/estimate-entry-bytes.ts';
import type { CommitEntry } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { CommitResult, Storage } from '../../engine/storage/storage.port.ts';
import { callPart, createParts } from '../../engine/storage/storage-methods.port.ts';

/** How much longer a call may take that transfers this number of bytes: 1 s for each whole MiB. */
export function transferMs(bytes: number): number {
  return Math.floor(bytes / 1_048_576) * 1000;
}

/**
 * Returns the storage with timeouts. Keyed values and objects have none, because the steps that use them have their own
 * timeout.
 * @param timeoutMs - how long a call may take that returns a promise; a commit may take 1 s more for each MiB
 * @param measured - undefined while nobody listens
 */
export function withStorageTimeout(
  storage: Storage,
  clock: Clock,
  timeoutMs: number,
  measured: () => Measure | undefined = () => undefined,
): Storage {
  const count = (method: string, thrown: unknown) =>
    measured()?.(METRICS.storeErrors, [method, isOrchestratorError(thrown) ? thrown.code : 'other'], 1);
  const withTimeout = <T>(method: string, answer: Promise<T>, batch?: readonly CommitEntry[]): Promise<T> =>
    new Promise((resolve, refuse) => {
      const reject = (thrown: unknown) => {
        count(method, thrown);
        refuse(thrown);
      };
      const rejectAfter = (ms: number) => {
        const message = `the storage did not answer \`${method}\` within ${ms} ms`;
        reject(new OrchestratorError('OVERLOADED', message, { details: { timeoutMs: ms }, retryable: true }));
      };
      const onTimeout = () => {
        // The size is computed only when it matters.
        const moreMs = batch ? transferMs(batch.reduce((bytes, entry) => bytes + estimateEntryBytes(entry), 0)) : 0;
        if (moreMs === 0) rejectAfter(timeoutMs);
        else cancelTimer = clock.setTimer(moreMs, () => rejectAfter(timeoutMs + moreMs));
      };
      let cancelTimer = clock.setTimer(timeoutMs, onTimeout);
      answer.finally(() => cancelTimer()).then(resolve, reject);
    });
  const parts = createParts((part, method) => {
    const name = `${part}.${method}`;
    return (...args) => {
      try {
        const answer = callPart(storage, part, method, args);
        return answer instanceof Promise ? withTimeout(name, answer) : answer;
      } catch (thrown) {
        count(name, thrown);
        throw thrown;
      }
    };
  });
  const commit: Storage['commit'] = (worker, batch) => {
    const answer = storage.commit(worker, batch);
    return answer instanceof Promise ? withTimeout('commit', answer, batch) : answer;
  };
  const measuredCommit = (measure: Measure, worker: string, batch: readonly CommitEntry[]) => {
    const began = clock.monotonic();
    const onStored = (answers: readonly CommitResult[]) => {
      measure(METRICS.commit, [], (clock.monotonic() - began) / 1000);
      measure(METRICS.batch, [], batch.length);
      return answers;
    };
    try {
      return andThen(commit(worker, batch), onStored);
    } catch (thrown) {
      count('commit', thrown);
      throw thrown;
    }
  };
  const { watch, wakeAt, accepts, within, transact } = storage;
  return {
    ...parts,
    ...(wakeAt && { wakeAt: (instant: number) => wakeAt.call(storage, instant) }),
    ...(accepts && { accepts: (id: string) => accepts.call(storage, id) }),
    ...(transact && { transact: (worker: string) => transact.call(storage, worker) }),
    // The client of the caller has its own timeouts.
    ...(within && { within: (transaction: unknown) => within.call(storage, transaction) }),
    ...(watch && {
      watch: (listener: () => void) => watch.call(storage, listener),
    }),
    capabilities: storage.capabilities,
    kv: storage.kv,
    objects: storage.objects,
    // Without rest parameters, because it is called for every step.
    commit(worker, batch) {
      const measure = measured();
      return measure ? measuredCommit(measure, worker, batch) : commit(worker, batch);
    },
    close() {
      const answer = storage.close();
      return answer instanceof Promise ? withTimeout('close', answer) : answer;
    },
  };
}
