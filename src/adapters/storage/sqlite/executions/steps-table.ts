/** Reads the steps of executions. Indexes find the steps; only the outputs that are returned are read. */

import {
  AGENTS_IN_RECORD,
  type AgentResult,
  OUTPUTS_IN_RECORD_BYTES,
  PAGE_BYTES,
  SHORT_OUTPUT_BYTES,
} from '../../../../engine/execution/execution.ts';
import type { StepRecord } from '../../../../engine/execution/stored-execution.ts';
import type { ExecutionStore, StepQuery } from '../../../../engine/storage/storage.port.ts';
import { readNumber, readText } from '../../sql/columns.ts';
import { readRun, readStep } from '../../sql/read-execution.ts';
import type { SqlConnection, SqlRow, SqlValue } from '../drivers/driver.ts';
import { toLiteral, toTextColumn } from '../tables/columns.ts';
import { DECISIONS, RUNS } from '../tables/names.ts';
import { byteLength, SHORT_STEP, STEP } from './record-columns.ts';

/** The methods of the storage port in this file. */
export interface StepsTable extends Pick<ExecutionStore, 'getStep' | 'getSteps' | 'skipSteps' | 'listEndedWaits'> {
  listSteps(executionId: string, query: StepQuery): readonly StepRecord[];
  /** The agent runs of an execution's record. Outputs beyond the record's limit are left out. */
  readRuns(executionId: string): readonly AgentResult[];
}

const PICKED = 'FROM ensemble_steps WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq';

export function stepsTable(connection: SqlConnection, namespace: string): StepsTable {
  const one = `(SELECT ref FROM ensemble_executions WHERE namespace = ${toLiteral(namespace)} AND id = ?)`;
  const bytes = byteLength(connection);
  const afterKey = `AND seq > coalesce((SELECT seq FROM ensemble_steps WHERE execution = ${one} AND key = ?), ?)`;
  const size = `SELECT seq, ${bytes('output')} AS bytes`;
  const selectRuns = connection.prepare(`${size} ${RUNS} ${one} ${afterKey} ORDER BY seq LIMIT ?`);
  const selectAll = connection.prepare(
    `${size} ${RUNS} ${one} ${afterKey} UNION ALL ${size} ${DECISIONS} ${one} ${afterKey} ORDER BY seq LIMIT ?`,
  );
  const select = connection.prepare(`SELECT ${STEP} ${PICKED}`);
  const selectRecord = connection.prepare(`
    SELECT ${SHORT_STEP}, CASE WHEN seq <= ? OR ${bytes('output')} <= ${SHORT_OUTPUT_BYTES} THEN output END AS output ${PICKED}`);
  const selectOne = connection.prepare(`SELECT ${STEP} FROM ensemble_steps WHERE execution = ${one} AND key = ?`);
  const selectSome = connection.prepare(
    `SELECT ${STEP} FROM ensemble_steps WHERE execution = ${one} AND key IN (SELECT value FROM json_each(?)) ORDER BY seq`,
  );
  // Both parts are in the order of their index, so SQLite merges them without sorting.
  const inOrder = `SELECT seq ${RUNS} ${one} UNION ALL SELECT seq ${DECISIONS} ${one} ORDER BY seq`;
  const countSteps = connection.prepare(`SELECT count(*) AS steps FROM (${inOrder} LIMIT ?)`);
  const selectNth = connection.prepare(
    `SELECT key FROM ensemble_steps WHERE seq = (SELECT seq FROM (${inOrder} LIMIT 1 OFFSET ?))`,
  );
  const selectWaits = connection.prepare(`
    SELECT key, started_at FROM ensemble_steps INDEXED BY ensemble_steps_waits
    WHERE execution = ${one} AND name = ? AND note = 1 AND name <> '' AND started_at > ?`);

  /** The row numbers of a page, each with the length of its output. */
  const places = (executionId: string, { after, limit, notes }: StepQuery): readonly SqlRow[] => {
    const id = toTextColumn(executionId);
    // No step comes after a key that is not stored.
    const from: SqlValue[] = after === undefined ? [id, id, null, 0] : [id, id, toTextColumn(after), AFTER_ALL_ROWS];
    return notes ? selectAll.all([...from, ...from, limit]) : selectRuns.all([...from, limit]);
  };
  const pick = (rows: readonly SqlRow[]) => JSON.stringify(rows.map(({ seq }) => seq));

  return {
    listSteps(executionId, query) {
      const rows = places(executionId, query);
      const page = rows.slice(0, countFitting(rows, query.bytes ?? PAGE_BYTES) || 1);
      return page.length === 0 ? [] : select.all([pick(page)]).map((row) => readStep(row, executionId));
    },
    readRuns(executionId) {
      const rows = places(executionId, { limit: AGENTS_IN_RECORD });
      const last = rows[countFitting(rows, OUTPUTS_IN_RECORD_BYTES) - 1];
      return selectRecord.all([last?.seq ?? 0, pick(rows)]).map((row) => readRun(row, executionId));
    },
    getStep(executionId, key) {
      const [row] = selectOne.all([toTextColumn(executionId), toTextColumn(key)]);
      return row && readStep(row, executionId);
    },
    getSteps(executionId, keys) {
      const rows = selectSome.all([toTextColumn(executionId), JSON.stringify(keys.map(toTextColumn))]);
      return rows.map((row) => readStep(row, executionId));
    },
    skipSteps(executionId, count) {
      const id = toTextColumn(executionId);
      const skipped = readNumber(countSteps.all([id, id, count])[0] ?? {}, 'steps', `execution ${executionId}`);
      const [row] = skipped === 0 ? [] : selectNth.all([id, id, skipped - 1]);
      return row ? { skipped, key: readText(row, 'key', `a step of execution ${executionId}`) } : { skipped };
    },
    listEndedWaits(executionId, signal, since) {
      const name = `a wait of execution ${executionId}`;
      return selectWaits
        .all([toTextColumn(executionId), toTextColumn(signal), since])
        .map((row) => ({ key: readText(row, 'key', name), at: readNumber(row, 'started_at', name) }));
    },
  };
}

/** Greater than every row number. */
const AFTER_ALL_ROWS = Number.MAX_SAFE_INTEGER;

/** @returns how many of the first rows have at most `maxBytes` together */
function countFitting(rows: readonly SqlRow[], maxBytes: number): number {
  let total = 0;
  const end = rows.findIndex(({ bytes }) => {
    total += Number(bytes);
    return total > maxBytes;
  });
  return end < 0 ? rows.length : end;
}
