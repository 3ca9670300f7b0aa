/** A separate process that works on the executions of a Postgres store, and writes a row in the transaction of each step: `CHILD URL`. */

import { setTimeout as pause } from 'node:timers/promises';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { createOrchestrator, type OrchestratorOptions } from '../../src/index.ts';

const [, , url = ''] = process.argv;
export const ONCE = {
  name: 'once',
  flow: ['first', 'second'].map((agent) => ({ agent, operation: 'code', config: { script: 'write' } })),
};
export const scripts: OrchestratorOptions['scripts'] = {
  async write({ transaction, execution }) {
    await transaction.query('INSERT INTO once VALUES ($1, $2)', [execution.id, execution.agent]);
    await pause(2);
    return 1;
  },
};
if (url !== '') {
  const orchestrator = createOrchestrator({
    ...{ ensembles: [ONCE] as never, scripts, logger: false },
    storage: postgresStorage({ url }),
  });
  await orchestrator.ready();
  process.stdout.write('joined\n');
}
