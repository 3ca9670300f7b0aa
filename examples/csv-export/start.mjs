/** Fills a small database, and exports the orders of a day to the object store. */
import { readFile } from 'node:fs/promises';
import { createOrchestrator, memoryStorage } from 'ensemble-orchestrator';
import { sqliteDatabase } from 'ensemble-orchestrator/sqlite';

const orders = sqliteDatabase({ path: ':memory:' }); // './orders.db' in an app
await fill(orders);

const storage = memoryStorage();
const orchestrator = createOrchestrator({
  ensembles: [await readFile(new URL('ensembles/export-orders.yaml', import.meta.url), 'utf8')],
  storage,
  bindings: { sql: orders },
});

const { output } = await orchestrator.execute('export-orders', { day: '2026-03-02' });
console.log(`${output.orders} orders, ${output.total} EUR, ${output.size} bytes in ${output.key}\n`);
const { content } = await storage.objects.get(output.key);
console.log(new TextDecoder().decode(content).replaceAll('\r\n', '\n'));

const day = "2026-03-02' OR '1'='1";
const none = await orchestrator.execute('export-orders', { day });
if (none.output.orders === 0) console.log(`no orders on ${day}`);

await orchestrator.close();
await orders.close();

async function fill(database) {
  const { signal } = new AbortController();
  const run = (strings, ...values) => database.execute({ strings: [...strings], values }, { signal });
  await run`CREATE TABLE orders (id INTEGER PRIMARY KEY, day TEXT, customer TEXT, note TEXT, total REAL)`;
  await run`INSERT INTO orders VALUES (1, ${'2026-03-02'}, ${'Ada'}, ${'two lamps, blue'}, 40)`;
  await run`INSERT INTO orders VALUES (2, ${'2026-03-02'}, ${"O'Neil"}, ${'=1+1 is not a formula'}, 22.5)`;
  await run`INSERT INTO orders VALUES (3, ${'2026-03-03'}, ${'Grace'}, ${null}, 9)`;
}
