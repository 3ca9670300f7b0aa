/**
 * A process of its own that serves a schedule of every second on Postgres: `postgres-schedule-child NAME CONNECTION`.
 * It prints `ready`, writes each run into the table `ledger`, and runs until it is killed.
 */

import { writeSync } from 'node:fs';
import pg from 'pg';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';

const [, , name = '', connectionString = ''] = process.argv;
const pool = new pg.Pool({ connectionString, max: 4 });
const ledger = new pg.Pool({ connectionString, max: 2 });
// A connection that breaks because another process ends is not a reason to end.
for (const one of [pool, ledger]) one.on('error', () => undefined);

const orchestrator = createOrchestrator({
  storage: postgresStorage({ pool }),
  ensembles: [
    {
      name: 'tick',
      trigger: [{ type: 'schedule', cron: '* * * * * *', overlap: 'queue' }],
      flow: [{ agent: 'note', operation: 'code', config: { script: 'note', at: '${trigger.scheduledAt}' } }],
    },
  ],
  scripts: {
    note: async ({ config }) => {
      await ledger.query('INSERT INTO ledger (process, tick) VALUES ($1, $2)', [name, config.at]);
    },
  },
});
await orchestrator.ready();
writeSync(1, 'ready\n');
