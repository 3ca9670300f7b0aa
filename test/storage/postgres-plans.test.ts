/** How Postgres runs the storage's statements: by indexes, in an empty store and in a store of 100,000 executions. */

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SqlClient, SqlParam, SqlRunner, Statement } from '../../src/adapters/storage/postgres/drivers/driver.ts';
import { openClient } from '../../src/adapters/storage/postgres/drivers/load-driver.ts';
import { createClaiming } from '../../src/adapters/storage/postgres/executions/claim.ts';
import { createCommit } from '../../src/adapters/storage/postgres/executions/commit.ts';
import { createEnding } from '../../src/adapters/storage/postgres/executions/ending.ts';
import { executionsTable } from '../../src/adapters/storage/postgres/executions/executions-table.ts';
import { signalsTable } from '../../src/adapters/storage/postgres/executions/signals-table.ts';
import { readPostgresOptions } from '../../src/adapters/storage/postgres/options.ts';
import { chargesTable } from '../../src/adapters/storage/postgres/tables/charges-table.ts';
import { migrate } from '../../src/adapters/storage/postgres/tables/migrations.ts';
import { tableNames } from '../../src/adapters/storage/postgres/tables/names.ts';
import {
  change,
  decision,
  end,
  entry,
  execution,
  executionId,
  retrying,
  signal,
  starting,
  step,
  T0,
  WORKER,
} from '../../src/conformance/storage-suite/context.ts';
import type { CommitEntry } from '../../src/engine/execution/stored-execution.ts';
import { createDatabase, findServer, type TestDatabase } from './postgres-server.ts';

const hasServer = await findServer();

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  readonly 'TID Cond'?: string;
  readonly 'Total Cost'?: number;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly Plans?: readonly Plan[];
}

describe.skipIf(!hasServer)('plans', () => {
  let database: TestDatabase;
  let client: SqlClient;
  let session: pg.Client;
  let ran: (readonly [Statement, readonly SqlParam[]])[] = [];

  beforeAll(async () => {
    database = await createDatabase();
    const real = await openClient(readPostgresOptions({ url: database.connectionString }));
    await migrate(real, 'ensemble');
    client = recorded(real);
    session = new pg.Client({ connectionString: database.connectionString });
    await session.connect();
  });
  afterAll(async () => {
    await client.close();
    await session.end();
    await database.drop();
  });

  const recorded = <Runner extends SqlRunner>(runner: Runner): Runner => ({
    ...runner,
    run(statement: Statement, params: readonly SqlParam[]) {
      ran.push([statement, params]);
      return runner.run(statement, params);
    },
  });
  const signalsOf = (namespace: string) => signalsTable(client, tableNames('ensemble'), namespace, () => undefined);
  const commitTo = (namespace: string) =>
    createCommit(client, tableNames('ensemble'), namespace, {
      onFreed: () => undefined,
      signals: signalsOf(namespace),
      usage: chargesTable(client, tableNames('ensemble'), namespace),
    });
  const claimingFrom = (namespace: string, on = client) =>
    createClaiming(on, tableNames('ensemble'), namespace, signalsOf(namespace).deliverSent);

  const nodes = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodes)];

  /** The plan of a statement that is prepared for any parameters. */
  const explain = async ([{ text }, params]: (typeof ran)[0], options = ''): Promise<Plan[]> => {
    await session.query("SET plan_cache_mode = 'force_generic_plan'");
    await session.query('DEALLOCATE ALL');
    await session.query(`PREPARE explained AS ${text}`);
    const given = params.map((param) => (param === null ? 'NULL' : pg.escapeLiteral(String(param))));
    await session.query('BEGIN');
    const values = given.length > 0 ? `(${given.join(', ')})` : '';
    const { rows } = await session.query(`EXPLAIN (FORMAT JSON${options}) EXECUTE explained${values}`);
    await session.query('ROLLBACK');
    return nodes(rows[0]['QUERY PLAN'][0].Plan);
  };

  /** Reads of growing tables that don't use a key. */
  const others = (found: readonly Plan[], key: RegExp) =>
    found
      .filter((node) => /^(Seq|Index|Index Only|Bitmap Index|Tid) Scan$/.test(node['Node Type']))
      .filter((node) => !/^(owners|pg_)/.test(node['Relation Name'] ?? '') && !/^owners/.test(node['Index Name'] ?? ''))
      .filter((node) => !key.test(`${node['Index Name'] ?? 'place'} ${node['Index Cond'] ?? node['TID Cond']}`))
      .map(
        (node) => `${node['Node Type']} of ${node['Relation Name']} by ${node['Index Name']}: ${node['Index Cond']}`,
      );

  const BY_KEY =
    /^(executions_pkey .*namespace.* AND .*\bid =|executions_by_key .*idempotency_key|steps_pkey .*execution.* AND .*key|states_pkey .*namespace.* AND .*ensemble)/;
  const wait = { status: 'waiting', dueAt: T0 } as const;
  const SHAPES: Readonly<Record<string, readonly CommitEntry[]>> = {
    'one step': [entry(1, { steps: [step('a')] })],
    'an attempt': [entry(1, { steps: [step('a', { attempts: 2 })] })],
    steps: [1, 2].map((n) => entry(n, { steps: [step('a')] })),
    attempts: [1, 2].map((n) => entry(n, { steps: [retrying('a', 2)] })),
    'one start': [starting(execution(1))],
    starts: [1, 2].map((n) => starting(execution(n))),
    'one end': [entry(1, { steps: [step('a')], end: end() })],
    'one release': [entry(1, { release: wait })],
    'one state': [entry(1, { steps: [step('a')], state: change(0, {}) })],
    mixed: [starting(execution(1)), entry(2, { steps: [step('a')] }), entry(3, { end: end() })],
    everything: [
      starting(execution(1), { steps: [step('a')] }),
      entry(2, { steps: [step('a')], state: change(0, {}) }),
      entry(3, { end: end() }),
    ],
  };

  describe('of an empty store, which will grow', () => {
    it.each(Object.entries(SHAPES))('a commit of %s looks rows up by their keys', async (_, batch) => {
      const commit = commitTo('default');
      ran = [];
      await commit('nobody', batch);
      // Starts alone go through a statement of their own first.
      expect(ran.length).toBe(batch.every((one) => one.start && one.steps.length === 0) ? 3 : 2);
      for (const one of ran) expect(others(await explain(one), BY_KEY)).toEqual([]);
    });

    it.each(Object.entries(SHAPES))('a commit of %s is planned once, not for every call', async (name, batch) => {
      ran = [];
      await commitTo('default')('nobody', batch);
      const [[{ text }, params]] = ran as [(typeof ran)[0]];
      await session.query("SET plan_cache_mode = 'auto'");
      for (let times = 0; times < 8; times++) await session.query({ name, text, values: params as unknown[] });
      const { rows } = await session.query('SELECT generic_plans FROM pg_prepared_statements WHERE name = $1', [name]);
      expect(Number(rows[0].generic_plans)).toBeGreaterThan(0);
    });

    it('so do queries of executions', async () => {
      const names = tableNames('ensemble');
      const [ending, executions] = [
        createEnding(client, names, 'default', () => undefined),
        executionsTable(client, names, 'default'),
      ];
      ran = [];
      await ending.requestCancel(executionId(1), T0, end());
      await ending.findEnded([1, 2].map(executionId));
      await executions.getAccepted(executionId(1));
      await executions.get(executionId(1));
      await executions.getStatus(executionId(1));
      await executions.getStep(executionId(1), 'a');
      expect(ran).toHaveLength(7);
      for (const one of ran)
        expect(
          others(
            await explain(one),
            /^(executions_pkey .*namespace.* AND .*\bid =|executions_by_key .*idempotency_key|steps_pkey .*execution.* AND .*key|steps_runs .*execution)/,
          ),
        ).toEqual([]);
    });

    it('a page of steps starts where the previous page ended, and ended waits are found among the decisions', async () => {
      const executions = executionsTable(client, tableNames('ensemble'), 'default');
      ran = [];
      for (const notes of [true, false])
        for (const after of [undefined, 'a']) await executions.listSteps(executionId(1), { after, limit: 10, notes });
      await executions.skipSteps(executionId(1), 10);
      await executions.listEndedWaits(executionId(1), 'go', T0);
      const byPlace =
        /^(executions_pkey .*namespace.* AND .*\bid =|executions_by_key .*idempotency_key|steps_pkey .*execution.* AND .*key|steps_(runs|notes) .*execution.* AND .*seq >)/;
      for (const one of ran.slice(0, 4)) expect(others(await explain(one), byPlace)).toEqual([]);
      expect(
        others(await explain(ran[4] as (typeof ran)[0]), /^(executions_pkey|steps_(runs|notes) .*execution)/),
      ).toEqual([]);
      expect(others(await explain(ran[5] as (typeof ran)[0]), /^(executions_pkey|steps_notes .*execution)/)).toEqual(
        [],
      );
    });

    it('a signal finds its execution and earlier signals by their keys', async () => {
      const signals = signalsOf('default');
      ran = [];
      await signals.put(signal(1, 1));
      await signals.list(executionId(1), { name: 'go', after: 0, limit: 10 });
      await signals.send(client, [signal(1, 1)]);
      await signals.deliverSent();
      const byKey =
        /^(executions_pkey .*namespace.* AND .*\bid =|signals_pkey .*execution.* AND .*\bid =|signals_by_name |sent_signals_pkey )/;
      for (const one of ran) expect(others(await explain(one), byKey)).toEqual([]);
    });

    it('free executions are found by their index', async () => {
      const claiming = claimingFrom('default');
      ran = [];
      await claiming.claim(WORKER, { now: T0, limit: 10, excludeVersions: [] });
      await claiming.poll(WORKER, []);
      for (const one of ran)
        expect(
          others(
            await explain(one),
            /^(executions_due |queues_ready |queues_blocked |queues_blocked_of_groups |executions_to_pause|arrivals_due |arrivals_freed |executions_slots |charges_pkey .*account =|executions_to_cancel |executions_signalled |sent_signals_pkey |documents_pkey .*kind =|place .*ctid = )/,
          ),
        ).toEqual([]);
    });
  });

  describe.each(['before there are statistics', 'with statistics'])('of 100,000 waiting executions, %s', (when) => {
    const namespace = when;
    beforeAll(async () => {
      await database.query(
        `INSERT INTO ensemble.executions (namespace, id, ensemble, version, status, epoch, seed, started_by, created_at, due_at, input)
        SELECT $1, 'exec_' || lpad(i::text, 26, '0'), 'e' || i % 7, 'v' || i % 3, CASE WHEN i % 2 = 0 THEN 'queued' ELSE 'waiting' END,
          0, 's', '{"type":"call"}', i, i * 10, 'null' FROM generate_series(1, 100000) i`,
        [namespace],
      );
      await database.query(
        'INSERT INTO ensemble.owners (namespace, id, lease_until, locks) VALUES ($1, $2, 0, false)',
        [namespace, WORKER],
      );
      await database.query(
        `INSERT INTO ensemble.tags (namespace, tag, created_at, id) SELECT $1, t.tag, i, 'exec_' || lpad(i::text, 26, '0')
        FROM generate_series(1, 100000) i, LATERAL (VALUES ('even', 2), ('rare', 9973)) t (tag, every) WHERE i % t.every = 0`,
        [namespace],
      );
      await database.query(
        `UPDATE ensemble.executions SET parent_id = CASE WHEN created_at % 20000 = 0 THEN 'parent' END,
          error = CASE WHEN created_at % 3 = 1 THEN '{"code":"' ||
            CASE created_at % 5000 WHEN 13 THEN 'RARE' ELSE 'OFTEN' END || '","message":"says \\"code\\":\\"RARE\\""}' END,
          idempotency_key = CASE WHEN created_at % 10 = 7 THEN 'key ' || created_at END,
          ensemble = CASE WHEN created_at = 600 THEN 'only' ELSE ensemble END WHERE namespace = $1`,
        [namespace],
      );
      if (when === 'with statistics') await database.query('ANALYZE ensemble.executions, ensemble.tags');
    }, 60_000);

    /** How many rows of executions were read. */
    const readRows = (found: readonly Plan[]) =>
      found
        .filter((node) => node['Relation Name'] === 'executions' && /Scan/.test(node['Node Type']))
        .reduce((sum, node) => sum + (node['Actual Rows'] ?? 0) * (node['Actual Loops'] ?? 0), 0);

    it('a claim reads about as many rows as it returns, and a poll one row for each ensemble and version', async () => {
      const claiming = claimingFrom(namespace);
      ran = [];
      expect(await claiming.claim(WORKER, { now: 500_000, limit: 50, excludeVersions: ['v1'] })).toHaveLength(50);
      expect((await claiming.poll(WORKER, ['v0'])).nextDueAt).toBeGreaterThan(0);
      expect(await claiming.countQueued(1000)).toBe(1000);
      const [claim, poll, count] = ran as [(typeof ran)[0], (typeof ran)[0], (typeof ran)[0]];
      const claimed = await explain(claim, ', ANALYZE');
      expect(
        others(
          claimed,
          /^(executions_due |queues_ready |queues_blocked |queues_blocked_of_groups |executions_to_pause|arrivals_due |arrivals_freed |executions_slots |charges_pkey .*account =|place .*ctid = )/,
        ),
      ).toEqual([]);
      expect(readRows(claimed)).toBeLessThan(2500);
      const surveyed = await explain(poll, ', ANALYZE');
      expect(
        others(
          surveyed,
          /^(executions_due |queues_ready |queues_blocked |queues_blocked_of_groups |executions_to_pause|arrivals_due |arrivals_freed |executions_slots |charges_pkey .*account =|executions_to_cancel |executions_signalled |sent_signals_pkey |documents_pkey .*kind =)/,
        ),
      ).toEqual([]);
      expect(readRows(surveyed)).toBeLessThan(50);
      expect(readRows(await explain(count, ', ANALYZE'))).toBeLessThanOrEqual(1000);
    });

    it.runIf(when === 'with statistics')(
      'what a statement is expected to cost does not grow with the queue, so that the server never compiles a claim or a list',
      async () => {
        const [names, claiming] = [tableNames('ensemble'), claimingFrom(namespace)];
        const [executions, ending] = [
          executionsTable(client, names, namespace),
          createEnding(client, names, namespace, () => undefined),
        ];
        ran = [];
        await claiming.claim(WORKER, { now: 0, limit: 50, excludeVersions: [] });
        await claiming.take(WORKER, executionId(0), 0);
        await claiming.poll(WORKER, []);
        await claiming.countQueued(100);
        await executions.countOpen(100);
        await executions.countAccepted(0, 100);
        await ending.purge({ worker: WORKER, before: 0, limit: 100 });
        for (const filter of [
          {},
          { status: 'queued' },
          { ensemble: 'e1' },
          { ensemble: 'e1', status: 'queued' },
          { tag: 'even' },
          { errorCode: 'OFTEN' },
          { unresolved: true },
          { tag: 'even', status: 'failed', ensemble: 'e3' },
        ] as const)
          await executions.list({ ...filter, limit: 100 });
        // A server compiles from 100,000 on. Here are 100,000 executions, so nothing that costs so little passes it with a million.
        for (const one of ran) {
          const [plan] = await explain(one);
          expect([one[0].text, (plan?.['Total Cost'] ?? 0) < 10_000]).toEqual([one[0].text, true]);
        }
      },
    );

    it('a count reads no more than it counts, also of a store in which nearly all executions are of others', async () => {
      const claiming = claimingFrom('somebody else');
      const executions = executionsTable(client, tableNames('ensemble'), 'somebody else');
      ran = [];
      await claiming.countQueued(100);
      await executions.countAccepted(0, 100);
      await executions.list({ tag: 'even', ensemble: 'e1', limit: 10 });
      for (const one of ran) {
        const found = await explain(one, ', ANALYZE');
        expect([
          one[0].text,
          found.filter((node) => node['Node Type'] === 'Seq Scan').map((node) => node['Relation Name']),
        ]).toEqual([one[0].text, []]);
      }
    });

    it('a page of a list reads only this page', async () => {
      const executions = executionsTable(client, tableNames('ensemble'), namespace);
      ran = [];
      await executions.list({ limit: 50 });
      await executions.list({ status: 'queued', limit: 50, before: { createdAt: 50_000, id: executionId(50_000) } });
      await executions.list({ ensemble: 'e3', status: 'failed', limit: 50 });
      await executions.list({ status: 'failed', limit: 50 });
      await executions.list({ since: 50_000, until: 50_020, limit: 50 });
      await executions.list({ status: 'waiting', since: 99_990, limit: 50 });
      await executions.list({ tag: 'even', limit: 50 });
      await executions.list({ tag: 'even', since: 50_000, until: 50_020, limit: 50 });
      await executions.list({ tag: 'rare', limit: 50 });
      await executions.list({ parentId: 'parent', limit: 50 });
      await executions.list({ unresolved: true, since: 50_000, limit: 50 });
      await executions.list({ errorCode: 'RARE', limit: 50 });
      await executions.list({ errorCode: 'OFTEN', since: 50_000, limit: 50 });
      await executions.list({ order: 'oldest', limit: 50, before: { createdAt: 50_000, id: executionId(50_000) } });
      await executions.list({ order: 'oldest', status: 'failed', since: 50_000, limit: 50 });
      await executions.list({ order: 'oldest', tag: 'even', until: 50_020, limit: 50 });
      await executions.list({ order: 'oldest', errorCode: 'OFTEN', limit: 50 });
      await executions.findByKey('key 7');
      await executions.countOpen(15);
      await executions.countAccepted(50_000, 50);
      for (const one of ran) expect(readRows(await explain(one, ', ANALYZE'))).toBeLessThanOrEqual(50);
    });

    it('a page of an ensemble reads only this page, and of its index a page for each status', async () => {
      const executions = executionsTable(client, tableNames('ensemble'), namespace);
      ran = [];
      await executions.list({ ensemble: 'e3', limit: 50 });
      await executions.list({ ensemble: 'e3', until: 50_000, limit: 50 });
      for (const one of ran) {
        const found = await explain(one, ', ANALYZE');
        const entries = found.filter((node) => node['Index Name'] === 'executions_by_ensemble');
        expect(readRows(found.filter((node) => !entries.includes(node)))).toBeLessThanOrEqual(50);
        expect(readRows(entries)).toBeLessThanOrEqual(7 * 50);
      }
    });

    it('a page of combined filters walks the shortest index, and counts at most 1,000 entries of each', async () => {
      const executions = executionsTable(client, tableNames('ensemble'), namespace);
      const rare = { tag: 'rare', limit: 50 } as const;
      for (const filter of [
        { ...rare, status: 'waiting' },
        { ...rare, ensemble: 'e3', status: 'completed' },
        { tag: 'even', ensemble: 'only', limit: 50 },
        { tag: 'rare', ensemble: 'e3', limit: 50 },
        { status: 'queued', ensemble: 'only', limit: 50 },
        { status: 'completed', ensemble: 'e3', limit: 50 },
        { status: 'failed', ensemble: 'e3', limit: 50 },
        { status: 'failed', tag: 'even', ensemble: 'e3', limit: 50 },
        { parentId: 'parent', status: 'queued', tag: 'even', limit: 50 },
        { unresolved: true, status: 'timed_out', limit: 50 },
        { unresolved: true, ensemble: 'only', limit: 50 },
        { errorCode: 'RARE', ensemble: 'e3', limit: 50 },
        { errorCode: 'OFTEN', ensemble: 'only', limit: 50 },
        { errorCode: 'RARE', tag: 'even', status: 'failed', limit: 50 },
        { errorCode: 'NONE', tag: 'even', order: 'oldest', limit: 50 },
        { search: 'rar', ensemble: 'e3', limit: 50 },
        { search: `exec_${'0'.repeat(21)}1000`, limit: 50 },
      ] as const) {
        ran = [];
        await executions.list(filter);
        const page = ran.at(-1) as (typeof ran)[0];
        expect([filter, readRows(await explain(page, ', ANALYZE')) <= 100]).toEqual([filter, true]);
        for (const one of ran.slice(0, -1))
          expect([filter, readRows(await explain(one, ', ANALYZE')) <= 1000]).toEqual([filter, true]);
      }
    });

    it('a search with too many matches reads no more than 10,000 of them', async () => {
      const executions = executionsTable(client, tableNames('ensemble'), namespace);
      ran = [];
      await expect(executions.list({ search: 'e', limit: 50 })).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
      expect(ran).toHaveLength(1);
      expect(readRows(await explain(ran[0] as (typeof ran)[0], ', ANALYZE'))).toBeLessThanOrEqual(10_001);
    });

    it('a commit of many ends finds each by its key', async () => {
      const commit = commitTo(namespace);
      ran = [];
      await commit(
        WORKER,
        Array.from({ length: 100 }, (_, n) => entry(n + 1, { steps: [step('a')], end: end() })),
      );
      for (const one of ran) expect(others(await explain(one), BY_KEY)).toEqual([]);
    });
  });

  describe('of executions that this process has started', () => {
    beforeAll(() =>
      session.query('INSERT INTO ensemble.owners (namespace, id, lease_until, locks) VALUES ($1, $2, $3, false)', [
        ...['placed', WORKER, T0 + 60_000],
      ]),
    );
    afterAll(() => session.query('TRUNCATE ensemble.owners, ensemble.executions, ensemble.steps, ensemble.signals'));

    it('steps and ends look rows up by their place', async () => {
      const commit = commitTo('placed');
      await commit(
        WORKER,
        [1, 2, 3].map((n) => starting(execution(n))),
      );
      ran = [];
      await commit(
        WORKER,
        [1, 2].map((n) => entry(n, { steps: [step('a')] })),
      );
      await commit(WORKER, [entry(1, { steps: [decision('b', 1), step('c')], end: end() }), entry(2, { end: end() })]);
      await commit(WORKER, [entry(3, { steps: [step('a')], end: end() }), starting(execution(4))]);
      expect(ran.length).toBe(3);
      for (const one of ran) expect(others(await explain(one), /^place .*ctid = /)).toEqual([]);
    });

    it('an entry with a step and an end is stored as a whole when its row moves while the write waits for it', async () => {
      const commit = commitTo('placed');
      await commit(WORKER, [starting(execution(7))]);
      await session.query('BEGIN');
      await session.query("UPDATE ensemble.executions SET cancel_at = 1 WHERE namespace = 'placed' AND id = $1", [
        executionId(7),
      ]);
      ran = [];
      const written = commit(WORKER, [entry(7, { steps: [step('a')], end: end() })]);
      const here =
        'SELECT pid FROM pg_locks WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database())';
      const isWaiting = `SELECT 1 FROM pg_locks WHERE NOT granted AND pid IN (${here})`;
      while ((await session.query(isWaiting)).rowCount === 0);
      await session.query('COMMIT');
      expect(await written).toEqual(['stored']);
      // What the first statement would have stored alone, the second one did not find.
      expect(ran.length).toBe(2);
      const found = await executionsTable(client, tableNames('ensemble'), 'placed').get(executionId(7));
      expect(found).toMatchObject({ status: 'completed', agents: [{ key: 'a' }] });
    });

    it('an execution whose row has moved since is written by its key, once, and its entry as a whole', async () => {
      const commit = commitTo('placed');
      await commit(
        WORKER,
        [5, 6].map((n) => starting(execution(n))),
      );
      await signalsOf('placed').put(signal(1, 5));
      ran = [];
      const ended = [5, 6].map((n) => entry(n, { steps: [step('a')], end: end() }));
      expect(await commit(WORKER, ended)).toEqual(['stored', 'stored']);
      expect(ran.length).toBeGreaterThan(1);
      expect(await commit(WORKER, ended)).toEqual(['stored', 'stored']);
      const executions = executionsTable(client, tableNames('ensemble'), 'placed');
      for (const n of [5, 6])
        expect(await executions.get(executionId(n))).toMatchObject({ status: 'completed', agents: [{ key: 'a' }] });
    });
  });

  it('a claim from queues looks executions up one by one, also in a store that grew before it had statistics', async () => {
    const namespace = 'queues';
    const limitsOf = (key: string) => [{ name: 'orders', key, max: 1, since: 1 }];
    await database.query(
      `INSERT INTO ensemble.owners (namespace, id, lease_until, locks) VALUES ($1, '${WORKER}', ${T0 + 1_000_000}, false)`,
      [namespace],
    );
    const commit = commitTo(namespace);
    const claiming = claimingFrom(namespace, {
      ...client,
      transaction: (work, before) =>
        client.transaction((on) => work(recorded(on)), before && ((on) => before(recorded(on)))),
    });
    for (const from of [0, 500])
      await commit(
        WORKER,
        Array.from({ length: 500 }, (_, i) =>
          starting(execution(from + i, { limits: limitsOf(`k${i}`) }), { release: { status: 'queued', dueAt: T0 } }),
        ),
      );
    await claiming.poll(WORKER, []);
    ran = [];
    const query = { now: T0, limit: 50, excludeVersions: [] };
    const held = await claiming.claim(WORKER, query);
    await commit(
      WORKER,
      held.map((one) => ({
        executionId: 'execution' in one ? one.execution.id : one.executionId,
        ...{ epoch: one.epoch, steps: [], end: end() },
      })),
    );
    expect((await claiming.claim(WORKER, query)).length).toBe(50);
    const byKey =
      /^(executions_(due|slots) |executions_in_queue .*queue = |executions_pkey .*\bid = |place .*ctid = |(queues|limits|slots|arrivals|charges)_)/;
    for (const one of ran) {
      const reads = others(await explain(one), byKey).filter((read) => read.includes('executions'));
      expect([one[0].text, reads]).toEqual([one[0].text, []]);
    }
  });
});
