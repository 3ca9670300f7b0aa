/** Writes commits: each entry under its fence, wholly or not at all; a batch in one transaction. */

import { startsWithResults } from '../../../../engine/execution/execution-record.ts';
import type { CommitEntry, NewExecution } from '../../../../engine/execution/stored-execution.ts';
import type { CommitResult, Storage } from '../../../../engine/storage/storage.port.ts';
import { type Admitted, admitStarts, limitedStart, storeStarts } from '../../sql/queues/admit-starts.ts';
import { purgeLimits, sweepLimits } from '../../sql/queues/purge-limits.ts';
import { KnownLimits } from '../../sql/queues/queue-cursor.ts';
import { runNow } from '../../sql/queues/steps.ts';
import type { DeliveriesTable } from '../../sql/tables/deliveries-table.ts';
import type { RunTransaction, SqlConnection } from '../drivers/driver.ts';
import type { BatchCharges, ChargesTable } from '../tables/charges-table.ts';
import { toTextColumn } from '../tables/columns.ts';
import { commitStatements, type Fence } from './commit-statements.ts';
import type { EndsTable } from './ends-table.ts';
import { createRefusals } from './explain-refusal.ts';
import { createQueues } from './queue-tables.ts';
import type { PutSignal } from './signals-table.ts';
import { isOneResult, maxGroupOf, stepStatements } from './step-statements.ts';

export interface CommitDependencies {
  readonly transaction: RunTransaction;
  readonly putSignal: PutSignal;
  readonly charges: ChargesTable;
  readonly deliveries: Pick<DeliveriesTable, 'put'>;
  readonly ends: EndsTable;
}

export function createCommit(
  connection: SqlConnection,
  namespace: string,
  { transaction, putSignal, charges, deliveries, ends: endLines }: CommitDependencies,
): Storage['commit'] {
  const writes = commitStatements(connection, namespace);
  const steps = stepStatements(connection, namespace);
  const refusals = createRefusals(connection, namespace);
  const maxGroup = maxGroupOf(connection);
  const { tables: queues } = createQueues(connection, namespace);
  const known = new KnownLimits();
  const sweep = sweepLimits((now) => runNow(purgeLimits(queues(), known, now)));

  /** The lines of what the present commit has ended. */
  let ended: string[] = [];
  const endOf = ({ end, counted }: CommitEntry, fence: Fence): boolean => {
    const isEnded = end !== undefined && writes.end(end, fence);
    if (isEnded && counted !== undefined) ended.push(counted);
    return isEnded;
  };

  /**
   * The answer to an entry that was refused. Only a refused entry is read again, so that a successful write costs no
   * read.
   */
  const refused = (entry: CommitEntry, fence: Fence, reason: CommitResult): CommitResult =>
    refusals.isRepeated(entry, fence) ? 'stored' : reason;

  const start = (execution: NewExecution, entry: CommitEntry, fence: Fence): boolean => {
    const { release, charge } = entry;
    if (!release) return writes.startHeld(execution, fence, charge);
    if (countParts(entry) === 0) return writes.startFree(execution, fence.epoch, release, charge);
    return writes.startToRelease(execution, fence, charge);
  };

  /**
   * Why a start is refused by its charge or by the document that it expects. Its own statement refuses it for any other reason, which
   * comes first.
   */
  const refuseStart = (
    execution: NewExecution,
    entry: CommitEntry,
    fence: Fence,
    paid: BatchCharges,
  ): CommitResult | undefined => {
    const { charge, expects, release } = entry;
    const refusal =
      expects && !writes.isAsExpected(expects, execution.createdAt)
        ? 'stale'
        : charge && paid.refusal(charge, release === undefined);
    if (!refusal) return undefined;
    const known = refusals.answerStart(execution, fence.id);
    if (known) return known;
    return !release && !writes.isRegistered(fence.worker) ? 'fenced' : refusal;
  };

  const commitOne = (worker: string, entry: CommitEntry, paid: BatchCharges): CommitResult => {
    const answer = commitParts(worker, entry, paid);
    if (answer !== 'stored') return answer;
    if (entry.start) writes.noteStart(entry.start);
    if (entry.deliveries) for (const delivery of entry.deliveries) deliveries.put(delivery);
    return answer;
  };

  /** An entry is refused before any part of it is written, except a start with a state conflict, which is undone. */
  const commitParts = (worker: string, entry: CommitEntry, paid: BatchCharges): CommitResult => {
    const { state, signals, end, release, charge } = entry;
    const fence = { id: toTextColumn(entry.executionId), epoch: entry.epoch, worker };
    let isHeld = false;
    if (entry.start) {
      const refusal = refuseStart(entry.start, entry, fence, paid);
      if (refusal) return refusal;
      const limited = limitedStart(entry);
      const now = entry.start.createdAt;
      if (limited) sweep(now);
      const admitted = limited && runNow(admitStarts(queues(), known, [limited], now));
      const admission = admitted?.answers[0];
      if (admission === 'slots-taken' || admission === 'queue-full') {
        const answer = refusals.answerStart(entry.start, fence.id);
        return answer ?? (release || writes.isRegistered(worker) ? admission : 'fenced');
      }
      if (!start(entry.start, entry, fence)) return refusals.answerStart(entry.start, fence.id) ?? 'fenced';
      if (limited) {
        const stored = { ...limited, begins: admission === 'begins' };
        runNow(storeStarts(queues(), (admitted as Admitted).states, [stored], now));
      }
      if (charge) paid.count(charge, release === undefined, 1);
      if (countParts(entry) === 0) return 'stored';
      isHeld = true;
    }
    if (state) {
      if (!writes.state(state, fence)) {
        if (entry.start) writes.undoStart(fence);
        if (charge) paid.count(charge, release === undefined, -1);
        return refused(entry, fence, writes.isHeld(fence) || entry.start ? 'state-conflict' : 'fenced');
      }
      isHeld = true;
    }
    for (const step of entry.steps) {
      // A write that changes nothing was fenced, or its key already has its result.
      if (!steps.one(step, fence) && !isHeld && !writes.isHeld(fence)) return refused(entry, fence, 'fenced');
      isHeld = true;
    }
    if (end) isHeld = endOf(entry, fence);
    else if (release) isHeld = writes.release(release, fence);
    else if (!isHeld) isHeld = writes.isHeld(fence);
    if (!isHeld) return refused(entry, fence, 'fenced');
    if (signals) for (const signal of signals) putSignal(signal);
    return 'stored';
  };

  /** Writes the end of an entry, if it has one, after its result was written. */
  const endOne = (worker: string, entry: CommitEntry): CommitResult =>
    !entry.end || endOf(entry, { id: toTextColumn(entry.executionId), epoch: entry.epoch, worker })
      ? 'stored'
      : 'fenced';

  /**
   * Writes the results of entries in groups, and everything else by itself. The order of entries is kept only for the
   * same execution. Groups of starts and of ends would save 2 % of the CPU time of fifty executions at a time.
   */
  const commitAll = (worker: string, batch: readonly CommitEntry[]): CommitResult[] => {
    const answers: CommitResult[] = new Array(batch.length);
    const paid = charges.ofBatch();
    let group: number[] = [];
    /** The executions of the group, and whether it ends them. */
    const ends = new Map<string, boolean>();
    const flush = () => {
      const isStored = group.length > 1 && steps.group(batch, group, worker);
      for (const at of group) {
        const entry = batch[at] as CommitEntry;
        answers[at] = isStored ? endOne(worker, entry) : commitOne(worker, entry, paid);
      }
      group = [];
      ends.clear();
    };
    for (let at = 0; at < batch.length; at++) {
      const entry = batch[at] as CommitEntry;
      const { executionId, end } = entry;
      const isGrouped = isOneResult(entry);
      if (ends.get(executionId) || (!isGrouped && ends.has(executionId))) flush();
      if (!isGrouped) {
        answers[at] = commitOne(worker, entry, paid);
      } else {
        ends.set(executionId, end !== undefined);
        if (group.push(at) === maxGroup) flush();
      }
    }
    flush();
    paid.store();
    if (ended.length > 0) endLines.put(ended);
    return answers;
  };

  return (worker, batch) => {
    const [first] = batch;
    if (!first) return [];
    const by = toTextColumn(worker);
    if (batch.length === 1 && countWrites(first) <= 1) return [commitOne(by, first, charges.ofBatch())];
    ended = [];
    return known.during(() => transaction(() => commitAll(by, batch)));
  };
}

/** How many parts an entry has besides a start and a release. */
function countParts({ steps, state, signals, deliveries, end }: CommitEntry): number {
  return steps.length + (signals?.length ?? 0) + (deliveries?.length ?? 0) + (state ? 1 : 0) + (end ? 1 : 0);
}

/**
 * How many statements an entry takes. A single statement is atomic; a transaction would cost more than the statement.
 */
function countWrites(entry: CommitEntry): number {
  const parts = countParts(entry);
  const { start, charge, expects } = entry;
  if (start) return parts + (start.tags || start.limits || startsWithResults(start) || charge || expects ? 2 : 1);
  // An end is counted, too.
  return parts + (entry.release || (entry.end && entry.counted !== undefined) ? 1 : 0);
}
