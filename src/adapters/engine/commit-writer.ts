/**
 * Writes entries to the storage, those of many executions together (group commit), and again until they are stored.
 *
 * | the store | an entry is written |
 * |---|---|
 * | is memory | at once |
 * | shares no commits between requests | at once, alone |
 * | any other | with all that come up in the same turn; one that is alone, without waiting for the turn to end |
 *
 * While a write is on its way, what comes up waits for the next one: the busier the store, the larger the batches. Where there
 * is enough for two, two are on their way. The event loop gets a turn every 10 ms, also from a store that answers at once.
 */

import type { CommitEntry } from '../../engine/model/stored-execution.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { CommitResult, Storage } from '../../engine/ports/storage.ts';
import { nextTurn } from './next-turn.ts';
import { mayPass, type Patience } from './patience.ts';

export interface CommitWriter {
  /**
   * Stores an entry.
   * @throws OVERLOADED when the storage failed for as long as patience lasts, or what it throws when trying again is of no use
   */
  write(owner: string, entry: CommitEntry): MaybePromise<CommitResult>;
}

export interface CommitWriterParts {
  readonly storage: Storage;
  readonly patiently: Patience;
  readonly groupCommit: boolean;
  readonly clock: Clock;
}

interface Waiting {
  readonly owner: string;
  readonly entry: CommitEntry;
  readonly resolve: (result: CommitResult) => void;
  readonly reject: (error: unknown) => void;
}

/** Entries of one write. */
const MOST_ENTRIES = 500;
/** While the storage works on one write, this process works on what follows from the other one. */
const MOST_ON_THEIR_WAY = 2;
/** What a second write has to hold at least, to be worth what each write costs. */
const LEAST_ENTRIES = 8;
/** So many lone writes in a row, and the next one does not wait for the turn to end any more. */
const LONE_WRITES = 4;
/** Longest time in which writes leave the event loop no turn; ms. */
const LONGEST_MS = 10;
/** A callback behind it costs a fraction of what `queueMicrotask` does, which follows asynchronous contexts in Node. */
const RESOLVED = Promise.resolve();

export function createCommitWriter(parts: CommitWriterParts): CommitWriter {
  const { storage, patiently, clock } = parts;
  let waiting: Waiting[] = [];
  let scheduled = false;
  const onTheirWay: (readonly Waiting[])[] = [];
  let loneWrites = 0;
  /** The monotonic instant of the latest turn that was waited for. */
  let turnedAt = Number.NEGATIVE_INFINITY;
  /** Whether the storage works while this process does. */
  let answersLater = false;

  const commitAgain = (owner: string, entries: readonly CommitEntry[], thrown: unknown) =>
    patiently.again(() => storage.commit(owner, entries), thrown);

  const commit = (owner: string, entries: readonly CommitEntry[]): MaybePromise<readonly CommitResult[]> => {
    try {
      const answer = storage.commit(owner, entries);
      return answer instanceof Promise ? answer.catch((thrown) => commitAgain(owner, entries, thrown)) : answer;
    } catch (thrown) {
      return commitAgain(owner, entries, thrown);
    }
  };

  const commitAlone = (owner: string, entry: CommitEntry): MaybePromise<CommitResult> => {
    const answer = commit(owner, [entry]);
    return answer instanceof Promise ? answer.then(([result]) => result as CommitResult) : (answer[0] as CommitResult);
  };

  /** A batch that is refused for good is stored entry by entry: what is wrong with one must not take others with it. */
  const settle = async (batch: readonly Waiting[], failure: unknown): Promise<void> => {
    for (const { owner, entry, resolve, reject } of batch) {
      if (batch.length === 1 || mayPass(failure)) reject(failure);
      else await Promise.resolve(commitAlone(owner, entry)).then(resolve, reject);
    }
  };

  const flush = () => {
    scheduled = false;
    while (waiting.length > 0 && onTheirWay.length < MOST_ON_THEIR_WAY) {
      if (isLate()) {
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
    const give = (results: readonly CommitResult[]) => {
      for (let i = 0; i < batch.length; i++) (batch[i] as Waiting).resolve(results[i] as CommitResult);
    };
    const { owner } = batch[0] as Waiting;
    const answer = commit(
      owner,
      batch.map(({ entry }) => entry),
    );
    answersLater = answer instanceof Promise;
    if (!(answer instanceof Promise)) {
      give(answer);
      return;
    }
    onTheirWay.push(batch);
    answer
      .then(give, (failure) => settle(batch, failure))
      .finally(() => {
        onTheirWay.splice(onTheirWay.indexOf(batch), 1);
        if (waiting.length > 0) schedule();
      });
  };

  /** What is written next, of one owner; nothing where it is better to wait for what is on its way. */
  const take = (): readonly Waiting[] | undefined => {
    const { owner } = waiting[0] as Waiting;
    const [other] = onTheirWay;
    const isWhole = !other && !(answersLater && waiting.length >= 2 * LEAST_ENTRIES);
    if (isWhole && waiting.length <= MOST_ENTRIES && waiting.every((one) => one.owner === owner)) {
      const batch = waiting;
      waiting = [];
      return batch;
    }
    if (other && waiting.length < LEAST_ENTRIES) return undefined;
    const wanted = isWhole || other ? MOST_ENTRIES : Math.min(MOST_ENTRIES, Math.ceil(waiting.length / 2));
    // What an execution writes is stored in the order in which it was made: never by two writes at a time.
    const elsewhere = new Set(other?.map(({ entry }) => entry.executionId));
    const here = new Set<string>();
    const batch: Waiting[] = [];
    const rest: Waiting[] = [];
    for (const one of waiting) {
      const id = one.entry.executionId;
      const hasRoom = batch.length < wanted || (here.has(id) && batch.length < MOST_ENTRIES);
      const fits = hasRoom && one.owner === owner && !elsewhere.has(id);
      if (fits) here.add(id);
      (fits ? batch : rest).push(one);
    }
    waiting = rest;
    return batch.length > 0 ? batch : undefined;
  };

  const schedule = () => {
    if (scheduled || onTheirWay.length >= MOST_ON_THEIR_WAY) return;
    scheduled = true;
    // Where writes were shared a moment ago, the others of this turn are waited for; the wait costs a lone one a third.
    if (loneWrites >= LONE_WRITES && !isLate()) RESOLVED.then(flush);
    else nextTurn(flushInTurn);
  };

  const flushInTurn = () => {
    turnedAt = clock.monotonic();
    flush();
  };

  const isLate = () => clock.monotonic() - turnedAt >= LONGEST_MS;

  if (!storage.capabilities.groupedCommits || !storage.capabilities.sharedCommits || !parts.groupCommit) {
    return { write: commitAlone };
  }
  return {
    write: (owner, entry) =>
      new Promise((resolve, reject) => {
        waiting.push({ owner, entry, resolve, reject });
        schedule();
      }),
  };
}
