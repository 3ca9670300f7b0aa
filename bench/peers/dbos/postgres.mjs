/** DBOS: a workflow of five steps, called in this process. */

import { DBOS } from '@dbos-inc/dbos-sdk';
import pg from 'pg';

export async function setup({ postgres }) {
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: postgres, logLevel: 'error' });
  const workflow = DBOS.registerWorkflow(
    async () => {
      let x = 0;
      for (let i = 0; i < 5; i++) x = await DBOS.runStep(async () => x + 1, { name: `s${i}` });
      return x;
    },
    { name: 'bench' },
  );
  await DBOS.launch();
  return {
    async run() {
      const x = await workflow();
      if (x !== 5) throw new Error(`expected 5, not ${x}`);
    },
    async check(executions) {
      const client = new pg.Client({ connectionString: postgres });
      await client.connect();
      const count = `SELECT (SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS') AS workflows,
        (SELECT count(*) FROM dbos.operation_outputs) AS steps`;
      const { workflows, steps } = (await client.query(count)).rows[0];
      await client.end();
      if (Number(workflows) !== executions || Number(steps) !== 5 * executions)
        throw new Error(`${executions} executions left ${workflows} finished workflows with ${steps} steps`);
    },
    close: () => DBOS.shutdown(),
  };
}
