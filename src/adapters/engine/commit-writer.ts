/**
 * Writes entries to the storage, those of many executions together (group commit), and again until they are stored.
 *
 * | the store | an entry is written |
 * |---|---|
 * | is memory | at once |
 * | shares no commits between requests | at once, alone |
 * | any other | with all that come up in the same turn; one that is alone, without waiting for the turn to end |
 *
 * While a write is on its way, what comes up waits for the next one: the busier the store, the larger the batches, up to 500 entries
 * and 4 MiB besides the first. Where there is enough for two, two are on their way. The event loop gets a turn every 10 ms, also
 * from a store that answers at once.
 *
 * | a write of several | its entries are written |
 * |---|---|
 * | has no answer in time | in two halves, one after the other: it may have been too large |
 * | is refused for good | one by one: what is wrong with one must not take others with it |
 * | fails in any other way | again together, for as long as patience lasts |
 */

import { entryBytes } from '../../engine/model/entry-bytes.ts';
import type { CommitEntry } from '../../engine/model/stored-execution.ts';
import { nextTurn } from '../../engine/next-turn.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { CommitResult, Storage } from '../../engine/ports/storage.ts';
import { isLate, mayPass, type Patience } from './patience.ts';

export interface CommitWriter {
  /**
   * Stores an entry.
   * @throws OVERLOADED when the storage failed for as long as patience lasts, or what it throws when trying again is of no use
   */
  write(owner: string, entry: CommitEntry): MaybePromise<CommitResult>;
}

export interface CommitWriterParts {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly patiently: Patience;
  readonly groupCommit: boolean;
}

interface Waiting {
  readonly owner: string;
  readonly entry: CommitEntry;
  /** About. */
  readonly bytes: number;
  readonly resolve: (result: CommitResult) => void;
  readonly reject: (error: unknown) => void;
}

/** Entries of one write. */
const MOST_ENTRIES = 500;
/** What the entries of one write hold together at most, the first of them aside. */
const MOST_BYTES = 4 * 1024 * 1024;
/** While the storage works on one write, this process works on what follows from the other one. */
const MOST_ON_THEIR_WAY = 2;
/** What a second write has to hold at least, to be worth what each write costs. */
const LEAST_ENTRIES = 8;
/** So many lone writes in a row, and the next one does not wait for the turn to end any more. */
const LONE_WRITES = 4;
/** Longest time in which writes leave the event loop no turn; ms. */
const MAX_WITHOUT_TURN_MS = 10;
/** A callback behind it costs a fraction of what `queueMicrotask` does, which follows asynchronous contexts in Node. */
const RESOLVED = Promise.resolve();

export function createCommitWriter(parts: CommitWriterParts): CommitWriter {
  const { storage, clock, patiently } = parts;
  let waiting: Waiting[] = [];
  /** Of all that wait. */
  let bytes = 0;
  let scheduled = false;
  const onTheirWay: (readonly Waiting[])[] = [];
  let loneWrites = 0;
  /** The monotonic instant of the latest turn that was waited for. */
  let turnedAt = Number.NEGATIVE_INFINITY;
  /** Whether the storage works while this process does. */
  let answersLater = false;

  const commitAlone = (owner: string, entry: CommitEntry): MaybePromise<CommitResult> => {
    const answer = patiently(() => storage.commit(owner, [entry]));
    return answer instanceof Promise ? answer.then(([result]) => result as CommitResult) : (answer[0] as CommitResult);
  };

  const commit = (batch: readonly Waiting[]): MaybePromise<readonly CommitResult[]> =>
    storage.commit(
      (batch[0] as Waiting).owner,
      batch.map(({ entry }) => entry),
    );

  const give = (batch: readonly Waiting[], results: readonly CommitResult[]) => {
    for (let i = 0; i < batch.length; i++) (batch[i] as Waiting).resolve(results[i] as CommitResult);
  };

  /** Writes a batch again that failed. @param givesUpAt - a monotonic instant, from which nothing that fails is tried again */
  const writeAgain = async (batch: readonly Waiting[], thrown: unknown, givesUpAt: number): Promise<void> => {
    if (batch.length > 1 && !mayPass(thrown)) {
      for (const one of batch) await writeOnce([one], givesUpAt);
      return;
    }
    const splits = (failure: unknown) => batch.length > 1 && isLate(failure) && clock.monotonic() < givesUpAt;
    const inHalves = async () => {
      const half = batch.length >> 1;
      await writeOnce(batch.slice(0, half), givesUpAt);
      await writeOnce(batch.slice(half), givesUpAt);
    };
    const call = async () => {
      try {
        give(batch, await commit(batch));
      } catch (failure) {
        if (!splits(failure)) throw failure;
        await inHalves();
      }
    };
    try {
      if (splits(thrown)) await inHalves();
      else await patiently.again(call, thrown, givesUpAt);
    } catch (failure) {
      if (batch.length > 1 && !mayPass(failure)) return writeAgain(batch, failure, givesUpAt);
      for (const { reject } of batch) reject(failure);
    }
  };

  const writeOnce = async (batch: readonly Waiting[], givesUpAt: number): Promise<void> => {
    try {
      give(batch, await commit(batch));
    } catch (thrown) {
      await writeAgain(batch, thrown, givesUpAt);
    }
  };

  const flush = () => {
    scheduled = false;
    while (waiting.length > 0 && onTheirWay.length < MOST_ON_THEIR_WAY) {
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
      answersLater = answer instanceof Promise;
      if (!(answer instanceof Promise)) {
        give(batch, answer);
        return;
      }
      const again = (thrown: unknown) => writeAgain(batch, thrown, patiently.givesUpAt());
      written = answer.then((results) => give(batch, results), again);
    } catch (thrown) {
      written = writeAgain(batch, thrown, patiently.givesUpAt());
    }
    onTheirWay.push(batch);
    written.finally(() => {
      onTheirWay.splice(onTheirWay.indexOf(batch), 1);
      if (waiting.length > 0) schedule();
    });
  };

  /** What is written next, of one owner; nothing where it is better to wait for what is on its way. */
  const take = (): readonly Waiting[] | undefined => {
    const { owner, bytes: firstBytes } = waiting[0] as Waiting;
    const [other] = onTheirWay;
    const isWhole = !other && !(answersLater && waiting.length >= 2 * LEAST_ENTRIES);
    const isSmall = waiting.length <= MOST_ENTRIES && bytes - firstBytes <= MOST_BYTES;
    if (isWhole && isSmall && waiting.every((one) => one.owner === owner)) {
      const batch = waiting;
      waiting = [];
      bytes = 0;
      return batch;
    }
    if (other && waiting.length < LEAST_ENTRIES) return undefined;
    const wanted = isWhole || other ? MOST_ENTRIES : Math.min(MOST_ENTRIES, Math.ceil(waiting.length / 2));
    // What an execution writes is stored in the order in which it was made: never by two writes at a time.
    const elsewhere = new Set(other?.map(({ entry }) => entry.executionId));
    const here = new Set<string>();
    const batch: Waiting[] = [];
    const rest: Waiting[] = [];
    let bytesLeft = MOST_BYTES;
    for (const one of waiting) {
      const id = one.entry.executionId;
      const hasRoom = batch.length < wanted || (here.has(id) && batch.length < MOST_ENTRIES);
      const isNext = hasRoom && one.owner === owner && !elsewhere.has(id);
      const fits = isNext && (batch.length === 0 || one.bytes <= bytesLeft);
      if (fits) {
        here.add(id);
        if (batch.length > 0) bytesLeft -= one.bytes;
        bytes -= one.bytes;
      } else if (isNext) bytesLeft = -1;
      (fits ? batch : rest).push(one);
    }
    waiting = rest;
    return batch.length > 0 ? batch : undefined;
  };

  const schedule = () => {
    if (scheduled || onTheirWay.length >= MOST_ON_THEIR_WAY) return;
    scheduled = true;
    // Where writes were shared a moment ago, the others of this turn are waited for; the wait costs a lone one a third.
    if (loneWrites >= LONE_WRITES && !needsTurn()) RESOLVED.then(flush);
    else nextTurn(flushInTurn);
  };

  const flushInTurn = () => {
    turnedAt = clock.monotonic();
    flush();
  };

  const needsTurn = () => clock.monotonic() - turnedAt >= MAX_WITHOUT_TURN_MS;

  if (!storage.capabilities.groupedCommits || !storage.capabilities.sharedCommits || !parts.groupCommit) {
    return { write: commitAlone };
  }
  return {
    write: (owner, entry) =>
      new Promise((resolve, reject) => {
        const size = entryBytes(entry);
        bytes += size;
        waiting.push({ owner, entry, bytes: size, resolve, reject });
        schedule();
      }),
  };
}
