/** Starting an execution once: the same id or idempotency key again gives the first execution, in whatever state it is. */

import { describe, expect, it } from 'vitest';
import { hostTurn, manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createOrchestrator, embeddedEngine, memoryStorage, OrchestratorError } from '../../src/index.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';
import { boom, deferred, echo, ok, scene } from '../engine/scene.ts';
import { watchedStorage } from '../storage/watched-storage.ts';

const ENSEMBLE = {
  inputs: { n: { type: 'number', default: 1 } },
  flow: [echo('a', '${input.n}')],
  outputs: { n: '${a.output}' },
};

describe('a second start', () => {
  it.each([
    ['the id', { id: 'order:7.a-B_' }],
    ['the key', { idempotencyKey: 'order 7 ä' }],
    ['both', { id: 'order-7', idempotencyKey: 'order 7' }],
  ])('with %s gives the first execution, and runs nothing', async (_what, named) => {
    const { start, run, ran, orchestrator } = scene(ENSEMBLE);
    const first = await start({ n: 7 }, named);
    expect(await first.result()).toMatchObject({ status: 'completed', output: { n: 7 } });
    const second = await start({ n: 7 }, named);
    expect(second.id).toBe(first.id);
    expect(await second.result()).toEqual(await first.result());
    expect((await run({ n: 7 }, named)).id).toBe(first.id);
    if ('id' in named) expect(first.id).toBe(named.id);
    expect(ran).toEqual(['a']);
    expect((await orchestrator.executions.list()).executions).toHaveLength(1);
  });

  it('with the same accepted input is the same start: defaults count, the order of keys does not', async () => {
    const { start } = scene({ ...ENSEMBLE, inputs: { n: { type: 'number', default: 1 }, m: { type: 'number' } } });
    const { id } = await start({ m: 2 }, { idempotencyKey: 'k' });
    expect((await start({ n: 1, m: 2 }, { idempotencyKey: 'k' })).id).toBe(id);
    expect((await start({ m: 2, n: 1 }, { idempotencyKey: 'k' })).id).toBe(id);
  });

  it.each([['id'], ['idempotencyKey']])('with the same %s and another input or ensemble is refused', async (option) => {
    const { start, orchestrator } = scene(ENSEMBLE, { ensembles: [{ name: 'other', ...ENSEMBLE }] as never });
    const { id } = await start({ n: 7 }, { [option]: 'k' });
    const refusal = { code: 'IDEMPOTENCY_KEY_REUSED', details: { executionId: id } };
    const told = (how: string) => ({
      ...refusal,
      message: `the ${option === 'id' ? 'id' : 'idempotency key'} belongs to execution ${id}, which was started ${how}; use a new one for another start`,
    });
    const inputs = start({ n: 8 }, { [option]: 'k' });
    await expect(inputs).rejects.toMatchObject(told('with another input'));
    const ensembles = orchestrator.execute('other', { n: 7 }, { [option]: 'k' });
    await expect(ensembles).rejects.toMatchObject(told('for another ensemble'));
    expect((await orchestrator.executions.list()).executions).toHaveLength(1);
  });

  it('whose id and key are those of two executions is refused, and so is a new key for a known id', async () => {
    const { start } = scene(ENSEMBLE);
    await start({}, { id: 'a', idempotencyKey: 'ka' });
    await start({}, { id: 'b', idempotencyKey: 'kb' });
    const reused = { code: 'IDEMPOTENCY_KEY_REUSED' };
    await expect(start({}, { id: 'a', idempotencyKey: 'kb' })).rejects.toMatchObject(reused);
    await expect(start({}, { id: 'a', idempotencyKey: 'new' })).rejects.toMatchObject(reused);
    await expect(start({}, { id: 'new', idempotencyKey: 'ka' })).rejects.toMatchObject(reused);
    expect((await start({}, { id: 'a', idempotencyKey: 'ka' })).id).toBe('a');
  });

  it('of another scope has another key', async () => {
    const { start } = scene(ENSEMBLE);
    const ids = new Set<string>();
    for (const idempotencyScope of [undefined, 'a', 'ab']) {
      const options = { idempotencyKey: 'bk', ...(idempotencyScope && { idempotencyScope }) };
      ids.add((await start({}, options)).id);
      ids.add((await start({}, options)).id);
    }
    ids.add((await start({}, { idempotencyKey: 'k', idempotencyScope: 'ab' })).id);
    expect(ids.size).toBe(4);
  });

  it('of a running execution waits for its end, sees its events, and can cancel it', async () => {
    const gate = deferred();
    const { start, ran } = scene([ok('a'), { agent: 'b', operation: 'code', config: { script: 'gate' } }, ok('c')], {
      scripts: { gate: () => gate.promise },
    });
    const first = await start({}, { id: 'k' });
    const second = await start({}, { id: 'k' });
    const ended = second.result();
    second.cancel();
    gate.resolve(1);
    expect(await ended).toMatchObject({ id: 'k', status: 'cancelled' });
    expect((await first.result()).status).toBe('cancelled');
    const kinds: string[] = [];
    for await (const { event } of second.events()) kinds.push(event);
    expect(kinds[0]).toBe('execution.started');
    expect(kinds.at(-1)).toBe('execution.cancelled');
    expect(ran).toEqual(['a', 'b']);
  });

  it('whose signal aborts cancels the first execution', async () => {
    const { start } = scene([{ wait: 'go' }]);
    const first = await start({}, { id: 'k' });
    const stop = new AbortController();
    await start({}, { id: 'k', signal: stop.signal });
    stop.abort();
    expect((await first.result()).status).toBe('cancelled');
  });

  it('of an execution that waits returns at once where a caller waits only for work', async () => {
    const { start } = scene([{ wait: 'go' }]);
    await start({}, { id: 'k' });
    const second = await start({}, { id: 'k' });
    expect(await second.resultUnlessWaiting(10_000)).toBeUndefined();
  });

  it('of a failed execution gives the failed one', async () => {
    const { run, ran } = scene([boom('b')]);
    const first = await run({}, { idempotencyKey: 'k' });
    expect(first.status).toBe('failed');
    expect(await run({}, { idempotencyKey: 'k' })).toEqual(first);
    expect(ran).toEqual(['b']);
  });

  it('of a queued execution, in a process that runs none, gives the queued one, and another process runs it once', async () => {
    const storage = memoryStorage({ shared: true });
    const clock = manualClock();
    const ran: unknown[] = [];
    const open = (concurrency: number) =>
      createOrchestrator({
        ensembles: [{ name: 'e', flow: [{ agent: 'a', operation: 'code', config: { script: 'note' } }] }],
        scripts: { note: () => ran.push(1) },
        storage: { ...storage, close() {} },
        engine: embeddedEngine({ concurrency }),
        clock,
      });
    const client = open(0);
    const ids = await Promise.all([1, 2, 3].map(async () => (await client.start('e', {}, { idempotencyKey: 'k' })).id));
    expect(new Set(ids).size).toBe(1);
    expect((await client.executions.get(ids[0] as string)).status).toBe('queued');
    const worker = open(10);
    await worker.runDue();
    expect((await (await client.start('e', {}, { idempotencyKey: 'k' })).result()).status).toBe('completed');
    expect(ran).toEqual([1]);
    await Promise.all([client.close(), worker.close()]);
  });

  it('after the execution was deleted starts a new one', async () => {
    const { start, ran } = scene(ENSEMBLE, { storage: memoryStorage({ keep: 1 }) });
    await (await start({}, { id: 'k', idempotencyKey: 'k' })).result();
    await (await start()).result();
    expect((await (await start({}, { id: 'k', idempotencyKey: 'k' })).result()).status).toBe('completed');
    expect(ran).toEqual(['a', 'a', 'a']);
  });
});

describe.each([
  ['memory', () => memoryStorage()],
  ['SQLite', () => sqliteStorage({ path: ':memory:' })],
])('1,000 twins at once on %s', (_name, create) => {
  it.each([
    ['step', 'id'],
    ['none', 'idempotencyKey'],
  ])('run once (durability %s, by %s)', async (durability, option) => {
    const ran: string[] = [];
    const orchestrator = createOrchestrator({
      ensembles: [
        {
          name: 'e',
          execution: { durability },
          flow: [{ agent: 'a', operation: 'code', config: { script: 'note' } }],
          outputs: { a: '${a.output}' },
        },
      ] as never,
      scripts: { note: ({ execution }) => ran.push(execution.id) },
      storage: create(),
    });
    const twins = Array.from({ length: 1000 }, (_, i) =>
      i % 2 === 0
        ? orchestrator.execute('e', { order: 7 }, { [option]: 'order-7', tags: [`caller=${i}`] })
        : orchestrator.start('e', { order: 7 }, { [option]: 'order-7' }).then((handle) => handle.result()),
    );
    const records = await Promise.all(twins);
    expect(new Set(records.map(({ id }) => id)).size).toBe(1);
    expect(new Set(records.map(({ output }) => JSON.stringify(output)))).toEqual(new Set(['{"a":1}']));
    expect(ran).toHaveLength(1);
    expect((await orchestrator.executions.list()).executions).toHaveLength(1);
    await orchestrator.close();
  });
});

describe('a start without an id and a key', () => {
  it('reads nothing', async () => {
    const { storage, calls } = watchedStorage(memoryStorage());
    const { run } = scene(ENSEMBLE, { storage });
    await run({ n: 1 });
    calls();
    await run({ n: 2 }, { tags: ['a'] });
    expect(Object.keys(calls())).toEqual(['commit']);
  });
});

describe('a start whose storing stays uncertain', () => {
  it.each([
    ['with a key runs, and a repeated call gives it', { idempotencyKey: 'k' }, 'completed'],
    ['without one is cancelled, because its caller can start another one', {}, 'cancelled'],
  ])('%s', async (_what, named, status) => {
    const clock = manualClock();
    const memory = memoryStorage({ shared: true });
    // The storage stores the start, and answers nothing for two minutes.
    const storage = changeStorage(memory, {
      async commit(worker, batch) {
        const answer = await memory.commit(worker, batch);
        if (clock.monotonic() < 120_000) throw new OrchestratorError('OVERLOADED', 'no answer', { retryable: true });
        return answer;
      },
    });
    const { start, ran, orchestrator } = scene(ENSEMBLE, { storage, clock });
    const pass = async (ms: number) => {
      for (const until = clock.monotonic() + ms; clock.monotonic() < until; ) {
        for (let turn = 0; turn < 3; turn++) await hostTurn();
        await clock.advance(Math.min(clock.nextIn ?? 1000, 1000));
      }
    };
    const refused = start({}, named).then(
      () => 'accepted',
      (error) => error.code,
    );
    await pass(180_000);
    expect(await refused).toBe('OVERLOADED');
    const { executions } = await orchestrator.executions.list();
    expect(executions.map((record) => record.status)).toEqual([status]);
    if (status === 'completed') expect((await start({}, named)).id).toBe(executions[0]?.id);
    expect(ran).toEqual(status === 'completed' ? ['a'] : []);
  });
});

describe('an own id', () => {
  it('is the id of the execution everywhere', async () => {
    const { start, orchestrator } = scene(
      {
        flow: [{ wait: 'go', name: 'answer' }, { ensemble: 'child' }, echo('me', '${execution.id}')],
        outputs: { me: '${me.output}', by: '${answer.output}' },
      } as never,
      { ensembles: [{ name: 'child', flow: [ok('c')] }] as never },
    );
    const id = 'exec-order:7';
    const handle = await start({}, { id });
    await orchestrator.executions.signal(id, 'go', 'Ada');
    expect((await handle.result()).output).toEqual({ me: id, by: 'Ada' });
    expect((await orchestrator.executions.list({ parentId: id })).executions).toHaveLength(1);
    expect((await orchestrator.executions.agents(id)).agents).toHaveLength(1);
  });

  it.each(
    [
      [
        '',
        'exec_1',
        `exec_${'0'.repeat(26)}`,
        `exec-${'0'.repeat(26)}`,
        'a b',
        'a/b',
        'ä',
        '.',
        '..',
        'a'.repeat(129),
        7,
        null,
      ],
    ]
      .flat()
      .map((id) => [id]),
  )('%j is refused', async (id) => {
    const { start, orchestrator } = scene(ENSEMBLE);
    await expect(start({}, { id } as never)).rejects.toThrow(/`id` must be 1 to 128 of the characters/);
    expect((await orchestrator.executions.list()).executions).toEqual([]);
  });

  it('that the storage keeps nowhere is refused', async () => {
    const storage = { ...memoryStorage(), accepts: (id: string) => id !== 'elsewhere' };
    const { start } = scene(ENSEMBLE, { storage });
    await expect(start({}, { id: 'elsewhere' })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('elsewhere'),
    });
    expect((await (await start({}, { id: 'here' })).result()).id).toBe('here');
  });

  it('is refused by an engine that places executions by their ids', async () => {
    const engine = embeddedEngine();
    const placing = {
      attach: (host: never) =>
        Object.assign(Object.create(engine.attach(host)), { newId: () => `exec_${'1'.repeat(26)}` }),
    };
    const orchestrator = createOrchestrator({
      ensembles: [{ name: 'e', ...ENSEMBLE }] as never,
      scripts: { echo: ({ input }) => input },
      engine: placing as never,
    });
    await expect(orchestrator.execute('e', {}, { id: 'mine' })).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    expect((await orchestrator.execute('e', {}, { idempotencyKey: 'k' })).status).toBe('completed');
  });
});

describe('wrong options', () => {
  it.each([
    [{ idempotencyKey: '' }, '`idempotencyKey` must be text of 1 to 255 characters'],
    [{ idempotencyKey: 'a'.repeat(256) }, '`idempotencyKey`'],
    [{ idempotencyKey: 'a', idempotencyScope: '' }, '`idempotencyScope`'],
    [{ tags: 'vip' }, '`tags` must be a list of up to 16 texts of 1 to 128 characters'],
    [{ tags: [''] }, '`tags`'],
    [{ tags: ['a\nb'] }, '`tags`'],
    [{ tags: ['a'.repeat(129)] }, '`tags`'],
    [{ tags: Array.from({ length: 17 }, String) }, '`tags`'],
    [{ tag: ['vip'] }, 'did you mean `tags`?'],
  ])('%j: the error names the option', async (options, message) => {
    const { start } = scene(ENSEMBLE);
    await expect(start({}, options as never)).rejects.toThrow(message);
  });
});

describe('tags', () => {
  it('are in the record once each, in their order, and stay on a retry, without its id and key', async () => {
    const { run, orchestrator } = scene([boom('b')]);
    const failed = await run({}, { id: 'a', idempotencyKey: 'k', tags: ['z', 'customer=7', 'z'] });
    expect([failed.status, failed.tags]).toEqual(['failed', ['z', 'customer=7']]);
    const again = await (await orchestrator.executions.retry('a')).result();
    expect(again.id).toMatch(/^exec_/);
    expect([again.retryOf, again.tags]).toEqual(['a', ['z', 'customer=7']]);
    expect((await run({}, { idempotencyKey: 'k', id: 'a' })).id).toBe(again.id);
  });

  it('are not those of its children', async () => {
    const { run, orchestrator } = scene([{ ensemble: 'child' }], {
      ensembles: [{ name: 'child', flow: [ok('c')] }] as never,
    });
    const { id } = await run({}, { tags: ['vip'] });
    const { executions } = await orchestrator.executions.list({ parentId: id });
    expect(executions.map(({ tags }) => tags)).toEqual([[]]);
  });
});
