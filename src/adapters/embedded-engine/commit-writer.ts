/**
 * Writes entries to the storage: entries of many executions together (group commit), and again until they are stored.
 *
 * | storage | an entry is written |
 * |---|---|
 * | memory | at once |
 * | shares no commits between requests | at once, alone |
 * | any other | with all entries of the same event loop turn; after a few lone entries in a row, without waiting for the turn to end |
 *
 * While a write is in progress, new entries wait for the next write. A busier storage so gets larger batches: up to 500 entries, and
 * up to 4 MiB besides the first entry. With enough entries, two writes are in progress at once. The event loop gets a turn every
 * 10 ms, even when the storage answers at once.
 *
 * | a write of several entries | then |
 * |---|---|
 * | has no answer in time | two halves are written, one after the other: the write may have been too large |
 * | is refused for good | each entry is written alone: a bad entry must not fail the others |
 * | fails in any other way | all entries are written again together, until the time for retries is over |
 */

import { nextTurn } from '../../engine/base/time/next-turn.ts';
import { estimateEntryBytes } from '../../engine/execution/estimate-entry-bytes.ts';
import type { CommitEntry } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import { isLate, isTransient, type StorageRetry } from '../../engine/running/storage-retry.ts';
import type { CommitResult, Storage } from '../../engine/storage/storage.port.ts';

export interface CommitWriter {
  /**
   * Stores an entry.
   * @throws OVERLOADED when the storage failed until the time for retries was over; a permanent failure as the storage threw it
   */
  write(worker: string, entry: CommitEntry): MaybePromise<CommitResult>;
}

export interface CommitWriterDependencies {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly withRetry: StorageRetry;
  readonly groupCommit: boolean;
}

interface Waiting {
  readonly worker: string;
  readonly entry: CommitEntry;
  /** Estimated. */
  readonly bytes: number;
  readonly resolve: (result: CommitResult) => void;
  readonly reject: (error: unknown) => void;
}

/** The maximum number of entries in one write. */
const MAX_ENTRIES = 500;
/** The maximum size of the entries of one write, without the first entry. */
const MAX_BYTES = 4 * 1024 * 1024;
/** While the storage works on one write, this process works on what follows from the other. */
const MAX_IN_FLIGHT = 2;
/** The minimum number of entries in a second write: with fewer, the write costs more than it gains. */
const MIN_ENTRIES = 8;
/** After this number of writes of a single entry in a row, the next write does not wait for the turn to end. */
const LONE_WRITES = 4;
/** The longest time in which writes leave the event loop no turn, ms. */
const MAX_WITHOUT_TURN_MS = 10;
/** Calling `then` on it costs a fraction of `queueMicrotask`, which tracks asynchronous contexts in Node. */
const RESOLVED = Promise.resolve();

export function createCommitWriter(dependencies: CommitWriterDependencies): CommitWriter {
  const { storage, clock, withRetry } = dependencies;
  let waiting: Waiting[] = [];
  /** Size of all entries that wait. */
  let bytes = 0;
  let scheduled = false;
  const inProgress: (readonly Waiting[])[] = [];
  let loneWrites = 0;
  /** The monotonic instant of the latest turn that a write waited for. */
  let turnedAt = Number.NEGATIVE_INFINITY;

  const commitAlone = (worker: string, entry: CommitEntry): MaybePromise<CommitResult> => {
    const answer = withRetry(() => storage.commit(worker, [entry]));
    return answer instanceof Promise ? answer.then(([result]) => result as CommitResult) : (answer[0] as CommitResult);
  };

  const commit = (batch: readonly Waiting[]): MaybePromise<readonly CommitResult[]> =>
    storage.commit(
      (batch[0] as Waiting).worker,
      batch.map(({ entry }) => entry),
    );

  const resolveAll = (batch: readonly Waiting[], results: readonly CommitResult[]) => {
    for (let i = 0; i < batch.length; i++) (batch[i] as Waiting).resolve(results[i] as CommitResult);
  };

  /** Writes a failed batch again. @param retryUntil - the monotonic instant after which nothing is retried */
  const writeAgain = async (batch: readonly Waiting[], thrown: unknown, retryUntil: number): Promise<void> => {
    if (batch.length > 1 && !isTransient(thrown)) {
      for (const one of batch) await writeOnce([one], retryUntil);
      return;
    }
    const splits = (failure: unknown) => batch.length > 1 && isLate(failure) && clock.monotonic() < retryUntil;
    const inHalves = async () => {
      const half = batch.length >> 1;
      await writeOnce(batch.slice(0, half), retryUntil);
      await writeOnce(batch.slice(half), retryUntil);
    };
    const call = async () => {
      try {
        resolveAll(batch, await commit(batch));
      } catch (failure) {
        if (!splits(failure)) throw failure;
        await inHalves();
      }
    };
    try {
      if (splits(thrown)) await inHalves();
      else await withRetry.again(call, thrown, retryUntil);
    } catch (failure) {
      if (batch.length > 1 && !isTransient(failure)) return writeAgain(batch, failure, retryUntil);
      for (const { reject } of batch) reject(failure);
    }
  };

  const writeOnce = async (batch: readonly Waiting[], retryUntil: number): Promise<void> => {
    try {
      resolveAll(batch, await commit(batch));
    } catch (thrown) {
      await writeAgain(batch, thrown, retryUntil);
    }
  };

  const flush = () => {
    scheduled = false;
    while (waiting.length > 0 && inProgress.length < MAX_IN_FLIGHT) {
      if (needsTurn()) {
        schedule();
        return;
      }
      const batch = take();
      if (!batch) return;
      send(batch);
    }
  };

  const send = (batch: readonly Waiting[]) => {
    loneWrites = batch.length === 1 ? loneWrites + 1 : 0;
    let written: Promise<void>;
    try {
      const answer = commit(batch);
      if (!(answer instanceof Promise)) {
        resolveAll(batch, answer);
        return;
      }
      const again = (thrown: unknown) => writeAgain(batch, thrown, withRetry.retryUntil());
      written = answer.then((results) => resolveAll(batch, results), again);
    } catch (thrown) {
      written = writeAgain(batch, thrown, withRetry.retryUntil());
    }
    inProgress.push(batch);
    written.finally(() => {
      inProgress.splice(inProgress.indexOf(batch), 1);
      if (waiting.length > 0) schedule();
    });
  };

  /** @returns the entries of the next write, all of one worker; undefined when it is better to wait for a write in progress */
  const take = (): readonly Waiting[] | undefined => {
    const { worker, bytes: firstBytes } = waiting[0] as Waiting;
    const [other] = inProgress;
    const isSmall = waiting.length <= MAX_ENTRIES && bytes - firstBytes <= MAX_BYTES;
    if (!other && isSmall && waiting.every((one) => one.worker === worker)) {
      const batch = waiting;
      waiting = [];
      bytes = 0;
      return batch;
    }
    if (other && waiting.length < MIN_ENTRIES) return undefined;
    // The entries of an execution are stored in the order in which they were made: never by two writes at a time.
    const elsewhere = new Set(other?.map(({ entry }) => entry.executionId));
    const batch: Waiting[] = [];
    const rest: Waiting[] = [];
    let bytesLeft = MAX_BYTES;
    for (const one of waiting) {
      const id = one.entry.executionId;
      const isNext = batch.length < MAX_ENTRIES && one.worker === worker && !elsewhere.has(id);
      const fits = isNext && (batch.length === 0 || one.bytes <= bytesLeft);
      if (fits) {
        if (batch.length > 0) bytesLeft -= one.bytes;
        bytes -= one.bytes;
      } else if (isNext) bytesLeft = -1;
      (fits ? batch : rest).push(one);
    }
    waiting = rest;
    return batch.length > 0 ? batch : undefined;
  };

  const schedule = () => {
    if (scheduled || inProgress.length >= MAX_IN_FLIGHT) return;
    scheduled = true;
    // After a shared write, wait for the other entries of this turn. A lone entry does not wait: it would lose a third of its speed.
    if (loneWrites >= LONE_WRITES && !needsTurn()) RESOLVED.then(flush);
    else nextTurn(flushInTurn);
  };

  const flushInTurn = () => {
    turnedAt = clock.monotonic();
    flush();
  };

  const needsTurn = () => clock.monotonic() - turnedAt >= MAX_WITHOUT_TURN_MS;

  if (!storage.capabilities.groupedCommits || !storage.capabilities.sharedPromises || !dependencies.groupCommit) {
    return { write: commitAlone };
  }
  return {
    write: (worker, entry) =>
      new Promise((resolve, reject) => {
        const size = estimateEntryBytes(entry);
        bytes += size;
        waiting.push({ worker, entry, bytes: size, resolve, reject });
        schedule();
      }),
  };
}
