/** `context.step`: a part of an attempt has a stored result of its own, whatever happens to the attempt. */

import { describe, expect, it, test } from 'vitest';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createTestOrchestrator, replay } from '../../src/entries/testing.ts';
import type { OperationContext, OperationPart } from '../../src/index.ts';
import { defineOperation, memoryStorage } from '../../src/index.ts';
import { newFile } from '../storage/sqlite-files.ts';

const tool = (number: number, name = `t${number}`): OperationPart => ({ kind: 'tool', number, name });

type Run = (context: OperationContext) => unknown;

/** An orchestrator whose ensemble `e` has one agent `a`. */
function withOperation(run: Run, fields: object = {}, options: object = {}) {
  return createTestOrchestrator({
    operations: [defineOperation({ name: 'mine', run })],
    ensembles: [{ name: 'e', flow: [{ agent: 'a', operation: 'mine', ...fields }], outputs: { a: '${a.output}' } }],
    ...options,
  });
}

const AGAIN = { retry: { maxAttempts: 3, backoff: 'fixed', delay: 10 } };

async function stepsOf(orchestrator: ReturnType<typeof withOperation>, id: string) {
  return (await orchestrator.executions.steps(id)).steps;
}

describe('a stored part does not run again', () => {
  it.each([
    ['memory', () => memoryStorage()],
    ['SQLite', () => sqliteStorage({ path: newFile() })],
  ])('after a crash, on %s', async (_name, storage) => {
    const ran: string[] = [];
    let hangs = true;
    const run: Run = async ({ step }) => {
      const first = await step(tool(1), () => ran.push('first'));
      if (hangs) await new Promise(() => {});
      return [first, await step(tool(2), () => ran.push('second'))];
    };
    const orchestrator = withOperation(run, {}, { storage: storage() });
    const { id } = await orchestrator.start('e');
    await orchestrator.clock.advance(0);
    while ((await stepsOf(orchestrator, id)).length === 0) await orchestrator.clock.advance(0);
    hangs = false;
    const next = await orchestrator.crash();
    const { output, agents } = await next.result(id);
    expect([output, ran, agents[0]?.attempts]).toEqual([{ a: [1, 2] }, ['first', 'second'], 2]);
    await next.close();
  });

  it.each<[unknown]>([[null], [undefined], [0], [''], [false], [{ a: [1] }]])(
    'in the next attempt, if it gave %j',
    async (value) => {
      let calls = 0;
      const run: Run = async ({ step, execution }) => {
        const given = await step(tool(1), () => {
          calls += 1;
          return value;
        });
        if (execution.attempt === 1) throw new Error('again');
        return given;
      };
      const { output } = await withOperation(run, AGAIN).execute('e');
      expect([output, calls]).toEqual([{ a: value ?? null }, 1]);
    },
  );

  it('in `executions.retry`, where the failed attempt is made again', async () => {
    const ran: string[] = [];
    let broken = true;
    const run: Run = async ({ step, execution }) => {
      await step(tool(1), () => ran.push(`pay ${execution.attempt}`));
      if (broken) throw new Error('broken');
      return step(tool(2), () => ran.push('send'));
    };
    const orchestrator = withOperation(run);
    const failed = await orchestrator.execute('e');
    broken = false;
    const done = await (await orchestrator.executions.retry(failed.id)).result();
    expect([failed.status, done.status, ran]).toEqual(['failed', 'completed', ['pay 1', 'send']]);
    expect((await stepsOf(orchestrator, done.id)).map(({ key }) => key)).toEqual([
      'flow[0].tool[1]',
      'flow[0].tool[2]',
      'flow[0]',
    ]);
  });

  it('in `executions.retry` after a cancellation, if it ended within the time that a cancelled step has', async () => {
    const ran: string[] = [];
    let finish = () => {};
    const run: Run = async ({ step, signal }) => {
      await step(tool(1), async () => {
        ran.push('pay');
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        return 'paid';
      });
      signal.throwIfAborted();
      return 'done';
    };
    const orchestrator = withOperation(run);
    const handle = await orchestrator.start('e');
    await orchestrator.clock.advance(0);
    handle.cancel();
    await orchestrator.clock.advance(10);
    finish();
    expect((await handle.result()).status).toBe('cancelled');
    const done = await (await orchestrator.executions.retry(handle.id)).result();
    expect([done.status, ran]).toEqual(['completed', ['pay']]);
  });
});

it('a part that throws is not stored, and runs again in the next attempt', async () => {
  let calls = 0;
  const run: Run = ({ step }) =>
    step(tool(1), () => {
      calls += 1;
      if (calls === 1) throw new Error('no');
      return calls;
    });
  expect((await withOperation(run, AGAIN).execute('e')).output).toEqual({ a: 2 });
});

it('when one of two parts at once fails, the next attempt waits for the other and does not run it twice', async () => {
  const ran: string[] = [];
  const run: Run = ({ step, execution, signal }) => {
    const slow = step(tool(1), async () => {
      ran.push('slow');
      await orchestrator.clock.sleep(500, signal);
      return 'slow';
    });
    const quick = step(tool(2), () => {
      ran.push('quick');
      if (execution.attempt === 1) throw new Error('no');
      return 'quick';
    });
    return Promise.all([slow, quick]);
  };
  const orchestrator = withOperation(run, AGAIN);
  const { id } = await orchestrator.start('e');
  await orchestrator.clock.advance(500);
  const done = await orchestrator.result(id);
  expect([done.output, ran]).toEqual([{ a: ['slow', 'quick'] }, ['slow', 'quick', 'quick']]);
  expect(done.duration).toBe(500);
});

it('an attempt that is out of time stores nothing more: the next one runs the part again', async () => {
  const ends: (() => void)[] = [];
  const run: Run = ({ step, execution }) =>
    step(tool(1), async () => {
      await new Promise<void>((resolve) => {
        if (execution.attempt === 1) ends.push(resolve);
        else resolve();
      });
      return execution.attempt;
    });
  const orchestrator = withOperation(run, { ...AGAIN, timeout: 100 });
  const { id } = await orchestrator.start('e');
  await orchestrator.clock.advance(110);
  ends[0]?.();
  await orchestrator.clock.advance(0);
  const done = await orchestrator.result(id);
  expect(done.output).toEqual({ a: 2 });
  expect((await stepsOf(orchestrator, done.id)).map(({ key, output }) => [key, output])).toEqual([
    ['flow[0]', 2],
    ['flow[0].tool[1]', 2],
  ]);
});

it('what the operation does with a result changes nothing of what is stored', async () => {
  const run: Run = async ({ step, execution }) => {
    const list = (await step(tool(1), () => [1])) as number[];
    list.push(2);
    if (execution.attempt === 1) throw new Error('again');
    return list;
  };
  const orchestrator = withOperation(run, AGAIN);
  const { id, output } = await orchestrator.execute('e');
  expect([output, (await stepsOf(orchestrator, id))[0]?.output]).toEqual([{ a: [1, 2] }, [1]]);
});

it('the steps of an execution list each part with its kind, name, duration and result', async () => {
  const run: Run = async ({ step }) => {
    await step({ kind: 'model', number: 1, name: 'small' }, async () => {
      await orchestrator.clock.sleep(20);
      return { text: 'hi', usage: { inputTokens: 5, outputTokens: 2, cost: 0.5 }, finishReason: 'stop' };
    });
    await step(tool(1, 'search'), () => ({ isError: true }));
    await step(tool(2, 'fetch'), () => null);
    await step({ kind: 'model', number: 2, name: 'other' }, () => ({ usage: { prompt_tokens: 3 } }));
    return 1;
  };
  const orchestrator = withOperation(run);
  const events: unknown[] = [];
  orchestrator.on('tool.completed', ({ data }) => events.push([data.key, data.tool, data.isError, data.duration]));
  orchestrator.on('model.completed', ({ data }) => events.push([data.key, data.model, data.usage, data.finishReason]));
  const { id } = await orchestrator.start('e');
  await orchestrator.clock.advance(20);
  const { metrics, status } = await orchestrator.result(id);
  expect(status).toBe('completed');
  expect((await stepsOf(orchestrator, id)).map(({ key, kind, name, duration }) => [key, kind, name, duration])).toEqual(
    [
      ['flow[0].model[1]', 'model', 'small', 20],
      ['flow[0].tool[1]', 'tool', 'search', 0],
      ['flow[0].tool[2]', 'tool', 'fetch', 0],
      ['flow[0].model[2]', 'model', 'other', 0],
      ['flow[0]', 'agent', 'a', 20],
    ],
  );
  const none = { inputTokens: 0, outputTokens: 0 };
  expect(events).toEqual([
    ['flow[0].model[1]', 'small', { inputTokens: 5, outputTokens: 2, cost: 0.5 }, 'stop'],
    ['flow[0].tool[1]', 'search', true, 0],
    ['flow[0].tool[2]', 'fetch', false, 0],
    ['flow[0].model[2]', 'other', none, 'other'],
  ]);
  expect(metrics).toMatchObject({ usage: { inputTokens: 5, outputTokens: 2, cost: 0.5 } });
  const stored: string[] = [];
  for await (const { event } of orchestrator.executions.events(id)) stored.push(event.event);
  expect(stored.filter((kind) => /^(model|tool)/.test(kind))).toEqual([
    'model.completed',
    'tool.completed',
    'tool.completed',
    'model.completed',
  ]);
});

it('with `durability: none`, parts are stored with the end', async () => {
  const run: Run = ({ step }) => step(tool(1), () => 7);
  const orchestrator = createTestOrchestrator({
    operations: [defineOperation({ name: 'mine', run })],
    ensembles: [{ name: 'e', execution: { durability: 'none' }, flow: [{ agent: 'a', operation: 'mine' }] }],
  });
  const { id } = await orchestrator.execute('e');
  expect((await stepsOf(orchestrator, id)).map(({ kind, output }) => [kind, output])).toEqual([
    ['tool', 7],
    ['agent', 7],
  ]);
});

describe('what is refused', () => {
  test.each<[string, () => unknown, string]>([
    ['a function', () => () => 1, 'what tool `t1` of agent `a` gave is a function'],
    ['a nested date that is invalid', () => ({ at: new Date(Number.NaN) }), '`at` in what tool `t1` of agent `a` gave'],
    ['a value that is too large', () => 'x'.repeat(5 * 1024 * 1024), 'what tool `t1` of agent `a` gave'],
  ])('%s: INVALID_OUTPUT, and the part is not stored', async (_what, give, message) => {
    const orchestrator = withOperation(({ step }) => step(tool(1), give));
    const { id, error } = await orchestrator.execute('e');
    expect([error?.code, error?.message.slice(0, message.length)]).toEqual(['INVALID_OUTPUT', message]);
    expect((await stepsOf(orchestrator, id)).map(({ kind }) => kind)).toEqual(['agent']);
  });

  test.each([
    [{ kind: 'agent', number: 1, name: 'x' }],
    [{ kind: 'tool', number: 0, name: 'x' }],
    [{ kind: 'tool', number: 1.5, name: 'x' }],
    [{ kind: 'tool', number: 1 }],
  ])('a part %j', async (part) => {
    const { error } = await withOperation(({ step }) => step(part as OperationPart, () => 1)).execute('e');
    expect(error?.message).toContain("a part is `{ kind: 'model', 'tool' or 'send', number: 1 or more, name }`");
  });

  test('a number that the same attempt has used', async () => {
    const run: Run = async ({ step }) => [await step(tool(1, 'a'), () => 'a'), await step(tool(1, 'b'), () => 'b')];
    const { error } = await withOperation(run).execute('e');
    expect(error?.message).toContain('this attempt has a tool part 1 already; give each part its own number');
  });

  test('a part that begins after its attempt has ended: it has no effect, and ends no process', async () => {
    let late: Promise<unknown> | undefined;
    const ran: number[] = [];
    const run: Run = ({ step }) => {
      late = Promise.resolve()
        .then(() => Promise.resolve())
        .then(() => step(tool(1), () => ran.push(1)));
      return 'done';
    };
    expect((await withOperation(run).execute('e')).output).toEqual({ a: 'done' });
    await expect(late).rejects.toThrow('the attempt is over');
    expect(ran).toEqual([]);
  });

  test('a part whose failure nobody awaits does not end the process', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    const run: Run = async ({ step }) => {
      void step(tool(1), () => Promise.reject(new Error('nobody listens')));
      await new Promise((resolve) => setTimeout(resolve, 5));
      return 'done';
    };
    expect((await withOperation(run).execute('e')).output).toEqual({ a: 'done' });
    await new Promise((resolve) => setTimeout(resolve, 5));
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});

it('a stopped execution begins no further part', async () => {
  const ran: number[] = [];
  const run: Run = async ({ step }) => {
    for (let number = 1; number < 100; number++) {
      await step(tool(number), async () => {
        ran.push(number);
        await orchestrator.clock.sleep(10);
      });
    }
  };
  const orchestrator = withOperation(run);
  const handle = await orchestrator.start('e');
  await orchestrator.clock.advance(25);
  handle.cancel();
  await orchestrator.clock.advance(100);
  expect([(await handle.result()).status, ran]).toEqual(['cancelled', [1, 2, 3]]);
});

it('a recorded run with parts replays without a call', async () => {
  let calls = 0;
  const run: Run = async ({ step }) => {
    calls += 1;
    return step(tool(1), () => 5);
  };
  const options = {
    operations: [defineOperation({ name: 'mine', run })],
    ensembles: [{ name: 'e', flow: [{ agent: 'a', operation: 'mine' }], outputs: { a: '${a.output}' } }],
  };
  const orchestrator = createTestOrchestrator(options);
  const { id } = await orchestrator.execute('e');
  const history = JSON.parse(JSON.stringify(await orchestrator.executions.history(id)));
  expect([await replay(history, options), calls]).toEqual([{ matches: true }, 1]);
});

describe('an agent that an attempt called', () => {
  const calling = (script: () => unknown, passesAt: number) => ({
    operations: [
      defineOperation({
        name: 'mine',
        calls: () => [{ agent: 'b', path: [] }],
        async run({ callAgent, execution }: OperationContext) {
          const { output } = await callAgent('b', null, tool(1, 'b'));
          if (execution.attempt < passesAt) throw new Error('again');
          (output as unknown[]).push('changed');
          return output;
        },
      }),
    ],
    agents: [{ name: 'b', operation: 'code', config: { script: 'b' } }],
    scripts: { b: script },
    ensembles: [
      {
        name: 'e',
        flow: [{ agent: 'a', operation: 'mine', retry: { maxAttempts: 2, backoff: 'fixed', delay: 10 } }],
        outputs: { a: '${a.output}' },
      },
    ],
  });

  it('does not run again in the next attempt, nor in `executions.retry`', async () => {
    let calls = 0;
    const script = () => {
      calls += 1;
      return ['b'];
    };
    const done = await createTestOrchestrator(calling(script, 2)).execute('e');
    expect([done.output, calls, done.agents.map(({ name, output }) => [name, output])]).toEqual([
      { a: ['b', 'changed'] },
      1,
      [
        ['b', ['b']],
        ['a', ['b', 'changed']],
      ],
    ]);
    const storage = memoryStorage();
    const failing = createTestOrchestrator({ ...calling(script, 3), storage });
    const { id } = await failing.execute('e');
    const next = createTestOrchestrator({ ...calling(script, 1), storage, clock: failing.clock });
    expect((await (await next.executions.retry(id)).result()).output).toEqual({ a: ['b', 'changed'] });
    expect(calls).toBe(2);
  });

  it('replays without a call', async () => {
    const options = calling(() => ['b'], 2);
    const orchestrator = createTestOrchestrator(options);
    const { id } = await orchestrator.execute('e');
    const history = JSON.parse(JSON.stringify(await orchestrator.executions.history(id)));
    expect(await replay(history, options)).toEqual({ matches: true });
  });
});
