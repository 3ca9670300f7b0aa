/**
 * A separate process that works on a Postgres store: `postgres-child DRIVER CONNECTION NUMBER`.
 *
 * It registers, accepts the execution of this number, prints `joined`, renews its lease for ten seconds each time, and writes a step
 * every 50 ms. It prints the answer whenever the answer changes, and runs until it is killed.
 */

import { writeSync } from 'node:fs';
import pg from 'pg';
import postgres from 'postgres';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { accept, entry, execution, step, WORKER } from '../../src/conformance/storage-suite/context.ts';
import { messageOf } from '../../src/engine/base/errors.ts';

const [, , driver, connectionString = '', number = '0', leaseMs = '10000'] = process.argv;
const storage = postgresStorage(
  driver === 'pg' ? { pool: new pg.Pool({ connectionString }) } : { sql: postgres(connectionString) },
);
const say = (text: string) => writeSync(1, `${text}\n`);
const lease = () => ({ now: Date.now(), leaseUntil: Date.now() + Number(leaseMs) });

await storage.workers.register(WORKER, lease());
await accept(storage, execution(Number(number)));
say('joined');
setInterval(() => {
  Promise.resolve(storage.workers.renew(WORKER, lease().leaseUntil)).catch(() => undefined);
}, 200);

let last: string | undefined;
for (let written = 0; ; written++) {
  const [answer] = await Promise.resolve(
    storage.commit(WORKER, [entry(Number(number), { steps: [step(`s${written}`)] })]),
  ).catch((error: unknown) => [messageOf(error)]);
  if (answer !== last) say(String(answer));
  last = answer;
  await new Promise((resolve) => setTimeout(resolve, 50));
}
