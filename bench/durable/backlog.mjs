/**
 * Measures how many executions of one step a process completes a second while many are queued. The queue keeps its length: what was
 * completed is queued again by SQL. Prints one line of JSON.
 * Usage: node durable/backlog.mjs <sqlite|postgres> <queued> <seconds>, with BENCH_POSTGRES as the URL of an empty database
 */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { importLibrary } from '../library.mjs';
import { openStore } from './library-store.mjs';
import { openSqlite } from './open-sqlite.mjs';
import { ownFolder } from './own-folder.mjs';
import { printMeasured } from './unavailable.mjs';

/** How many executions are queued again at once. */
const REFILL = 500;
const [kind, queued, seconds] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const folder = ownFolder();
const where = kind === 'sqlite' ? join(folder, 'backlog.db') : process.env.BENCH_POSTGRES;

await printMeasured(measure);

async function measure() {
  const first = await open({ concurrency: 0 });
  await first.orchestrator.start('hop', {});
  await first.close();
  const database = await (kind === 'sqlite' ? sqliteCopies() : postgresCopies());
  await database.add(queued);
  await database.analyze();

  let completed = 0;
  const { orchestrator, close } = await open({ concurrency: 50 });
  orchestrator.on('execution.completed', () => {
    completed += 1;
  });
  let added = 0;
  const until = async (ms) => {
    for (const end = performance.now() + ms; performance.now() < end; await sleep(1)) {
      if (completed - added < REFILL) continue;
      added += REFILL;
      await database.add(REFILL);
    }
  };
  await orchestrator.ready();
  await until(400 * seconds);
  const [before, begun] = [completed, performance.now()];
  await until(1000 * seconds);
  const perSecond = ((completed - before) / (performance.now() - begun)) * 1000;
  await close();
  const left = await database.count();
  await database.close();
  // The first execution and those that were under way at the end.
  if (Math.abs(left - (queued + added + 1 - completed)) > 100)
    throw new Error(`${completed} were completed, and ${left} of ${queued + added + 1} are left`);
  return { perSecond };
}

async function open(engine) {
  const { createOrchestrator, embeddedEngine } = await importLibrary();
  const { storage, close } = await openStore(kind, where);
  const orchestrator = createOrchestrator({
    storage,
    engine: embeddedEngine(engine),
    ensembles: [{ name: 'hop', flow: [{ agent: 's', operation: 'code', config: { script: 'step' } }] }],
    scripts: { step: () => 1 },
  });
  return {
    orchestrator,
    async close() {
      await orchestrator.close();
      await close();
    },
  };
}

/** Queues copies of the first execution. */
async function postgresCopies() {
  const client = new pg.Client({ connectionString: where });
  await client.connect();
  const { rows } = await client.query(
    "SELECT column_name AS name FROM information_schema.columns WHERE table_schema = 'ensemble' AND table_name = 'executions'",
  );
  const { names, values } = copied(rows, (number) => `lpad(${number}::text, 26, '0')`);
  let last = 0;
  await client.query('CREATE TEMP TABLE first AS SELECT * FROM ensemble.executions');
  return {
    async add(count) {
      await client.query(
        `INSERT INTO ensemble.executions (${names}) SELECT ${values} FROM first, generate_series(${last + 1}, ${last + count}) AS n(n)`,
      );
      last += count;
    },
    analyze: () => client.query('VACUUM ANALYZE ensemble.executions'),
    count: async () =>
      Number((await client.query("SELECT count(*) FROM ensemble.executions WHERE status = 'queued'")).rows[0].count),
    close: () => client.end(),
  };
}

async function sqliteCopies() {
  const database = await openSqlite(where);
  const { names, values } = copied(
    database.prepare('PRAGMA table_info(ensemble_executions)').all([]),
    (number) => `printf('%026d', ${number})`,
  );
  database.exec('CREATE TEMP TABLE first AS SELECT * FROM ensemble_executions');
  let last = 0;
  return {
    async add(count) {
      database.exec(
        `WITH RECURSIVE n(n) AS (SELECT ${last + 1} UNION ALL SELECT n + 1 FROM n WHERE n < ${last + count})
        INSERT INTO ensemble_executions (${names}) SELECT ${values} FROM first, n`,
      );
      last += count;
    },
    analyze: async () => {},
    count: async () =>
      Number(
        Object.values(
          database.prepare("SELECT count(*) FROM ensemble_executions WHERE status = 'queued'").all([])[0],
        )[0],
      ),
    close: async () => database.close(),
  };
}

function copied(rows, padded) {
  const columns = rows.map(({ name }) => name).filter((name) => name !== 'ref');
  const value = (name) => {
    if (name === 'id') return `'exec_' || ${padded('n.n')}`;
    return name === 'created_at' || name === 'due_at' ? `first.${name} + n.n / 1000` : `first.${name}`;
  };
  return { names: columns.join(', '), values: columns.map(value).join(', ') };
}
