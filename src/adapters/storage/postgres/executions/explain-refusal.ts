/** Explains why a write did not store its entries: refused, and for which reason, or stored by an earlier call. */

import { isOrchestratorError, OrchestratorError } from '../../../../engine/base/errors.ts';
import { equalJson, type Json } from '../../../../engine/base/json/json.ts';
import { isDueAsReleased } from '../../../../engine/execution/due.ts';
import type { CommitEntry, StepRecord } from '../../../../engine/execution/stored-execution.ts';
import type { CommitResult } from '../../../../engine/storage/storage.port.ts';
import { readBoolean, readNumber } from '../../sql/columns.ts';
import { columnsOf, ENDED } from '../../sql/fields.ts';
import { readEnd, readStep } from '../../sql/read-execution.ts';
import { type SqlRow, type SqlRunner, statement, toArray } from '../drivers/driver.ts';
import { toTextColumn } from '../tables/columns.ts';
import type { Names } from '../tables/names.ts';
import { STEP } from './record-columns.ts';

/** What a write stored, if it did not store everything. */
export interface Written {
  /** The executions that it ended or released, by the id in their row. */
  readonly settled: ReadonlySet<string>;
  /** The ensembles whose state it changed. */
  readonly changed: ReadonlySet<string>;
}

export interface Refusals {
  answer(
    on: SqlRunner,
    worker: string,
    entries: readonly CommitEntry[],
    written: Written,
  ): Promise<readonly CommitResult[]>;
}

const EXECUTION_COLUMNS = [
  ...['id', 'seed', 'epoch', 'due_at', 'cancel_at', 'signals'],
  ...[...columnsOf(ENDED), 'handover'],
];
const STEP_PREFIX = 'step_';
const NO_KEYS: ReadonlySet<string> = new Set();

/** Finds those of the keys that executions have. */
const keysIn = (executions: string) =>
  statement(
    `SELECT idempotency_key FROM unnest($2::text[]) x (key)
    CROSS JOIN LATERAL (SELECT idempotency_key FROM ${executions} WHERE idempotency_key = x.key AND namespace = $1 LIMIT 1) e`,
    ['idempotency_key'],
  );

export function createRefusals({ owners, executions, steps }: Names, namespace: string): Refusals {
  const select = statement(
    `SELECT x.nr, ${EXECUTION_COLUMNS.map((column) => `e.${column}`).join(', ')}, e.owner IS NULL AS is_free, o.ref IS NOT NULL AS is_held,
      ${STEP.map((column) => `s.${column} AS ${STEP_PREFIX}${column}`).join(', ')}
    FROM unnest($3::text[], $4::text[]) WITH ORDINALITY x (id, key, nr)
    CROSS JOIN LATERAL (SELECT * FROM ${executions} WHERE namespace = $1 AND id = x.id LIMIT 1) e
    LEFT JOIN ${owners} o ON o.namespace = $1 AND o.id = $2 AND o.ref = e.owner
    LEFT JOIN LATERAL (SELECT * FROM ${steps} WHERE execution = e.ref AND key = x.key LIMIT 1) s ON true`,
    ['nr', ...EXECUTION_COLUMNS, 'is_free', 'is_held', ...STEP.map((column) => STEP_PREFIX + column)],
  );

  const selectWorker = statement(`SELECT id FROM ${owners} WHERE namespace = $1 AND id = $2`, ['id']);
  const isRegistered = async (on: SqlRunner, worker: string) =>
    (await on.run(selectWorker, [namespace, toTextColumn(worker)])).rows.length > 0;

  const selectKeys = keysIn(executions);
  /** The idempotency keys of starts that were not stored, as far as other executions have them. */
  const usedKeys = async (on: SqlRunner, starts: readonly CommitEntry[]): Promise<ReadonlySet<string>> => {
    const keys = starts.flatMap(({ start }) =>
      start?.idempotencyKey === undefined ? [] : [toTextColumn(start.idempotencyKey)],
    );
    if (keys.length === 0) return NO_KEYS;
    const { rows } = await on.run(selectKeys, [namespace, toArray(keys)]);
    return new Set(rows.map((row) => row.idempotency_key as string));
  };

  return {
    async answer(on, worker, entries, written) {
      const ids = toArray(entries.map(({ executionId }) => toTextColumn(executionId)));
      const keys = toArray(
        entries.map(({ steps: records }) => (records.length > 0 ? toTextColumn(lastOf(records).key) : null)),
      );
      const { rows } = await on.run(select, [namespace, toTextColumn(worker), ids, keys]);
      const rowOfEntry = new Map(rows.map((row) => [readNumber(row, 'nr', 'an execution') - 1, row]));
      const used = await usedKeys(
        on,
        entries.filter((_, i) => !rowOfEntry.has(i)),
      );
      const isStale = (entry: CommitEntry, i: number) => entry.expects !== undefined && !rowOfEntry.has(i);
      // A start that the worker may make, and whose id and key are free, was refused because of the document.
      const mayStart = entries.some(isStale) && (await isRegistered(on, worker));
      return entries.map((entry, i) => {
        const key = entry.start?.idempotencyKey;
        if (!rowOfEntry.has(i) && key !== undefined && used.has(toTextColumn(key))) return 'exists';
        if (isStale(entry, i)) return mayStart || entry.release ? 'stale' : 'fenced';
        return answerOne(entry, rowOfEntry.get(i), written);
      });
    },
  };
}

function answerOne(entry: CommitEntry, row: SqlRow | undefined, { settled, changed }: Written): CommitResult {
  const { start, state, end, release, epoch } = entry;
  if (!row) return 'fenced';
  const id = row.id as string;
  if (start) return row.seed === toTextColumn(start.seed) ? 'stored' : 'exists';
  if (end || release ? settled.has(id) : state && changed.has(toTextColumn(state.ensemble))) return 'stored';
  const isEpoch = readNumber(row, 'epoch', `execution ${id}`) === epoch;
  if (!isEpoch || !readBoolean(row, 'is_held')) return isEpoch && isRepeated(entry, row) ? 'stored' : 'fenced';
  if (state) return isSameStep(entry, row) ? 'stored' : 'state-conflict';
  // The worker holds the execution now, so it did at the write: the step was stored before, or the entry writes
  // nothing.
  if (!end && !release) return 'stored';
  const message = `execution ${entry.executionId} was not written although the worker holds it; try again`;
  throw new OrchestratorError('OVERLOADED', message, { retryable: true });
}

/** Whether an earlier call stored the whole entry: the answer to that call did not arrive, so the worker repeats it. */
function isRepeated(entry: CommitEntry, row: SqlRow): boolean {
  const { end, release } = entry;
  if (end) return isSame(() => readEnd(row), end);
  if (!release) return isSameStep(entry, row);
  if (!readBoolean(row, 'is_free') || row.status !== release.status) return false;
  const numberOf = (column: string) => (row[column] === null ? undefined : readNumber(row, column, 'an execution'));
  const facts = { cancelRequestedAt: numberOf('cancel_at'), signals: numberOf('signals') ?? 0 };
  return isDueAsReleased(readNumber(row, 'due_at', 'an execution'), release, facts);
}

function isSameStep({ steps, executionId }: CommitEntry, row: SqlRow): boolean {
  if (steps.length === 0 || row[`${STEP_PREFIX}key`] === null) return false;
  const step = Object.fromEntries(STEP.map((column) => [column, row[STEP_PREFIX + column] ?? null]));
  return isSame(() => readStep(step, executionId), lastOf(steps));
}

function lastOf(steps: readonly StepRecord[]): StepRecord {
  return steps.at(-1) as StepRecord;
}

function isSame(read: () => unknown, wanted: unknown): boolean {
  try {
    const found = read();
    return found !== undefined && equalJson(found as Json, JSON.parse(JSON.stringify(wanted)) as Json);
  } catch (error) {
    // A damaged row is not the row that the entry stored.
    if (isOrchestratorError(error, 'INTERNAL')) return false;
    throw error;
  }
}
