/** Starts and signals in a transaction of the caller, on a connection of the caller to the same SQLite file. */

import { createRequire } from 'node:module';
import Libsql from 'libsql';
import { afterEach, describe, expect, it } from 'vitest';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createOrchestrator, type Orchestrator } from '../../src/index.ts';
import { newFile } from './sqlite-files.ts';

interface Database {
  exec(sql: string): void;
}

const nodeSqlite = (() => {
  try {
    return createRequire(import.meta.url)('node:sqlite') as { DatabaseSync: new (path: string) => Database };
  } catch {
    return undefined;
  }
})();
const open: Record<string, (path: string) => Database> = {
  libsql: (path) => new Libsql(path) as unknown as Database,
  ...(nodeSqlite && { 'node:sqlite': (path: string) => new nodeSqlite.DatabaseSync(path) }),
};

const code = (script: string) => ({ agent: 'a', operation: 'code', config: { script } });
const ensembles = [
  { name: 'order', flow: [code('echo')] },
  { name: 'limited', concurrency: { limit: 1, key: '${input.customer}' }, flow: [code('echo')] },
  { name: 'waits', flow: [{ wait: 'paid' }] },
];
const opened: Orchestrator[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

async function setUp(driver: string) {
  const path = newFile();
  const orchestrator = createOrchestrator({
    ensembles: ensembles as never,
    scripts: { echo: ({ input }) => input },
    storage: sqliteStorage({ path }),
    logger: false,
  }) as unknown as Orchestrator;
  opened.push(orchestrator);
  await orchestrator.ready();
  const transaction = (open[driver] as (path: string) => Database)(path);
  const statusOf = (id: string) =>
    orchestrator.executions.status(id).then(
      ({ status }) => status,
      (error) => error.code,
    );
  return { orchestrator, transaction, statusOf };
}

describe.each(Object.keys(open))('a transaction of %s', (driver) => {
  it.each(['order', 'limited'])('`%s` is there after the commit, and not after a rollback', async (ensemble) => {
    const { orchestrator, transaction, statusOf } = await setUp(driver);
    transaction.exec('BEGIN IMMEDIATE; CREATE TABLE orders (id TEXT)');
    const kept = await orchestrator.start(ensemble, { customer: 1 }, { transaction, tags: ['x'], idempotencyKey: 'a' });
    expect(await statusOf(kept.id)).toBe('NOT_FOUND');
    transaction.exec('COMMIT');
    expect(await kept.result()).toMatchObject({ status: 'completed', tags: ['x'] });
    transaction.exec('BEGIN IMMEDIATE');
    const gone = await orchestrator.start(ensemble, { customer: 2 }, { transaction, idempotencyKey: 'b' });
    transaction.exec('ROLLBACK');
    expect(await statusOf(gone.id)).toBe('NOT_FOUND');
    expect((await orchestrator.start(ensemble, { customer: 2 }, { idempotencyKey: 'b' })).id).not.toBe(gone.id);
  });

  it('a signal is sent with the commit', async () => {
    const { orchestrator, transaction } = await setUp(driver);
    const handle = await orchestrator.start('waits');
    transaction.exec('BEGIN IMMEDIATE');
    await orchestrator.executions.signal(handle.id, 'paid', 1, { transaction });
    transaction.exec('COMMIT');
    expect((await handle.result()).status).toBe('completed');
  });

  it('a database outside of a transaction, another file, and what is no database are refused', async () => {
    const { orchestrator, transaction } = await setUp(driver);
    const refused = (given: unknown) =>
      orchestrator.start('order', {}, { transaction: given }).then(
        () => 'started',
        (error) => `${error.code}: ${error.message}`,
      );
    expect(await refused(transaction)).toContain(
      'INVALID_REQUEST: `transaction`: the database is not in a transaction',
    );
    const other = (open[driver] as (path: string) => Database)(newFile());
    other.exec('BEGIN');
    expect(await refused(other)).toContain('is not the file of the storage');
    expect(await refused({ query: () => 1 })).toContain('it must be a database of node:sqlite');
  });
});
