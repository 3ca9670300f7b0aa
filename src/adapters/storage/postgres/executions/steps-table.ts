/** Reads the steps of executions. Only the outputs that are returned are read. */

import {
  AGENTS_IN_RECORD,
  type AgentResult,
  OUTPUTS_IN_RECORD_BYTES,
  PAGE_BYTES,
  SHORT_OUTPUT_BYTES,
} from '../../../../engine/execution/execution.ts';
import type { ExecutionStore } from '../../../../engine/storage/storage.port.ts';
import { readNumber, readText } from '../../sql/columns.ts';
import { readRun, readStep } from '../../sql/read-execution.ts';
import { type SqlClient, statement, toArray } from '../drivers/driver.ts';
import { toTextColumn } from '../tables/columns.ts';
import type { Names } from '../tables/names.ts';
import { STEP } from './record-columns.ts';

/** The methods of the storage port in this file. */
export interface StepsTable
  extends Pick<ExecutionStore, 'listSteps' | 'getStep' | 'getSteps' | 'skipSteps' | 'listEndedWaits'> {
  /** The agent runs of an execution's record. Outputs beyond the record's limit are left out. */
  readRuns(executionId: string): Promise<readonly AgentResult[]>;
}

/** More bytes than all outputs can have together. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

export function stepsTable(client: SqlClient, { executions, steps }: Names, namespace: string): StepsTable {
  const ref = `(SELECT ref FROM ${executions} WHERE namespace = $1 AND id = $2)`;
  const from = `${steps} WHERE execution = ${ref}`;
  const afterKey = `seq > coalesce((SELECT seq FROM ${from} AND key = $4::text), CASE WHEN $4::text IS NULL THEN 0 ELSE ${NO_LIMIT} END)`;
  const part = (which: string) => `(SELECT * FROM ${from} AND ${which} AND ${afterKey} ORDER BY seq LIMIT $3::bigint)`;
  const inOrder = 'OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING)';
  // Postgres knows the length of a value without reading it.
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
  const selectSome = statement(`SELECT ${STEP.join(', ')} FROM ${from} AND key = ANY($3::text[]) ORDER BY seq`, STEP);
  // Each part has an index in the order of `seq`, so Postgres merges them without reading the rows.
  const seqs = (which: string) => `(SELECT seq FROM ${from} AND ${which} ORDER BY seq LIMIT $3::bigint)`;
  const selectSkipped = statement(
    `WITH n AS (
      SELECT count(*) AS skipped, max(seq) AS last
      FROM (SELECT seq FROM (${seqs('NOT note')} UNION ALL ${seqs('note')}) y ORDER BY seq LIMIT $3::bigint) x
    )
    SELECT skipped, (SELECT key FROM ${from} AND NOT note AND seq = last UNION ALL SELECT key FROM ${from} AND note AND seq = last) AS key FROM n`,
    ['skipped', 'key'],
  );
  const selectWaits = statement(
    `SELECT key, started_at FROM ${from} AND note AND name <> '' AND name = $3 AND started_at > $4::bigint ORDER BY seq`,
    ['key', 'started_at'],
  );

  return {
    async listSteps(executionId, { after, limit, bytes = PAGE_BYTES, notes }) {
      const maxBytes = Number.isFinite(bytes) ? bytes : NO_LIMIT;
      const { rows } = await client.run(notes ? selectAll : selectRuns, [
        ...[namespace, toTextColumn(executionId), limit],
        ...[after === undefined ? null : toTextColumn(after), maxBytes],
      ]);
      return rows.map((row) => readStep(row, executionId));
    },
    async readRuns(executionId) {
      const { rows } = await client.run(selectRecord, [namespace, toTextColumn(executionId)]);
      return rows.map((row) => readRun(row, executionId));
    },
    async getStep(executionId, key) {
      const [row] = (await client.run(selectOne, [namespace, toTextColumn(executionId), toTextColumn(key)])).rows;
      return row && readStep(row, executionId);
    },
    async getSteps(executionId, keys) {
      const wanted = toArray(keys.map(toTextColumn));
      const { rows } = await client.run(selectSome, [namespace, toTextColumn(executionId), wanted]);
      return rows.map((row) => readStep(row, executionId));
    },
    async skipSteps(executionId, count) {
      const [row = {}] = (await client.run(selectSkipped, [namespace, toTextColumn(executionId), count])).rows;
      const name = `a step of execution ${executionId}`;
      const skipped = readNumber(row, 'skipped', name);
      return skipped === 0 ? { skipped } : { skipped, key: readText(row, 'key', name) };
    },
    async listEndedWaits(executionId, signal, since) {
      const { rows } = await client.run(selectWaits, [
        namespace,
        toTextColumn(executionId),
        toTextColumn(signal),
        since,
      ]);
      const name = `a wait of execution ${executionId}`;
      return rows.map((row) => ({ key: readText(row, 'key', name), at: readNumber(row, 'started_at', name) }));
    },
  };
}
