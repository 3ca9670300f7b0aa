/**
 * A process of its own that starts twins on Postgres: `postgres-start-child NAME CONNECTION`. It prints `ready`, and begins when
 * `gate` has a row. It starts 250 executions under one key, 250 under one id, and one for each of 50 keys in an order of its own,
 * all at once. Then it prints a line of JSON with the ids that it got, and the outputs.
 */

import { writeSync } from 'node:fs';
import pg from 'pg';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';

const [, , name = '', connectionString = ''] = process.argv;
const pool = new pg.Pool({ connectionString, max: 8 });
const ledger = new pg.Pool({ connectionString, max: 2 });
for (const one of [pool, ledger]) one.on('error', () => undefined);

const orchestrator = createOrchestrator({
  storage: postgresStorage({ pool }),
  ensembles: [
    {
      name: 'order',
      flow: [{ agent: 'note', operation: 'code', config: { script: 'note' }, input: '${input.order}' }],
      outputs: { by: '${note.output}' },
    },
  ],
  scripts: {
    note: async ({ input }) => {
      await ledger.query('INSERT INTO ledger (process, name) VALUES ($1, $2)', [name, String(input)]);
      return name;
    },
  },
});
await orchestrator.ready();
writeSync(1, 'ready\n');
for (let isOpen = false; !isOpen; ) isOpen = ((await ledger.query('SELECT 1 FROM gate')).rowCount ?? 0) > 0;

const start = async (order: string, options: { id?: string; idempotencyKey?: string }) => {
  const run = await orchestrator.start('order', { order }, { ...options, tags: [`order=${order}`, `by=${name}`] });
  const { id, output } = await run.result();
  return [order, id, JSON.stringify(output)];
};
const several = Array.from({ length: 50 }, (_, i) => `several-${i}`);
// Each process has an order of its own, so that statements with several keys would wait for each other.
const turned = [...several.slice(several.length / 2), ...several];
const mixed = name < 'c' ? turned.slice(0, 50) : turned.slice(0, 50).reverse();
const got = await Promise.all([
  ...Array.from({ length: 250 }, () => start('by-key', { idempotencyKey: 'key' })),
  ...Array.from({ length: 250 }, () => start('by-id', { id: 'by-id' })),
  ...mixed.map((order) => start(order, { idempotencyKey: order })),
]);
const distinct = new Map(got.map((one) => [one.join(' '), one]));
writeSync(1, `${JSON.stringify([...distinct.values()])}\n`);
writeSync(1, 'done\n');
