/** The SQL function `start` of the schema: executions that SQL asks for, with a real Postgres. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hash32 } from '../../src/adapters/storage/postgres/drivers/driver.ts';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { createOrchestrator, type Execution, type Orchestrator } from '../../src/index.ts';
import { createDatabase, findServer, type TestDatabase } from './postgres-server.ts';

const isThere = await findServer();
const ensembles = [
  {
    name: 'order',
    inputs: { id: { type: 'integer', required: true }, cents: { type: 'integer', default: 5 } },
    flow: [{ agent: 'a', operation: 'code', config: { script: 'echo' } }],
    outputs: { got: '${a.output}' },
  },
];

describe.skipIf(!isThere)('start(name, input, key) in SQL', () => {
  let database: TestDatabase;
  let orchestrator: Orchestrator;
  const open = () =>
    createOrchestrator({
      ensembles: ensembles as never,
      scripts: { echo: ({ input }) => input },
      storage: postgresStorage({ url: database.connectionString }),
      logger: false,
    }) as unknown as Orchestrator;

  beforeAll(async () => {
    database = await createDatabase();
    orchestrator = open();
    await orchestrator.ready();
  });
  afterAll(async () => {
    await orchestrator?.close();
    await database?.drop();
  });

  const start = async (args: string, values: unknown[] = []): Promise<string> =>
    (await database.query(`SELECT ensemble.start(${args}) AS id`, values)).rows[0].id;
  const ended = async (id: string): Promise<Execution<unknown>> => {
    for (let tries = 0; tries < 500; tries++) {
      const record = await orchestrator.executions.get(id).catch(() => undefined);
      if (record?.finishedAt !== undefined) return record;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error(`${id} has not ended`);
  };

  it('starts an execution under the id that it returns, with the checked input', async () => {
    const id = await start(`'order', '{"id": 7}'`);
    expect(id).toMatch(/^exec_[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(await ended(id)).toMatchObject({
      status: 'completed',
      input: { id: 7, cents: 5 },
      output: { got: { id: 7, cents: 5 } },
    });
    expect((await database.query("SELECT FROM ensemble.documents WHERE kind = 'start'")).rowCount).toBe(0);
  });

  it('a key starts once, in one transaction, in two, and after its execution; also together with `start` of the program', async () => {
    await database.query('BEGIN');
    const [first, second] = [await start(`'order', '{"id": 1}', 'k1'`), await start(`'order', '{"id": 1}', 'k1'`)];
    await database.query('COMMIT');
    expect(second).toBe(first);
    await ended(first);
    expect(await start(`'order', '{"id": 1}', 'k1'`)).toBe(first);
    expect((await orchestrator.start('order', { id: 1 }, { idempotencyKey: 'k1' })).id).toBe(first);
  });

  it('a rollback starts nothing, and a trigger starts one for each row that stays', async () => {
    await database.query(`
      CREATE TABLE orders (id integer);
      CREATE FUNCTION started() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM ensemble.start('order', to_jsonb(NEW), 'order ' || NEW.id); RETURN NULL; END $$;
      CREATE TRIGGER started AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION started();`);
    await database.query('BEGIN; INSERT INTO orders VALUES (100); ROLLBACK');
    await database.query('INSERT INTO orders SELECT generate_series(101, 350)');
    for (let tries = 0; ; tries++) {
      const { rows } = await database.query(
        `SELECT count(*)::int AS n FROM ensemble.executions WHERE status = 'completed' AND idempotency_key LIKE '0:order %'`,
      );
      if (rows[0].n === 250) break;
      if (tries > 1_000) throw new Error(`only ${rows[0].n} have completed`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const { rows } = await database.query(`SELECT FROM ensemble.executions WHERE idempotency_key = '0:order 100'`);
    expect(rows).toHaveLength(0);
  }, 30_000);

  it('an input that does not fit has a failed record; a wrong name, input or key fails the statement', async () => {
    expect(await ended(await start(`'order', '{"id": "x"}'`))).toMatchObject({
      status: 'failed',
      input: { id: 'x' },
      error: { code: 'INVALID_INPUT', message: expect.stringContaining('id must be a whole number') },
    });
    await expect(start(`'no name'`)).rejects.toThrow("start: name must be the name of an ensemble, not 'no name'");
    await expect(start(`'order', '[1]'`)).rejects.toThrow('start: input must be a JSON object');
    await expect(start(`'order', '{}', ''`)).rejects.toThrow('start: key must have 1 to 255 characters');
  });

  it('what was asked for while no process ran is started by the next one, once by several', async () => {
    await orchestrator.close();
    const ids = await Promise.all(Array.from({ length: 20 }, (_, nr) => start(`'order', '{"id": ${nr}}'`)));
    orchestrator = open();
    const other = open();
    await Promise.all([orchestrator.ready(), other.ready()]);
    for (const id of ids) expect((await ended(id)).status).toBe('completed');
    await other.close();
  });

  it('`hash36` is the hash by which processes name their channel', async () => {
    for (const text of ['', 'default', 'ensemble', 'a longer name with spaces']) {
      const { rows } = await database.query('SELECT ensemble.hash36($1) AS hash', [text]);
      expect(rows[0].hash).toBe(hash32(text).toString(36));
    }
  });
});
