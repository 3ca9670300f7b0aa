/** The steps of executions: every way of reading. The indexes are read first, and outputs of what is given alone. */

import {
  AGENTS_IN_RECORD,
  type AgentRun,
  OUTPUTS_IN_RECORD_BYTES,
  PAGE_BYTES,
  SHORT_OUTPUT_BYTES,
} from '../../../engine/model/execution.ts';
import type { StepRecord } from '../../../engine/model/stored-execution.ts';
import type { StepQuery, Storage } from '../../../engine/ports/storage.ts';
import { readNumber, readText } from '../sql/columns.ts';
import { readRun, readStep } from '../sql/read-execution.ts';
import { toLiteral, toTextColumn } from './columns.ts';
import type { SqlConnection, SqlRow, SqlValue } from './connection.ts';

/** The verbs of the storage port that this table answers. */
export interface StepsTable extends Pick<Storage, 'getStep' | 'skipRuns' | 'listEndedWaits'> {
  listSteps(executionId: string, query: StepQuery): readonly StepRecord[];
  /** Those of a record. */
  readRuns(executionId: string): readonly AgentRun[];
}

/** In the order of the rows, which is that in which they were first stored. */
const RUNS = 'FROM ensemble_steps INDEXED BY ensemble_steps_runs WHERE note IS NULL AND execution =';
const NOTES = 'FROM ensemble_steps INDEXED BY ensemble_steps_notes WHERE note = 1 AND execution =';
/** How many agents ran, for the row `ref`. */
export const COUNT_RUNS = `(SELECT count(*) ${RUNS} ref AND retry_at IS NULL)`;

/** Of what stands before the output alone: what is behind it is reached through all of it. */
const SHORT = 'seq, key, name, status, attempts, started_at, duration, retry_at, error';
/** All that a record is made of. Never `*`: the names of columns come from the file then, which may be damaged. */
export const STEP = `${SHORT}, output, note`;
const PICKED = 'FROM ensemble_steps WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq';

export function stepsTable(connection: SqlConnection, namespace: string): StepsTable {
  const one = `(SELECT ref FROM ensemble_executions WHERE namespace = ${toLiteral(namespace)} AND id = ?)`;
  const bytes = bytesOf(connection);
  const behind = `AND seq > coalesce((SELECT seq FROM ensemble_steps WHERE execution = ${one} AND key = ?), ?)`;
  const size = `SELECT seq, ${bytes('output')} AS bytes`;
  const selectRuns = connection.prepare(`${size} ${RUNS} ${one} ${behind} ORDER BY seq LIMIT ?`);
  const selectAll = connection.prepare(
    `${size} ${RUNS} ${one} ${behind} UNION ALL ${size} ${NOTES} ${one} ${behind} ORDER BY seq LIMIT ?`,
  );
  const select = connection.prepare(`SELECT ${STEP} ${PICKED}`);
  const selectRecord = connection.prepare(`
    SELECT ${SHORT}, CASE WHEN seq <= ? OR ${bytes('output')} <= ${SHORT_OUTPUT_BYTES} THEN output END AS output ${PICKED}`);
  const selectOne = connection.prepare(`SELECT ${STEP} FROM ensemble_steps WHERE execution = ${one} AND key = ?`);
  const countRuns = connection.prepare(`SELECT count(*) AS runs FROM (SELECT 1 ${RUNS} ${one} LIMIT ?)`);
  const selectNth = connection.prepare(`
    SELECT key FROM ensemble_steps WHERE seq = (SELECT seq ${RUNS} ${one} ORDER BY seq LIMIT 1 OFFSET ?)`);
  const selectWaits = connection.prepare(`
    SELECT key, started_at FROM ensemble_steps INDEXED BY ensemble_steps_waits
    WHERE execution = ${one} AND name = ? AND note = 1 AND name <> '' AND started_at > ?`);

  /** What stands where, and how long its output is. */
  const places = (executionId: string, { after, limit, notes }: StepQuery): readonly SqlRow[] => {
    const id = toTextColumn(executionId);
    // Behind a key that is not there stands nothing.
    const from: SqlValue[] = after === undefined ? [id, id, null, 0] : [id, id, toTextColumn(after), NOWHERE];
    return notes ? selectAll.all([...from, ...from, limit]) : selectRuns.all([...from, limit]);
  };
  const pick = (rows: readonly SqlRow[]) => JSON.stringify(rows.map(({ seq }) => seq));

  return {
    listSteps(executionId, query) {
      const rows = places(executionId, query);
      const page = rows.slice(0, fitting(rows, query.bytes ?? PAGE_BYTES) || 1);
      return page.length === 0 ? [] : select.all([pick(page)]).map((row) => readStep(row, executionId));
    },
    readRuns(executionId) {
      const rows = places(executionId, { limit: AGENTS_IN_RECORD });
      const last = rows[fitting(rows, OUTPUTS_IN_RECORD_BYTES) - 1];
      return selectRecord.all([last?.seq ?? 0, pick(rows)]).map((row) => readRun(row, executionId));
    },
    getStep(executionId, key) {
      const [row] = selectOne.all([toTextColumn(executionId), toTextColumn(key)]);
      return row && readStep(row, executionId);
    },
    skipRuns(executionId, count) {
      const id = toTextColumn(executionId);
      const skipped = readNumber(countRuns.all([id, count])[0] ?? {}, 'runs', `execution ${executionId}`);
      const [row] = skipped === 0 ? [] : selectNth.all([id, skipped - 1]);
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

/** Behind every row. */
const NOWHERE = Number.MAX_SAFE_INTEGER;

/** How many of the first rows have no more bytes together. */
function fitting(rows: readonly SqlRow[], most: number): number {
  let total = 0;
  const end = rows.findIndex(({ bytes }) => {
    total += Number(bytes);
    return total > most;
  });
  return end < 0 ? rows.length : end;
}

/** How long a column is, in bytes: newer versions of SQLite tell without reading it. */
export function bytesOf(connection: SqlConnection): (column: string) => string {
  try {
    connection.prepare("SELECT octet_length('') AS bytes").all([]);
    return (column) => `octet_length(${column})`;
  } catch {
    return (column) => `length(CAST(${column} AS BLOB))`;
  }
}
