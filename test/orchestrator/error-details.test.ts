/** Why an execution failed: the details, the stack and the cause of what a script threw, and who may read them. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import type { ExecutionError } from '../../src/engine/execution/execution.ts';
import { manualClock } from '../../src/entries/testing.ts';
import type { Script } from '../../src/operations/code/script.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { code, echo, ok, scene, when } from '../engine/scene.ts';

const details = { status: 402, body: 'card refused', retryAfterMs: 5 };
const refuse: Script = () => {
  throw new OrchestratorError('AGENT_FAILED', 'refused', { details });
};
const throwing =
  (thrown: () => unknown): Script =>
  () => {
    throw thrown();
  };

/** The error of an agent whose script throws. */
async function errorOf(thrown: () => unknown, options: object = {}): Promise<ExecutionError | undefined> {
  const { run } = scene([code('a', 'fail')], { scripts: { fail: throwing(thrown) }, ...options });
  const record = await run();
  expect(record.error).toEqual(record.agents[0]?.error);
  return record.error;
}

describe('`details` of an error', () => {
  it('are in the record, the events, and `${a.error.details}`', async () => {
    const { run, orchestrator } = scene(
      {
        flow: [code('a', 'refuse', { continueOnError: true }), code('b', 'refuse')],
        outputs: { body: '${a.error.details.body}', all: '${b.error.details}', error: '${a.error}' },
      },
      { scripts: { refuse } },
    );
    const events: unknown[] = [];
    orchestrator.on('agent.failed', ({ data }) => events.push(data.error.details));
    orchestrator.on('execution.failed', ({ data }) => events.push(data.error));
    const record = await run();
    expect(record.agents.map(({ error }) => error?.details)).toEqual([details, details]);
    expect(record.error).toEqual({ code: 'AGENT_FAILED', message: 'refused', agent: 'b', details });
    expect(record.partialOutput).toEqual({
      ...{ body: 'card refused', all: details },
      error: { code: 'AGENT_FAILED', message: 'refused', agent: 'a', details },
    });
    expect(events).toEqual([details, details, { message: 'refused', details }]);
    const stored: unknown[] = [];
    for await (const { event } of orchestrator.executions.events(record.id))
      if (event.event === 'agent.failed') stored.push(event.data.error);
    expect(stored).toEqual(Array(2).fill({ code: 'AGENT_FAILED', message: 'refused', details }));
  });

  it('can be read in a `catch`, and are in the event of a retry', async () => {
    const { run, orchestrator } = scene(
      [
        {
          try: [code('a', 'fail', { retry: { maxAttempts: 2 } })],
          catch: [echo('c', { code: '${error.details.code}', all: '${error}' })],
        },
      ],
      { scripts: { fail: throwing(() => Object.assign(new Error('down'), { code: 'ECONNREFUSED' })) } },
    );
    const retried: unknown[] = [];
    orchestrator.on('agent.retrying', ({ data }) => retried.push(data.error));
    const own = { code: 'AGENT_FAILED', message: 'down', details: { code: 'ECONNREFUSED' } };
    const { agents } = await run();
    expect(agents.at(-1)?.output).toEqual({ code: 'ECONNREFUSED', all: { ...own, agent: 'a' } });
    expect(retried).toEqual([own]);
  });

  it('of another error are its own `details` and `code`; `error.code` stays a code of the library', async () => {
    const own = await errorOf(() => Object.assign(new Error('x'), { code: 'P2002', details: { table: 'orders' } }));
    expect(own).toMatchObject({ code: 'AGENT_FAILED', details: { code: 'P2002', table: 'orders' } });
    const both = await errorOf(() => Object.assign(new Error('x'), { code: 1, details: { code: 2 } }));
    expect(both?.details).toEqual({ code: 2 });
    for (const thrown of [new DOMException('x', 'AbortError'), new Error('x'), 'x', null, { details: ['x'] }])
      expect((await errorOf(() => thrown))?.details).toBeUndefined();
  });

  it('are JSON: what JSON has no form for is left out', async () => {
    const cycle: Record<string, unknown> = {
      n: 1,
      big: 12n,
      when: new Date(0),
      f() {},
      s: Symbol('s'),
      e: new Error('in'),
    };
    cycle.self = { deep: [undefined, Number.NaN] };
    Object.defineProperty(cycle, 'getter', { enumerable: true, get: () => 'read' });
    const error = await errorOf(() => new OrchestratorError('AGENT_FAILED', 'x', { details: cycle }));
    expect(error?.details).toEqual({
      ...{ n: 1, big: '12', when: '1970-01-01T00:00:00.000Z', e: { name: 'Error', message: 'in' } },
      self: { deep: [null, null] },
    });
    cycle.self = cycle;
    const cyclic = await errorOf(() => new OrchestratorError('AGENT_FAILED', 'x', { details: cycle }));
    expect(cyclic?.details?.n).toBe(1);
  });

  it('take at most 8 KiB: the longest texts are cut, then the largest members are left out', async () => {
    const sizeOf = (error: ExecutionError | undefined) => JSON.stringify(error?.details).length;
    const text = await errorOf(() => ({ message: 'x', details: { status: 5, body: 'b'.repeat(1_000_000) } }));
    expect(text?.details).toEqual({ status: 5, body: `${'b'.repeat(2048)}...` });
    const list = Array.from({ length: 5000 }, (_, i) => i);
    const many = await errorOf(() => ({ message: 'x', details: { list, status: 5 } }));
    expect(many?.details).toEqual({ list: '...', status: 5 });
    const keys = Object.fromEntries(list.map((i) => [`key ${i}`, i]));
    const wide = await errorOf(() => ({ message: 'x', details: { ...keys, ['k'.repeat(9000)]: 1 } }));
    expect(sizeOf(wide)).toBeLessThanOrEqual(8192);
    expect(sizeOf(wide)).toBeGreaterThan(4000);
  });

  it('are masked before they are cut', async () => {
    const secret = 'correct-horse-battery';
    const thrown = () => ({
      message: 'x',
      details: { body: 'b'.repeat(2040) + secret + 'c'.repeat(9000), [secret]: { deep: [`${secret}!`] } },
      code: secret,
    });
    const error = await errorOf(thrown, { secrets: { KEY: secret }, errors: { stack: true } });
    expect(JSON.stringify(error)).not.toContain('correct');
    expect(error?.details).toMatchObject({ code: '***', '***': { deep: ['***!'] } });
  });

  it('a value that breaks whoever reads it has none, and fails its agent like any other', async () => {
    const traps = new Proxy(
      {},
      {
        get() {
          throw new Error('trap');
        },
        has: () => true,
        ownKeys() {
          throw new Error('trap');
        },
        getPrototypeOf() {
          throw new Error('trap');
        },
      },
    );
    const hostile = Object.defineProperties(new Error('x'), {
      details: {
        get() {
          throw new Error('trap');
        },
      },
      stack: {
        get() {
          throw new Error('trap');
        },
      },
      cause: { value: traps },
    });
    for (const thrown of [traps, hostile])
      expect((await errorOf(() => thrown, { errors: { stack: true } }))?.code).toBe('AGENT_FAILED');
  });

  it('of a condition, an output, `setState` and a `foreach` name the expression', async () => {
    const of = async (definition: object) => (await scene(definition as never).run({ x: 'text' })).error;
    const place = { details: { expression: 'input.x * 2', index: 8 } };
    expect(await of({ flow: [ok('a', when('input.x * 2'))] })).toMatchObject(place);
    expect(await of({ flow: [], outputs: { n: '${input.x * 2}' } })).toMatchObject(place);
    expect(
      await of({ state: { initial: { n: 0 } }, flow: [ok('a', { setState: { n: '${input.x * 2}' } })] }),
    ).toMatchObject(place);
    expect(await of({ flow: [{ foreach: '${[input.x * 2]}', steps: [ok('a')] }] })).toMatchObject({
      details: { expression: '[input.x * 2]', index: 9 },
    });
  });

  it('of a child say which execution failed, and why', async () => {
    const child = { name: 'child', flow: [code('charge', 'refuse')] };
    const { run } = scene([{ ensemble: 'child', name: 'c' }], { ensembles: [child], scripts: { refuse } });
    const { error } = await run();
    expect(error).toMatchObject({ code: 'EXECUTION_FAILED', agent: 'c' });
    expect(error?.details).toEqual({
      ...{ executionId: expect.stringMatching(/^exec_/), status: 'failed', reason: 'AGENT_FAILED', agent: 'charge' },
      details,
    });
  });

  it('of a child that was refused are those of the refusal', async () => {
    const child = { name: 'child', inputs: { n: { type: 'number', required: true } }, flow: [] };
    const { run } = scene([{ ensemble: 'child', name: 'c', input: '${input}' }], { ensembles: [child] });
    expect((await run()).error?.details).toEqual({ issues: [{ path: 'n', message: expect.any(String) }] });
  });

  it('are the same after the execution was resumed by another process', async () => {
    const storage = memoryStorage({ shared: true });
    const clock = manualClock();
    const ensemble = {
      name: 'e',
      flow: [code('a', 'refuse', { continueOnError: true }), { sleep: '1h' }],
      outputs: { details: '${a.error.details}' },
    };
    const open = () => createOrchestrator({ ensembles: [ensemble as never], scripts: { refuse }, storage, clock });
    const first = open();
    const { id } = await first.start('e');
    await clock.advance(1000);
    const second = open();
    await second.ready();
    await first.close();
    await clock.advance(3_600_000);
    expect((await second.executions.get(id)).output).toEqual({ details });
    await second.close();
  });
});

describe('the option `errors: { stack: true }`', () => {
  const chain = () => {
    let error: Error = Object.assign(new Error('the first cause'), { code: 'ECONNREFUSED' });
    for (let i = 0; i < 8; i++) error = new Error(`level ${i}`, { cause: error });
    return error;
  };

  it('keeps the stack and up to five causes in the record, and expressions do not read them', async () => {
    const { run, orchestrator } = scene(
      {
        flow: [code('a', 'fail', { continueOnError: true }), code('b', 'fail')],
        outputs: { a: '${a.error}', all: '${a}' },
      },
      { scripts: { fail: throwing(chain) }, errors: { stack: true } },
    );
    const record = await run();
    const { error } = record;
    expect(error?.stack).toMatch(/^Error: level 7\n {4}at chain .*error-details\.test\.ts/);
    let depth = 0;
    for (let cause = error?.cause; cause; cause = cause.cause) {
      expect(cause).toMatchObject({
        name: 'Error',
        message: `level ${6 - depth}`,
        stack: expect.stringContaining('at '),
      });
      depth += 1;
    }
    expect(depth).toBe(5);
    expect(JSON.stringify(record.partialOutput)).not.toMatch(/stack|cause/);
    const [listed] = (await orchestrator.executions.list()).executions;
    expect(listed?.error).toEqual({ code: 'AGENT_FAILED', message: 'level 7', agent: 'b' });
    expect((await orchestrator.executions.get(record.id)).error).toEqual(error);
  });

  it('is off in `createOrchestrator`: the record has neither', async () => {
    const orchestrator = createOrchestrator({
      ensembles: [{ name: 'e', flow: [code('a', 'fail')] } as never],
      scripts: { fail: throwing(chain) },
    });
    expect((await orchestrator.execute('e')).error).toEqual({ code: 'AGENT_FAILED', message: 'level 7', agent: 'a' });
    await orchestrator.close();
  });

  it('cuts a long message out of the stack, not the frames, and masks first', async () => {
    const secret = 'correct-horse-battery';
    const message = 'm'.repeat(1000) + secret + 'n'.repeat(1_000_000);
    const error = await errorOf(() => new Error(message), { secrets: { KEY: secret }, errors: { stack: true } });
    expect(error?.stack?.length).toBeLessThanOrEqual(8192);
    expect(error?.stack).toMatch(/mmm\*\*\*n+\.\.\.\n {4}at /);
    expect(error?.stack).not.toContain('correct');
  });

  it('is refused when it is not true or false', () => {
    const create = (errors: unknown) => () => createOrchestrator({ errors } as never);
    expect(create({ stack: 1 })).toThrow('createOrchestrator: `errors`: `stack` must be true or false, not 1');
    expect(create({ stacks: true })).toThrow('did you mean `stack`');
    expect(create(true)).toThrow('`errors` must be { stack }');
  });
});
