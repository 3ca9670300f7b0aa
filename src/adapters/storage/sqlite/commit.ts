/** Writes commits: each entry under its fence, wholly or not at all, a batch in one transaction. */

import type { CommitEntry, NewExecution } from '../../../engine/model/stored-execution.ts';
import type { CommitResult, Storage } from '../../../engine/ports/storage.ts';
import { toTextColumn } from './columns.ts';
import type { RunTransaction, SqlConnection } from './connection.ts';
import { entryWrites, type Fence } from './entry-writes.ts';
import type { PutSignal } from './signals-table.ts';
import { MOST_ROWS } from './sized-statement.ts';
import { isOneResult, stepWrites } from './step-writes.ts';
import { storedBefore } from './stored-before.ts';

export function createCommit(
  connection: SqlConnection,
  namespace: string,
  transaction: RunTransaction,
  putSignal: PutSignal,
): Storage['commit'] {
  const writes = entryWrites(connection, namespace);
  const steps = stepWrites(connection, namespace);
  const before = storedBefore(connection, namespace);

  /** What to answer for an entry that was refused: its fence is asked for here alone, so that the good way costs no read. */
  const refused = (entry: CommitEntry, fence: Fence, reason: CommitResult): CommitResult =>
    before.isRepeated(entry, fence) ? 'stored' : reason;

  const start = (execution: NewExecution, entry: CommitEntry, fence: Fence): boolean => {
    if (!entry.release) return writes.startHeld(execution, fence);
    if (countParts(entry) === 0) return writes.startFree(execution, fence.epoch, entry.release);
    return writes.startInPassing(execution, fence);
  };

  /** Whatever refuses the entry does so before anything of it is written. */
  const commitOne = (owner: string, entry: CommitEntry): CommitResult => {
    const { state, deliveries, signals, end, release } = entry;
    const fence = { id: toTextColumn(entry.executionId), epoch: entry.epoch, owner };
    let isHeld = false;
    if (entry.start) {
      if (!start(entry.start, entry, fence)) return before.startUnder(entry.start, fence.id) ?? 'fenced';
      if (countParts(entry) === 0) return 'stored';
      isHeld = true;
    }
    if (state) {
      if (!writes.state(state, fence)) {
        if (entry.start) writes.undoStart(fence);
        return refused(entry, fence, writes.isHeld(fence) || entry.start ? 'state-conflict' : 'fenced');
      }
      isHeld = true;
    }
    for (const step of entry.steps) {
      // One that wrote nothing was fenced, or its key has its result already.
      if (!steps.one(step, fence) && !isHeld && !writes.isHeld(fence)) return refused(entry, fence, 'fenced');
      isHeld = true;
    }
    for (const delivery of deliveries ?? []) {
      if (!writes.delivery(delivery, fence) && !isHeld && !writes.isHeld(fence)) return refused(entry, fence, 'fenced');
      isHeld = true;
    }
    if (end) isHeld = writes.end(end, fence);
    else if (release) isHeld = writes.release(release, fence);
    else if (!isHeld) isHeld = writes.isHeld(fence);
    if (!isHeld) return refused(entry, fence, 'fenced');
    if (signals) for (const signal of signals) putSignal(signal);
    return 'stored';
  };

  const writeGroup = (kind: Kind, batch: readonly CommitEntry[], places: readonly number[], owner: string): boolean => {
    if (kind === 'result') return steps.group(batch, places, owner);
    const entries = places.map((at) => batch[at] as CommitEntry);
    if (kind === 'start') return writes.startGroup(entries, owner);
    return steps.group(batch, places, owner) && writes.endGroup(entries, owner);
  };

  /** What there is most of is written in groups: other entries may overtake it, but for those of the same execution. */
  const commitAll = (owner: string, batch: readonly CommitEntry[]): CommitResult[] => {
    const answers: CommitResult[] = new Array(batch.length);
    const groups: Record<Kind, number[]> = { start: [], result: [], end: [] };
    const kinds = new Map<string, Kind>();
    const flush = (kind: Kind) => {
      const places = groups[kind];
      groups[kind] = [];
      const isStored = places.length > 1 && writeGroup(kind, batch, places, owner);
      for (const at of places) answers[at] = isStored ? 'stored' : commitOne(owner, batch[at] as CommitEntry);
    };
    for (let at = 0; at < batch.length; at++) {
      const entry = batch[at] as CommitEntry;
      const kind = kindOf(entry);
      const earlier = kinds.get(entry.executionId);
      if (earlier && (earlier !== kind || kind !== 'result')) flush(earlier);
      if (kind === undefined) {
        answers[at] = commitOne(owner, entry);
        continue;
      }
      kinds.set(entry.executionId, kind);
      if (groups[kind].push(at) === MOST_ROWS) flush(kind);
    }
    for (const kind of KINDS) flush(kind);
    return answers;
  };

  return (owner, batch) => {
    const [first] = batch;
    if (!first) return [];
    const by = toTextColumn(owner);
    if (batch.length === 1 && countWrites(first) <= 1) return [commitOne(by, first)];
    return transaction(() => commitAll(by, batch));
  };
}

/** What is written in groups: a start, a result, or the end with the last result, and nothing else. */
type Kind = 'start' | 'result' | 'end';
const KINDS: readonly Kind[] = ['start', 'result', 'end'];

function kindOf({ start, steps, state, deliveries, signals, release, end }: CommitEntry): Kind | undefined {
  if (state || deliveries || signals || release) return undefined;
  if (start) return steps.length === 0 && !end ? 'start' : undefined;
  if (!isOneResult(steps)) return undefined;
  return end ? 'end' : 'result';
}

/** What an entry holds beside a start and a release. */
function countParts({ steps, state, deliveries, signals, end }: CommitEntry): number {
  return steps.length + (deliveries?.length ?? 0) + (signals?.length ?? 0) + (state ? 1 : 0) + (end ? 1 : 0);
}

/** How many statements write for an entry: one is atomic by itself, and a transaction around it would cost more than it. */
function countWrites(entry: CommitEntry): number {
  const parts = countParts(entry);
  if (entry.start) return parts === 0 ? 1 : parts + 1;
  return parts + (entry.release ? 1 : 0);
}
