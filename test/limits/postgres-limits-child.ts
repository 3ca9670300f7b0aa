/**
 * A process of its own with limits on Postgres: `postgres-limits-child CONNECTION TOKEN WORK`. It prints `ready`, and begins when
 * `gate` has a row. WORK is
 *
 * - `requests`: sends 100 requests at once, and prints how many got each status
 * - `starts`: starts 30 executions asynchronously, which count in the ledger how many run at once, and prints the same
 * - `hold`: starts 5 executions that never end, and prints `holds` when all run
 */

import { writeSync } from 'node:fs';
import pg from 'pg';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { createHandler } from '../../src/http-handlers/create-handler.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';

const [, , connectionString = '', token = '', work = ''] = process.argv;
const say = (line: string) => writeSync(1, `${line}\n`);
const pool = new pg.Pool({ connectionString, max: 6 });
const ledger = new pg.Pool({ connectionString, max: 2 });
for (const one of [pool, ledger]) one.on('error', () => undefined);
let held = 0;

const code = (script: string) => ({ name: script, flow: [{ agent: 'a', operation: 'code', config: { script } }] });
const orchestrator = createOrchestrator({
  logger: false,
  storage: postgresStorage({ pool }),
  ensembles: [code('count'), code('hold')],
  scripts: {
    count: async () => {
      const { rows } = await ledger.query(
        'UPDATE ledger SET now = now + 1, most = greatest(most, now + 1) RETURNING now',
      );
      await new Promise((resolve) => setTimeout(resolve, 100));
      await ledger.query('UPDATE ledger SET now = now - 1');
      return rows[0].now;
    },
    hold: () => {
      held += 1;
      if (held === 5) say('holds');
      return new Promise(() => {});
    },
  },
});
await orchestrator.ready();
const handler = createHandler(orchestrator);
const send = (path: string, init: RequestInit = {}) =>
  handler.fetch(
    new Request(`http://localhost/api/v1${path}`, {
      ...init,
      headers: { ...init.headers, authorization: `Bearer ${token}` },
    }),
    { ip: '192.0.2.1' },
  );
const start = (name: string, headers: Record<string, string> = {}) =>
  send(`/execute/ensemble/${name}`, {
    method: 'POST',
    body: '{}',
    headers: { 'content-type': 'application/json', ...headers },
  });
const statuses = async (responses: readonly Promise<Response>[]) => {
  const counts: Record<string, number> = {};
  for (const { status } of await Promise.all(responses)) counts[status] = (counts[status] ?? 0) + 1;
  return JSON.stringify(counts);
};

say('ready');
for (let isOpen = false; !isOpen; ) isOpen = ((await ledger.query('SELECT 1 FROM gate')).rowCount ?? 0) > 0;
if (work === 'requests') say(await statuses(Array.from({ length: 100 }, () => send('/ensembles'))));
if (work === 'starts')
  say(await statuses(Array.from({ length: 30 }, () => start('count', { prefer: 'respond-async' }))));
if (work === 'hold') await statuses(Array.from({ length: 5 }, () => start('hold', { prefer: 'respond-async' })));
say('done');
