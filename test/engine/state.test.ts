/** State that executions share: one snapshot a step, changes under a version check, no lost change. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { isOrchestratorError } from '../../src/engine/base/errors.ts';
import { laterStorage } from '../storage/later-storage.ts';
import { boom, code, deferred, echo, ok, scene, turns, when } from './scene.ts';

const counter = (fields: object = {}) => ({
  state: { initial: { count: 0 } },
  flow: [ok('a', { setState: { count: '${state.count + 1}' } })],
  outputs: { count: '${state.count}' },
  ...fields,
});

describe('state', () => {
  it('begins as `initial`, and is kept between runs', async () => {
    const { run } = scene(counter());
    expect([(await run()).output, (await run()).output, (await run()).output]).toEqual([
      { count: 1 },
      { count: 2 },
      { count: 3 },
    ]);
  });

  it('`initial` applies until a key is set', async () => {
    const { run } = scene({
      state: { initial: { a: 1, b: { deep: true } } },
      flow: [echo('before', '${state}'), ok('set', { setState: { a: 2 } }), echo('after', '${state}')],
      outputs: { before: '${before.output}', after: '${after.output}' },
    });
    expect((await run()).output).toEqual({ before: { a: 1, b: { deep: true } }, after: { a: 2, b: { deep: true } } });
    expect((await run()).output).toEqual({ before: { a: 2, b: { deep: true } }, after: { a: 2, b: { deep: true } } });
  });

  it("setState reads its own agent's output, and earlier results", async () => {
    const { run } = scene({
      state: { initial: {} },
      flow: [
        ok('x', { config: { give: 5 } }),
        ok('a', {
          config: { give: { n: 7 } },
          setState: { sum: '${a.output.n + x.output}', list: ['${a.output}', 'text ${x.output}'] },
        }),
      ],
      outputs: { state: '${state}' },
    });
    expect((await run()).output).toEqual({ state: { sum: 12, list: [{ n: 7 }, 'text 5'] } });
  });

  it('an agent that fails sets nothing', async () => {
    const { run } = scene(
      counter({ flow: [boom('a', { setState: { count: 9 }, retry: { maxAttempts: 2 }, continueOnError: true })] }),
    );
    expect((await run()).output).toEqual({ count: 0 });
  });

  it('an agent that is skipped sets nothing', async () => {
    const { run } = scene(counter({ flow: [ok('a', { setState: { count: 9 }, ...when('false') })] }));
    expect((await run()).output).toEqual({ count: 0 });
  });

  it('a failing setState fails the agent, changes nothing, and a guard handles it', async () => {
    const { run, orchestrator } = scene({
      state: { initial: { count: 0 } },
      flow: [ok('a', { setState: { count: '${state.count + 1}', bad: '${a.output - 1}' } }), ok('b', when('a.failed'))],
      outputs: { count: '${state.count}', why: '${a.error.code}', output: '${a.output}' },
    });
    const result = await run();
    expect(result).toMatchObject({ status: 'completed', output: { count: 0, why: 'EXPRESSION_ERROR', output: null } });
    expect((await orchestrator.executions.get(result.id)).agents[0]).toMatchObject({
      name: 'a',
      status: 'failed',
      output: null,
    });
  });

  it('a step reads one snapshot in its condition, input and config, even when another run sets the state meanwhile', async () => {
    const gate = deferred();
    const made = scene(
      {
        state: { initial: { n: 1 } },
        flow: [
          ok('first', { ...when('input.slow'), config: { script: 'gate' } }),
          code('a', 'both', { ...when('state.n > 0'), input: { n: '${state.n}' }, config: { n: '${state.n}' } }),
          ok('set', { setState: { n: '${state.n + 1}' } }),
        ],
        outputs: { a: '${a.output}', n: '${state.n}' },
      },
      { scripts: { gate: () => gate.promise, both: ({ input, config }) => [input.n, config.n] } },
    );
    const slow = await made.start({ slow: true });
    expect((await made.run({ slow: false })).output).toEqual({ a: [1, 1], n: 2 });
    gate.resolve(1);
    expect((await slow.result()).output).toEqual({ a: [2, 2], n: 3 });
  });

  it.each([
    ['at once', () => memoryStorage()],
    ['later', () => laterStorage(memoryStorage())],
  ])('100 executions at the same time lose no update, with a storage that answers %s', async (_when, storage) => {
    const { run, orchestrator } = scene(counter(), { storage: storage() });
    const results = await Promise.all(Array.from({ length: 100 }, () => run()));
    expect(new Set(results.map(({ status }) => status))).toEqual(new Set(['completed']));
    expect((await run()).output).toEqual({ count: 101 });
    const [one] = (await orchestrator.executions.list({ limit: 1 })).executions;
    expect(one?.metrics.agents).toBe(1);
  });

  it('100 items of a foreach at the same time lose no update', async () => {
    const items = Array.from({ length: 100 }, (_, i) => i + 1);
    const flow = [
      {
        foreach: '${input.items}',
        concurrency: 50,
        steps: [code('x', 'soon', { setState: { count: '${state.count + item}' } })],
      },
    ];
    const { run } = scene(counter({ flow }), {
      scripts: { soon: async () => null },
      storage: laterStorage(memoryStorage()),
    });
    expect((await run({ items })).output).toEqual({ count: 5050 });
  });

  it('on a conflict the expressions are evaluated again over the newest state, and the agent does not run again', async () => {
    const storage = memoryStorage();
    let conflicts = 0;
    const contested: typeof storage = {
      ...storage,
      commit(worker, batch) {
        const [entry] = batch;
        if (entry?.state && conflicts < 3) {
          conflicts += 1;
          const version = conflicts;
          const executionId = `exec_other_${version}`;
          storage.commit(worker, [
            { executionId, epoch: 1, start: acceptedLike(executionId), steps: [] },
            {
              executionId,
              epoch: 1,
              steps: [],
              state: { ensemble: 'e', expectedVersion: version - 1, value: { count: version * 100 }, updatedAt: 0 },
            },
          ]);
        }
        return storage.commit(worker, batch);
      },
    };
    const { run, ran } = scene(counter(), { storage: contested });
    expect((await run()).output).toEqual({ count: 301 });
    expect([ran, conflicts]).toEqual([['a'], 3]);
  });

  it('is shared by all agents of an ensemble, and separate for each ensemble', async () => {
    const other = { name: 'other', ...counter() };
    const { run, orchestrator } = scene(counter(), { ensembles: [other] });
    await run();
    await run();
    expect((await orchestrator.execute('other')).output).toEqual({ count: 1 });
  });

  it('is kept even when the run fails later: it commits with its agent', async () => {
    const { run } = scene(counter({ flow: [ok('a', { setState: { count: '${state.count + 1}' } }), boom('b')] }));
    expect(await run()).toMatchObject({ status: 'failed', partialOutput: { count: 1 } });
    expect(await run()).toMatchObject({ status: 'failed', partialOutput: { count: 2 } });
  });

  it('with durability `none` too', async () => {
    const { run } = scene(counter({ execution: { durability: 'none' } }));
    await run();
    expect((await run()).output).toEqual({ count: 2 });
  });

  it('with durability `none`, a result that comes while a state change is stored is not lost', async () => {
    const flow = [
      { foreach: [1, 2], concurrency: 2, steps: [ok('x', { setState: { count: '${state.count + item}' } }), ok('y')] },
      ok('z'),
    ];
    const { run, orchestrator } = scene(counter({ flow, execution: { durability: 'none' } }), {
      storage: laterStorage(memoryStorage()),
    });
    const result = await run();
    expect(result.metrics.agents).toBe(5);
    expect((await orchestrator.executions.get(result.id)).metrics.agents).toBe(5);
  });

  it('state.updated has the state after the change, once for each change', async () => {
    const { run, orchestrator } = scene(
      counter({
        flow: [
          ok('a', { setState: { count: '${state.count + 1}' } }),
          ok('b'),
          ok('c', { setState: { last: '${c.output}' } }),
        ],
      }),
    );
    const events: unknown[] = [];
    orchestrator.on('state.updated', ({ data }) => events.push(data));
    const { id } = await run();
    expect(events).toEqual([
      { executionId: id, ensemble: 'e', state: { count: 1 } },
      { executionId: id, ensemble: 'e', state: { count: 1, last: 'c' } },
    ]);
  });

  it('a script can change the state only by setState', async () => {
    const { run } = scene(
      {
        state: { initial: { list: [1] } },
        flow: [code('a', 'spoil', { input: '${state}', config: { all: '${state}' } })],
        outputs: { state: '${state}' },
      },
      {
        scripts: {
          spoil: ({ input, config }) => {
            input.list.push(2);
            (config.all as { list: number[] }).list.push(3);
            return null;
          },
        },
      },
    );
    expect((await run()).output).toEqual({ state: { list: [1] } });
    expect((await run()).output).toEqual({ state: { list: [1] } });
  });

  it.each([
    ['setState without `state`', { flow: [ok('a', { setState: { x: 1 } })] }, 'needs `state: { initial: { ... } }`'],
    ['${state} without `state`', { flow: [echo('a', '${state.x}')] }, 'the ensemble has no `state`'],
    [
      'a secret in setState',
      { state: { initial: {} }, flow: [ok('a', { setState: { x: '${env.KEY}' } })] },
      'is a secret',
    ],
  ])('refused at load: %s', (_what, definition, message) => {
    const refused = () => scene(definition, { secrets: { KEY: 'a-long-secret' } });
    expect(refused).toThrow(message);
    try {
      refused();
    } catch (error) {
      expect(isOrchestratorError(error, 'INVALID_DEFINITION')).toBe(true);
    }
  });

  it('random values in a state change stay the same after a conflict', async () => {
    const gate = deferred();
    const { start, run } = scene(
      counter({ flow: [code('a', 'gate', { setState: { id: '${uuid()}' } })], outputs: { id: '${state.id}' } }),
      { scripts: { gate: () => gate.promise } },
    );
    const handle = await start();
    await turns();
    gate.resolve(1);
    const first = (await handle.result()).output as { id: string };
    expect(first.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect((await run()).output).not.toEqual(first);
  });
});

function acceptedLike(id: string) {
  return {
    id,
    ensemble: 'e',
    version: 'v',
    trigger: { type: 'call' as const },
    input: null,
    seed: '0',
    createdAt: 0,
  };
}
