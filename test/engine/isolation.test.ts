/** Values that nothing may change: inputs, stored results, returned records; and random values that a replay repeats. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { NewExecution } from '../../src/engine/execution/stored-execution.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { manualClock } from '../../src/entries/testing.ts';
import { code, echo, ok, scene, when } from './scene.ts';

/** Writes to everything that it can reach, and returns what it read before. */
function spoil(value: unknown): unknown {
  const seen = structuredClone(value);
  const walk = (part: unknown): void => {
    if (typeof part !== 'object' || part === null) return;
    for (const inner of Object.values(part)) walk(inner);
    try {
      if (Array.isArray(part)) part.push('spoiled');
      else (part as { spoiled?: boolean }).spoiled = true;
    } catch {
      // Frozen: as good.
    }
  };
  walk(value);
  return seen;
}

describe('a script can not change for others', () => {
  const given = { list: [1, { deep: [2] }], text: 'x' };

  it.each([
    [
      "the run's input, as the default input",
      [code('a', 'spoil'), code('b', 'spoil')],
      ['${a.output}', '${b.output}', '${input}'],
      given,
    ],
    [
      'an input that is one expression',
      [code('a', 'spoil', { input: '${input}' }), code('b', 'spoil', { input: '${input}' })],
      ['${a.output}', '${b.output}', '${input}'],
      given,
    ],
    [
      "another step's output as input",
      [
        echo('x', '${input}'),
        code('a', 'spoil', { input: '${x.output}' }),
        code('b', 'spoil', { input: '${x.output}' }),
      ],
      ['${a.output}', '${b.output}', '${x.output}'],
      given,
    ],
    [
      'a literal input',
      [code('a', 'spoil', { input: given, name: 'a1' }), code('a', 'spoil', { input: given, name: 'b1' })],
      ['${a1.output}', '${b1.output}'],
      given,
    ],
    [
      'an item',
      [
        {
          foreach: ['${input}', '${input}'],
          concurrency: 2,
          name: 'all',
          steps: [code('x', 'spoil', { input: '${item}' })],
        },
      ],
      ['${all.output[0]}', '${all.output[1]}', '${input}'],
      given,
    ],
  ])('%s', async (_what, flow, reads, expected) => {
    const { run } = scene({ flow, outputs: { reads } }, { scripts: { spoil: ({ input }) => spoil(input) } });
    for (let i = 0; i < 2; i++) expect((await run(given)).output).toEqual({ reads: reads.map(() => expected) });
  });

  it.each([
    ['with expressions', { list: [1, '${input.n}'] }],
    ['without', { list: [1, 2] }],
  ])('its config, %s: the next attempt, item and run read the definition', async (_what, config) => {
    const { run } = scene(
      {
        flow: [{ foreach: [1, 2], name: 'all', steps: [code('x', 'spoil', { config, retry: { maxAttempts: 2 } })] }],
        outputs: { all: '${all.output}' },
      },
      {
        scripts: {
          spoil: ({ config: own, execution }) => {
            const seen = spoil(own);
            if (execution.attempt === 1) throw new Error('again');
            return seen;
          },
        },
      },
    );
    for (let i = 0; i < 2; i++)
      expect((await run({ n: 2 })).output).toEqual({ all: [{ list: [1, 2] }, { list: [1, 2] }] });
  });

  it('the variables of `env`', async () => {
    const { run } = scene(
      { flow: [code('a', 'spoil'), code('b', 'read')], outputs: { b: '${b.output}' } },
      {
        env: { KEY: 'as given' },
        scripts: {
          spoil: ({ env }) => {
            try {
              (env as Record<string, string>).KEY = 'spoiled';
            } catch {
              // Frozen: as good.
            }
          },
          read: ({ env }) => env.KEY,
        },
      },
    );
    expect((await run()).output).toEqual({ b: 'as given' });
    expect((await run()).output).toEqual({ b: 'as given' });
  });

  it('an output that it keeps and changes later', async () => {
    const kept = { list: [1] };
    const { run, orchestrator } = scene(
      { flow: [code('a', 'keep'), code('b', 'change')], outputs: { a: '${a.output}' } },
      {
        scripts: {
          keep: () => kept,
          change: () => {
            kept.list.push(2);
            return null;
          },
        },
      },
    );
    const result = await run();
    kept.list.push(3);
    expect(result.output).toEqual({ a: { list: [1] } });
    expect((await orchestrator.executions.get(result.id)).agents[0]?.output).toEqual({ list: [1] });
  });

  it('the default input, which is one frozen copy a run: a script that changes it fails', async () => {
    const seen = new Set<object>();
    const { run, orchestrator } = scene(
      {
        flow: [
          { foreach: '${input.rows}', steps: [code('look', 'look')], name: 'each', concurrency: 2 },
          code('own', 'push', { input: '${input}' }),
          code('shared', 'push'),
        ],
        outputs: { each: '${each.output}', own: '${own.output}' },
      },
      {
        scripts: {
          look: ({ input }) => {
            seen.add(input);
            return Object.isFrozen(input) && Object.isFrozen(input.rows) && Object.isFrozen(input.rows[0]);
          },
          push: ({ input }) => input.rows.push(0),
        },
      },
    );
    const first = await run({ rows: [{ a: 1 }, { a: 2 }, { a: 3 }] });
    expect(first.partialOutput).toEqual({ each: [true, true, true], own: 4 });
    expect(seen.size).toBe(1);
    const message = expect.stringContaining('change a copy (`structuredClone(input)`)');
    expect(first).toMatchObject({ status: 'failed', error: { agent: 'shared', message } });
    expect((await orchestrator.executions.get(first.id)).input).toEqual({ rows: [{ a: 1 }, { a: 2 }, { a: 3 }] });
    await run({ rows: [{}] });
    expect(seen.size).toBe(2);
  });

  it('the context of a host operation', async () => {
    const operation = {
      name: 'own',
      run: ({ config, input }: { config: unknown; input: unknown }) => [spoil(config), spoil(input)],
    };
    const { run } = scene(
      {
        flow: [
          echo('x', '${input}'),
          { agent: 'a', operation: 'own', config: { all: '${x.output}' }, input: '${x.output}' },
        ],
        outputs: { a: '${a.output}', x: '${x.output}' },
      },
      { operations: [operation] },
    );
    expect((await run(given)).output).toEqual({ a: [{ all: given }, given], x: given });
  });
});

describe('values of the caller', () => {
  it('changing the input after the call changes nothing', async () => {
    const input = { list: [1] };
    const { start } = scene({ flow: [echo('a', '${input.list}')], outputs: { a: '${a.output}' } });
    const handle = start(input);
    input.list.push(2);
    expect((await (await handle).result()).output).toEqual({ a: [1] });
  });

  it('changing a record that was returned changes nothing that is stored', async () => {
    const { run, orchestrator } = scene({
      flow: [echo('a', '${input}'), code('b', 'boom')],
      outputs: { a: '${a.output}' },
    });
    const result = await run({ deep: { list: [1] } });
    const before = structuredClone(result);
    spoil(result);
    expect(await orchestrator.executions.get(result.id)).toEqual(before);
    const [listed] = (await orchestrator.executions.list()).executions;
    expect(listed).toEqual({ ...before, agents: [] });
    spoil(listed);
    spoil(await orchestrator.executions.get(result.id));
    expect(await orchestrator.executions.get(result.id)).toEqual(before);
  });

  it('changing a definition after createOrchestrator changes nothing', async () => {
    const config = { script: 'ok', give: [1] };
    const definition = {
      name: 'mine',
      flow: [{ agent: 'a', operation: 'code', config }],
      outputs: { a: '${a.output}' },
    };
    const { orchestrator } = scene([ok('x')], { ensembles: [definition] });
    config.give.push(2);
    definition.outputs.a = 'changed';
    expect((await orchestrator.execute('mine')).output).toEqual({ a: [1] });
    spoil(await orchestrator.ensembles.get('mine'));
    expect((await orchestrator.ensembles.get('mine')).definition).toMatchObject({ outputs: { a: '${a.output}' } });
  });

  it('a listener that changes an event affects no result and no other listener', async () => {
    const { run, orchestrator } = scene({
      flow: [echo('a', '${input}'), echo('b', '${a.output}')],
      outputs: { b: '${b.output}' },
    });
    const received: unknown[] = [];
    for (const kind of ['execution.started', 'agent.completed', 'execution.completed'] as const) {
      orchestrator.on(kind, (event) => {
        spoil(event);
      });
      orchestrator.on(kind, ({ data }) => received.push('output' in data ? data.output : data.input));
    }
    const result = await run({ list: [1] });
    expect(result.output).toEqual({ b: { list: [1] } });
    expect(await orchestrator.executions.get(result.id)).toEqual(result);
    expect(received).toEqual([{ list: [1] }, { list: [1] }, { list: [1] }, { b: { list: [1] } }]);
  });
});

describe('random, uuid and now are derived', () => {
  const draws = { r: '${random()}', both: ['${random()}', '${uuid()}'], now: '${now()}' };

  it('equal on every attempt of a step', async () => {
    const seen: unknown[] = [];
    const { run } = scene(
      [code('a', 'flaky', { input: draws, config: { again: '${uuid()}' }, retry: { maxAttempts: 3 } })],
      {
        scripts: {
          flaky: ({ input, config }) => {
            seen.push([input, config]);
            if (seen.length < 3) throw new Error('again');
          },
        },
      },
    );
    await run();
    expect(seen[1]).toEqual(seen[0]);
    expect(seen[2]).toEqual(seen[0]);
  });

  it('different for each call, step, item and run', async () => {
    const { run } = scene({
      flow: [echo('a', draws), { foreach: [1, 2, 3], name: 'all', steps: [echo('x', draws)] }],
      outputs: { all: ['${a.output}', '${all.output}'] },
    });
    const texts = JSON.stringify([(await run()).output, (await run()).output]);
    const numbers = texts.match(/0\.\d+(e-\d+)?/g) ?? [];
    const uuids = texts.match(/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g) ?? [];
    expect([numbers.length, new Set(numbers).size]).toEqual([16, 16]);
    expect([uuids.length, new Set(uuids).size]).toEqual([8, 8]);
  });

  it("equal when the same execution runs again: they depend only on the execution's seed and the place", async () => {
    const definition = {
      flow: [
        echo('a', draws),
        { if: '${random() < 0.5}', then: [ok('heads')], else: [ok('tails')] },
        {
          foreach: [1, 2, 3, 4],
          concurrency: 4,
          name: 'all',
          steps: [echo('x', ['${random()}', '${uuid()}'], when('random() < 0.7'))],
        },
      ],
      outputs: { a: '${a.output}', all: '${all.output}', own: '${uuid()}', heads: '${heads.executed}' },
    };
    const first = memoryStorage();
    let accepted: NewExecution | undefined;
    const keeping: Storage = {
      ...first,
      commit(worker, batch) {
        accepted ??= batch[0]?.start;
        return first.commit(worker, batch);
      },
    };
    const one = await scene(definition, { storage: keeping }).run();
    // A second process runs the execution from its start: the same record, in another storage.
    const resumed = scene(definition, { storage: seeded(memoryStorage(), accepted) });
    expect((await resumed.run()).output).toEqual(one.output);
  });

  it('now() is the time of the last commit: it does not change inside a step, and advances from step to step', async () => {
    const clock = manualClock({ now: 1_000_000 });
    const { run } = scene(
      {
        flow: [
          echo('a', ['${now()}', '${now()}']),
          code('slow', 'late', { retry: { maxAttempts: 2 } }),
          echo('b', '${now()}'),
        ],
        outputs: { all: ['${a.output}', '${b.output}', '${now()}'] },
      },
      {
        clock,
        scripts: {
          late: ({ execution }) => {
            if (execution.attempt === 1) throw new Error('again');
          },
        },
      },
    );
    expect((await run()).output).toEqual({ all: [[1_000_000, 1_000_000], 1_001_000, 1_001_000] });
  });
});

// The execution's seed is created when the execution is accepted, and the interpreter receives it with the execution.
function seeded(storage: Storage, accepted: { readonly seed: string } | undefined): Storage {
  return {
    ...storage,
    commit(worker, batch) {
      for (const { start } of batch) if (start) Object.assign(start, { seed: accepted?.seed });
      return storage.commit(worker, batch);
    },
  };
}
