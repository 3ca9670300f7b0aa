/**
 * Bare `pg` with prepared statements: each record in its own commit over 20 connections (`each`), or the records of all running
 * executions in one statement over one connection (`group`).
 */

import pg from 'pg';
import { checkRecords, fiveSteps } from '../../durable/journal.mjs';
import { checkSynchronousCommit } from '../../durable/postgres.mjs';

const IN_ONE_STATEMENT = 500;

export async function setup({ argument, postgres }) {
  const pool = new pg.Pool({ connectionString: postgres, max: argument === 'group' ? 1 : 20 });
  await checkSynchronousCommit(pool);
  await pool.query(
    'CREATE TABLE records (execution text, position int, data jsonb, PRIMARY KEY (execution, position))',
  );
  return {
    note: argument === 'group' ? '1 connection' : '20 connections',
    run: fiveSteps(argument === 'group' ? groupCommit(pool) : commitEach(pool)),
    async check(executions) {
      const { rows } = await pool.query(
        `SELECT count(*) AS records, count(*) FILTER (WHERE position = 6 AND data @> '{"x":5}') AS right FROM records`,
      );
      checkRecords(rows[0], executions);
    },
    close: () => pool.end(),
  };
}

function commitEach(pool) {
  const text = 'INSERT INTO records VALUES ($1, $2, $3)';
  return (...values) => pool.query({ name: 'put', text, values });
}

function groupCommit(pool) {
  const text = 'INSERT INTO records SELECT * FROM unnest($1::text[], $2::int[], $3::jsonb[])';
  const waiting = [];
  let flushing = false;
  const flush = async () => {
    while (waiting.length > 0) {
      const batch = waiting.splice(0, IN_ONE_STATEMENT);
      const values = [0, 1, 2].map((column) => batch.map(({ record }) => record[column]));
      try {
        await pool.query({ name: 'put', text, values });
        for (const { stored } of batch) stored();
      } catch (error) {
        for (const { failed } of batch) failed(error);
      }
    }
    flushing = false;
  };
  return (...record) =>
    new Promise((stored, failed) => {
      waiting.push({ record, stored, failed });
      if (flushing) return;
      flushing = true;
      queueMicrotask(flush);
    });
}
