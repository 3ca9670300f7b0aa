/** This library on Postgres, with its defaults and a `pg` pool with its own. */

import pg from 'pg';
import { checkStored, countStored, fiveSteps } from '../../durable/library-steps.mjs';
import { importStore } from '../../durable/library-store.mjs';
import { checkSynchronousCommit } from '../../durable/postgres.mjs';

export async function setup({ postgres }) {
  const { postgresStorage } = await importStore('postgres');
  const pool = new pg.Pool({ connectionString: postgres });
  const { orchestrator, run } = await fiveSteps(postgresStorage({ pool }));
  return {
    note: `\`pg\`, up to ${pool.options.max} connections`,
    run,
    async check(executions) {
      await checkSynchronousCommit(pool);
      checkStored((await pool.query(countStored('ensemble.'))).rows[0], executions);
    },
    async close() {
      await orchestrator.close();
      await pool.end();
    },
  };
}
