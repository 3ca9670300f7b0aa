/** The steps of executions: every way of reading. Outputs are read of what is given alone. */

import {
  AGENTS_IN_RECORD,
  type AgentRun,
  OUTPUTS_IN_RECORD_BYTES,
  PAGE_BYTES,
  SHORT_OUTPUT_BYTES,
} from '../../../engine/model/execution.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import { readNumber, readText } from '../sql/columns.ts';
import { readRun, readStep } from '../sql/read-execution.ts';
import { toText } from './columns.ts';
import type { Names } from './names.ts';
import { STEP } from './record-columns.ts';
import { type SqlClient, statement } from './sql-client.ts';

/**
 * Two indexes that together hold each step once, in the order in which they were first stored: none of them can be taken for the
 * primary key by who looks up a key.
 */
export const STEPS_MIGRATION = `
  CREATE INDEX steps_runs ON $.steps (execution, seq) WHERE NOT note;
  CREATE INDEX steps_notes ON $.steps (execution, seq) WHERE note;
  ALTER TABLE $.executions ADD COLUMN waits_for text;
`;

/** The verbs of the storage port that stand here. */
export interface StepsTable extends Pick<Storage, 'listSteps' | 'getStep' | 'skipRuns' | 'listEndedWaits'> {
  /** Those of a record. */
  readRuns(executionId: string): Promise<readonly AgentRun[]>;
}

/** Above what all outputs that there can be have together. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

export function stepsTable(client: SqlClient, { executions, steps }: Names, namespace: string): StepsTable {
  const ref = `(SELECT ref FROM ${executions} WHERE namespace = $1 AND id = $2)`;
  const from = `${steps} WHERE execution = ${ref}`;
  const behind = `seq > coalesce((SELECT seq FROM ${from} AND key = $4::text), CASE WHEN $4::text IS NULL THEN 0 ELSE ${NO_LIMIT} END)`;
  const part = (which: string) => `(SELECT * FROM ${from} AND ${which} AND ${behind} ORDER BY seq LIMIT $3::bigint)`;
  const inOrder = 'OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING)';
  // Postgres knows how long a value is without fetching it.
  const page = (rows: string) =>
    statement(
      `SELECT ${STEP.join(', ')} FROM (
        SELECT x.*, sum(octet_length(output)) ${inOrder} AS total, row_number() ${inOrder} AS nr
        FROM (SELECT * FROM ${rows} r ORDER BY seq LIMIT $3::bigint) x
      ) y WHERE nr = 1 OR total <= $5::bigint ORDER BY seq`,
      STEP,
    );
  const selectRuns = page(part('NOT note'));
  const selectAll = page(`(${part('NOT note')} UNION ALL ${part('note')})`);
  const short = STEP.filter((column) => column !== 'output');
  const selectRecord = statement(
    `SELECT ${short.join(', ')},
      CASE WHEN total <= ${OUTPUTS_IN_RECORD_BYTES} OR octet_length(output) <= ${SHORT_OUTPUT_BYTES} THEN output END AS output
    FROM (
      SELECT x.*, sum(octet_length(output)) ${inOrder} AS total
      FROM (SELECT * FROM ${from} AND NOT note ORDER BY seq LIMIT ${AGENTS_IN_RECORD}) x
    ) y ORDER BY seq`,
    [...short, 'output'],
  );
  const selectOne = statement(`SELECT ${STEP.join(', ')} FROM ${from} AND key = $3`, STEP);
  const selectSkipped = statement(
    `WITH n AS (SELECT count(*) AS skipped FROM (SELECT FROM ${from} AND NOT note ORDER BY seq LIMIT $3::bigint) x)
    SELECT skipped, (
      SELECT key FROM ${from} AND NOT note ORDER BY seq LIMIT 1 OFFSET greatest(skipped - 1, 0)
    ) AS key FROM n`,
    ['skipped', 'key'],
  );
  const selectWaits = statement(
    `SELECT key, started_at FROM ${from} AND note AND name <> '' AND name = $3 AND started_at > $4::bigint ORDER BY seq`,
    ['key', 'started_at'],
  );

  return {
    async listSteps(executionId, { after, limit, bytes = PAGE_BYTES, notes }) {
      const most = Number.isFinite(bytes) ? bytes : NO_LIMIT;
      const { rows } = await client.run(notes ? selectAll : selectRuns, [
        ...[namespace, toText(executionId), limit],
        ...[after === undefined ? null : toText(after), most],
      ]);
      return rows.map((row) => readStep(row, executionId));
    },
    async readRuns(executionId) {
      const { rows } = await client.run(selectRecord, [namespace, toText(executionId)]);
      return rows.map((row) => readRun(row, executionId));
    },
    async getStep(executionId, key) {
      const [row] = (await client.run(selectOne, [namespace, toText(executionId), toText(key)])).rows;
      return row && readStep(row, executionId);
    },
    async skipRuns(executionId, count) {
      const [row = {}] = (await client.run(selectSkipped, [namespace, toText(executionId), count])).rows;
      const name = `a step of execution ${executionId}`;
      const skipped = readNumber(row, 'skipped', name);
      return skipped === 0 ? { skipped } : { skipped, key: readText(row, 'key', name) };
    },
    async listEndedWaits(executionId, signal, since) {
      const { rows } = await client.run(selectWaits, [namespace, toText(executionId), toText(signal), since]);
      const name = `a wait of execution ${executionId}`;
      return rows.map((row) => ({ key: readText(row, 'key', name), at: readNumber(row, 'started_at', name) }));
    },
  };
}
