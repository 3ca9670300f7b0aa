/** Executions: ids and records, listings in pages, single agents, checks of inputs and outputs, options. */

import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import type { CommitEntry } from '../../src/engine/execution/stored-execution.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';
import { boom, code, echo, ok, scene, turns, when } from '../engine/scene.ts';

describe('records', () => {
  it('an id is `exec_` and 26 characters, and `exec-` is accepted too', async () => {
    const { run, orchestrator } = scene([ok('a')]);
    const result = await run();
    expect(result.id).toMatch(/^exec_[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(await orchestrator.executions.get(result.id.replace('_', '-'))).toEqual(result);
  });

  it('ids sort by time', async () => {
    const { run, clock } = scene([ok('a')]);
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      ids.push((await run()).id);
      await clock.advance(1);
    }
    expect([...ids].sort()).toEqual(ids);
  });

  it('an unknown id is NOT_FOUND', async () => {
    const { orchestrator } = scene([]);
    for (const id of ['exec_none', '', 'constructor']) {
      await expect(orchestrator.executions.get(id)).rejects.toMatchObject({
        code: 'NOT_FOUND',
        message: `there is no execution ${id}`,
      });
    }
  });

  it('a value that is not an id is NOT_FOUND too', async () => {
    const { executions } = scene([]).orchestrator;
    for (const id of [undefined, 5, null] as unknown as string[])
      for (const ask of [executions.get, executions.cancel, executions.retry, executions.agents])
        await expect(ask(id)).rejects.toMatchObject({ code: 'NOT_FOUND', message: `there is no execution ${id}` });
  });

  it('an unknown filter is refused, because ignoring it would return everything', async () => {
    const { run, orchestrator } = scene([ok('a')]);
    const { id } = await run();
    const { executions, ensembles } = orchestrator;
    const strange = { ensembel: 'x' } as object;
    await expect(executions.list(strange)).rejects.toThrow('executions.list: `ensembel`');
    await expect(executions.list(strange)).rejects.toThrow('did you mean `ensemble`?');
    await expect(executions.agents(id, { page: 2 } as object)).rejects.toThrow(TypeError);
    await expect(executions.events(id, { from: '1' } as object).next()).rejects.toThrow(TypeError);
    await expect(ensembles.list({ activ: true } as object)).rejects.toThrow('ensembles.list: `activ`');
    await expect(executions.list(null as never)).rejects.toThrow('executions.list: options must be an object');
    await expect(executions.list({ status: 'done' as never })).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });

  it('a complete record', async () => {
    const { run } = scene({ flow: [echo('a', '${input.n}'), ok('b', when('false'))], outputs: { n: '${a.output}' } });
    const result = await run({ n: 1 });
    const { version } = result;
    expect(version).toMatch(/^[0-9a-f]{32}$/);
    const at = Date.UTC(2026, 0, 1);
    expect(result).toEqual({
      id: result.id,
      ensemble: 'e',
      version,
      status: 'completed',
      trigger: { type: 'call' },
      input: { n: 1 },
      output: { n: 1 },
      createdAt: at,
      startedAt: at,
      finishedAt: at,
      duration: 0,
      tags: [],
      metrics: { totalDuration: 0, agents: 1, queued: 0, waited: 0 },
      waitingFor: [],
      recoveries: 0,
      agents: [{ name: 'a', key: 'flow[0]', status: 'completed', attempts: 1, startedAt: at, duration: 0, output: 1 }],
    });
  });

  it('an execution is stored before its handle is returned, and its status is `waiting` while it waits', async () => {
    const { start, orchestrator } = scene([boom('a', { retry: { maxAttempts: 2 } })]);
    const handle = await start({ x: 1 });
    expect(await orchestrator.executions.get(handle.id)).toMatchObject({
      status: 'waiting',
      input: { x: 1 },
      output: null,
    });
    await handle.result();
  });

  it('result() may be called more than once', async () => {
    const { start } = scene([ok('a')]);
    const handle = await start();
    const [one, two] = await Promise.all([handle.result(), handle.result()]);
    expect(one.id).toBe(handle.id);
    expect(two).toEqual(one);
  });

  it('durability `none` stores all agent runs together with the end', async () => {
    const { start, orchestrator, clock } = scene({
      execution: { durability: 'none' },
      flow: [ok('a'), boom('b', { retry: { maxAttempts: 2 } }), ok('c')],
    });
    const handle = await start();
    await clock.advance(500);
    expect((await orchestrator.executions.get(handle.id)).agents.filter(({ status }) => status !== 'retrying')).toEqual(
      [],
    );
    const result = await handle.result();
    expect(result.agents.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(await orchestrator.executions.get(handle.id)).toEqual(result);
  });
});

describe('executions.list()', () => {
  async function many(count: number) {
    const made = scene({ flow: [boom('a', { ...when('input.fail') })] }, { ensembles: [{ name: 'other', flow: [] }] });
    for (let n = 0; n < count; n++) {
      await made.run({ n, fail: n % 3 === 0 });
      await made.clock.advance(1);
    }
    await made.orchestrator.orchestrator.execute('other');
    return made.orchestrator.executions;
  }

  it('returns pages, newest first, with each execution once', async () => {
    const executions = await many(25);
    const seen: unknown[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const page = await executions.list({ ensemble: 'e', limit: 10, ...(cursor !== undefined && { cursor }) });
      seen.push(...page.executions.map(({ input }) => (input as { n: number }).n));
      cursor = page.nextCursor;
      pages += 1;
    } while (cursor !== undefined);
    expect(seen).toEqual(Array.from({ length: 25 }, (_, n) => 24 - n));
    expect(pages).toBe(3);
  });

  it('the last page has no cursor, even if it is full', async () => {
    const executions = await many(4);
    expect((await executions.list({ ensemble: 'e', limit: 4 })).nextCursor).toBeUndefined();
    expect((await executions.list({ ensemble: 'e', limit: 3 })).nextCursor).toEqual(expect.any(String));
  });

  it('filters by status and ensemble, and returns no agent runs', async () => {
    const executions = await many(7);
    const { executions: failed } = await executions.list({ ensemble: 'e', status: 'failed' });
    expect(failed.map(({ input, status, agents }) => [(input as { n: number }).n, status, agents])).toEqual([
      [6, 'failed', []],
      [3, 'failed', []],
      [0, 'failed', []],
    ]);
    expect((await executions.list({ ensemble: 'nobody' })).executions).toEqual([]);
  });

  it('executions that start between two pages are in no later page, and each other one is in one page', async () => {
    const { run, orchestrator, clock } = scene([]);
    for (let n = 0; n < 6; n++) {
      await run({ n });
      await clock.advance(1);
    }
    const first = await orchestrator.executions.list({ limit: 3 });
    await run({ n: 99 });
    const second = await orchestrator.executions.list({ limit: 3, cursor: first.nextCursor ?? '' });
    expect([...first.executions, ...second.executions].map(({ input }) => (input as { n: number }).n)).toEqual([
      5, 4, 3, 2, 1, 0,
    ]);
  });

  it.each([0, -1, 1.5, Number.NaN, '10'])('a limit of %s is INVALID_REQUEST', async (limit) => {
    const { orchestrator } = scene([]);
    await expect(orchestrator.executions.list({ limit: limit as number })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
  });

  it('a limit above 250 counts as 250', async () => {
    const { orchestrator, run } = scene([]);
    for (let n = 0; n < 251; n++) await run();
    expect((await orchestrator.executions.list({ limit: 1e9 })).executions.length).toBe(250);
    expect((await orchestrator.executions.list()).executions.length).toBe(100);
  });

  it.each([
    ['no cursor at all', () => 'x'],
    ['text that is no base64', () => '%%%'],
    ['empty', () => ''],
    ['a megabyte', () => 'A'.repeat(1_000_000)],
    [
      'one with a byte flipped',
      (cursor: string) => `${cursor.slice(0, 5)}${cursor[5] === 'A' ? 'B' : 'A'}${cursor.slice(6)}`,
    ],
  ])('a cursor that is %s is INVALID_CURSOR', async (_what, spoil) => {
    const executions = await many(3);
    const { nextCursor = '' } = await executions.list({ limit: 1 });
    await expect(executions.list({ cursor: spoil(nextCursor) })).rejects.toMatchObject({ code: 'INVALID_CURSOR' });
  });

  it('a cursor of another filter is INVALID_CURSOR', async () => {
    const executions = await many(3);
    const { nextCursor = '' } = await executions.list({ limit: 1, ensemble: 'e' });
    await expect(executions.list({ cursor: nextCursor })).rejects.toMatchObject({ code: 'INVALID_CURSOR' });
    await expect(executions.list({ cursor: nextCursor, ensemble: 'e', status: 'failed' })).rejects.toMatchObject({
      code: 'INVALID_CURSOR',
    });
  });
});

describe('executions.agents()', () => {
  const flow = [{ foreach: "${split(input.text, ',')}", collect: false, steps: [echo('x', '${index}')] }];

  it('returns all runs in pages, in the order in which they were stored, also after the first 1,000', async () => {
    const { run, orchestrator } = scene({ flow });
    const { id } = await run({ text: ','.repeat(1199) });
    const seen: unknown[] = [];
    let cursor: string | undefined;
    do {
      const page = await orchestrator.executions.agents(id, { limit: 250, ...(cursor !== undefined && { cursor }) });
      seen.push(...page.agents.map(({ output }) => output));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(seen).toEqual(Array.from({ length: 1200 }, (_, i) => i));
  });

  it('a cursor of another execution is INVALID_CURSOR; an unknown execution NOT_FOUND', async () => {
    const { run, orchestrator } = scene({ flow });
    const [one, other] = [await run({ text: ',,' }), await run({ text: ',,' })];
    const { nextCursor = '' } = await orchestrator.executions.agents(one.id, { limit: 1 });
    await expect(orchestrator.executions.agents(other.id, { cursor: nextCursor })).rejects.toMatchObject({
      code: 'INVALID_CURSOR',
    });
    await expect(orchestrator.executions.agents('exec_none')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(orchestrator.executions.agents(one.id, { limit: 0 })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
  });
});

describe('executeAgent()', () => {
  const agents = [
    { name: 'double', operation: 'code', config: { script: 'double' }, input: { n: '${input.n}' } },
    { name: 'bad', operation: 'code', config: { script: 'boom' }, retry: { maxAttempts: 2 } },
    { name: 'sometimes', operation: 'code', config: { script: 'ok' }, condition: '${input.go}' },
  ];
  const make = () => scene([{ agent: 'double' }], { agents, scripts: { double: ({ input }) => ({ n: input.n * 2 }) } });

  it("runs one shared agent: its output is the execution's", async () => {
    const { orchestrator } = make();
    expect(await orchestrator.executeAgent('double', { n: 4 })).toMatchObject({
      status: 'completed',
      output: { n: 8 },
      metrics: { agents: 1 },
      agents: [{ name: 'double' }],
    });
  });

  it('uses the retry of the agent, and returns a failure instead of throwing it', async () => {
    const { orchestrator } = make();
    expect(await orchestrator.executeAgent('bad')).toMatchObject({
      status: 'failed',
      duration: 1000,
      error: { message: 'boom in bad', agent: 'bad' },
    });
  });

  it('uses the condition of the agent', async () => {
    const { orchestrator } = make();
    expect(await orchestrator.executeAgent('sometimes', { go: false })).toMatchObject({
      status: 'completed',
      output: null,
      metrics: { agents: 0 },
    });
  });

  it('is stored like any other execution', async () => {
    const { orchestrator } = make();
    const result = await orchestrator.executeAgent('double', { n: 4 });
    expect(await orchestrator.executions.get(result.id)).toEqual(result);
  });

  it('an unknown name is NOT_FOUND, with the nearest name', async () => {
    const { orchestrator } = make();
    await expect(orchestrator.executeAgent('duoble')).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'there is no agent `duoble`; did you mean `double`?',
    });
  });

  it("a shared agent may read an ensemble's other steps, items and state", async () => {
    const shared = [
      {
        name: 'fallback',
        operation: 'code',
        config: { script: 'echo' },
        input: { why: '${first.error.message}' },
        condition: '${first.failed}',
      },
    ];
    const { run } = scene(
      { flow: [boom('first'), { agent: 'fallback' }], outputs: { f: '${fallback.output}' } },
      { agents: shared },
    );
    expect(await run()).toMatchObject({ status: 'completed', output: { f: { why: 'boom in first' } } });
  });
});

describe('inputs', () => {
  const definition = {
    inputs: {
      n: { type: 'integer', required: true },
      kind: { enum: ['a', 'b'], default: 'a' },
      list: { type: 'array' },
    },
    flow: [],
    outputs: { input: '${input}' },
  };

  it('defaults are filled in, and undeclared fields pass', async () => {
    const { run } = scene(definition);
    expect((await run({ n: 1, extra: [1] })).output).toEqual({ input: { n: 1, kind: 'a', extra: [1] } });
  });

  it.each<[unknown, string]>([
    [{}, 'n is required'],
    [{ n: '1' }, 'n must be a whole number'],
    [{ n: 1.5 }, 'n must be a whole number'],
    [{ n: 1, kind: 'c' }, 'kind must be'],
    [{ n: 1, list: {} }, 'list must be a list'],
    ['text', 'the input must be an object'],
    [[1], 'the input must be an object'],
  ])('%j is INVALID_INPUT; nothing is stored', async (input, message) => {
    const { run, start, orchestrator } = scene(definition);
    await expect(run(input)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining(message),
      details: { issues: [expect.anything()] },
    });
    await expect(start(input)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    expect((await orchestrator.executions.list()).executions).toEqual([]);
  });

  it('an unknown ensemble is NOT_FOUND, with the nearest name', async () => {
    const { orchestrator } = scene({ name: 'orders', flow: [] });
    await expect(orchestrator.orchestrator.execute('order')).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'there is no ensemble `order`; did you mean `orders`?',
    });
    for (const name of ['constructor', '__proto__', ''])
      await expect(orchestrator.orchestrator.execute(name)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('an option of execute that does not exist is a TypeError, with the nearest one', async () => {
    const { run } = scene([]);
    await expect(run({}, { timeuot: 5 } as never)).rejects.toThrow(
      TypeError('execute: `timeuot` is not an option of this version; did you mean `timeout`?'),
    );
  });
});

describe('outputSchema', () => {
  const ensemble = (outputSchema: unknown) => ({
    name: 'typed',
    flow: [code('a', 'give')],
    outputs: { n: '${a.output}' },
    outputSchema,
  });
  const make = (give: unknown, schema: unknown = z.object({ n: z.number() })) =>
    scene([], { ensembles: [ensemble(schema) as never], scripts: { give: () => give } }).orchestrator.orchestrator;

  it('outputs that fit are accepted', async () => {
    expect(await make(1).execute('typed')).toMatchObject({ status: 'completed', output: { n: 1 } });
  });

  it('outputs that do not fit fail the execution with INVALID_OUTPUT, and are kept', async () => {
    const result = await make('x').execute('typed');
    expect(result).toMatchObject({ status: 'failed', partialOutput: { n: 'x' }, error: { code: 'INVALID_OUTPUT' } });
    expect(result.error?.message).toMatch(/^the outputs don't fit the ensemble's outputSchema: n: /);
  });

  it('an asynchronous schema', async () => {
    const later = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: async (value: unknown) => ({ issues: [{ message: `no ${typeof value}`, path: ['n'] }] }),
      },
    };
    expect((await make(1, later).execute('typed')).error?.message).toContain('n: no object');
  });

  it('a schema that throws fails the execution, not the process', async () => {
    for (const validate of [
      () => {
        throw new Error('schema broke');
      },
      () => Promise.reject(new Error('schema broke')),
    ]) {
      const broken = { '~standard': { version: 1, vendor: 'test', validate } };
      expect((await make(1, broken).execute('typed')).status).toBe('failed');
    }
  });

  it('a failed execution is not checked', async () => {
    const { orchestrator } = scene([], {
      ensembles: [
        { name: 'typed', flow: [boom('a')], outputs: {}, outputSchema: z.object({ n: z.number() }) } as never,
      ],
    });
    expect((await orchestrator.orchestrator.execute('typed')).error?.message).toBe('boom in a');
  });
});

/** A memory storage whose `commit` throws as long as `fails` says so. */
function failing(
  fails: (batch: readonly CommitEntry[]) => boolean,
  thrown: () => unknown = () => new Error('disk full at /var/lib/x'),
): Storage {
  const inner = memoryStorage();
  return {
    ...inner,
    commit(worker, batch) {
      if (fails(batch)) throw thrown();
      return inner.commit(worker, batch);
    },
  };
}

describe('a storage that fails', () => {
  const GIVEN_UP = { code: 'OVERLOADED', retryable: true, message: expect.not.stringContaining('disk full') };

  it('at every start: the caller receives the error, and nothing runs', async () => {
    const { run, start, clock, ran } = scene([ok('a')], { storage: failing(([entry]) => entry?.start !== undefined) });
    await expect(run()).rejects.toMatchObject(GIVEN_UP);
    const started = expect(start()).rejects.toMatchObject(GIVEN_UP);
    await clock.advance(60_000);
    await started;
    expect(ran).toEqual([]);
  });

  it('when it stores the definition: the caller receives the error, and nothing runs', async () => {
    const storage = changeStorage(memoryStorage(), {
      definitions: { put: () => Promise.reject(new Error('disk full')) },
    });
    const { run, ran } = scene([ok('a')], { storage });
    await expect(run()).rejects.toMatchObject(GIVEN_UP);
    expect(ran).toEqual([]);
  });

  it('a deliberate refusal is not retried', async () => {
    let tries = 0;
    const refusing = failing(
      () => true,
      () => {
        tries += 1;
        return new OrchestratorError('NOT_CONFIGURED', 'no such store');
      },
    );
    await expect(scene([ok('a')], { storage: refusing }).run()).rejects.toMatchObject({ code: 'NOT_CONFIGURED' });
    expect(tries).toBe(1);
  });

  it('for a short time: every write is repeated until it is stored, and no step runs twice', async () => {
    let calls = 0;
    const { run, ran } = scene([ok('a'), ok('b'), boom('c', { continueOnError: true })], {
      storage: failing(() => ++calls % 3 !== 0),
    });
    expect((await run()).status).toBe('completed');
    expect(ran).toEqual(['a', 'b', 'c']);
  });

  it('at a step, for longer than the retries: the caller receives the error, and the execution continues when the storage answers', async () => {
    let broken = true;
    const logged: object[] = [];
    const log = (fields: object) => logged.push(fields);
    const { start, run, orchestrator, clock, ran } = scene([ok('a'), ok('b')], {
      logger: { debug: log, info: log, warn: log, error: log },
      storage: failing((batch) => broken && batch.some(({ steps, release }) => steps.length > 0 || release)),
    });
    const handle = await start();
    await expect(handle.result()).rejects.toMatchObject(GIVEN_UP);
    expect(ran).toEqual(['a']);
    expect(logged).toContainEqual(expect.objectContaining({ executionId: handle.id }));
    broken = false;
    await clock.advance(5000);
    expect(await orchestrator.executions.get(handle.id)).toMatchObject({ status: 'completed' });
    expect(ran).toEqual(['a', 'a', 'b']);
    expect((await run()).status).toBe('completed');
  });

  it('at one of several concurrent items: the signals of the others abort, and no further item begins', async () => {
    const signals: AbortSignal[] = [];
    const flow = [
      { foreach: [0, 1, 2, 3, 4, 5, 6, 7], concurrency: 2, steps: [code('x', 'work', { input: '${item}' })] },
    ];
    const { run, clock, ran } = scene(flow, {
      scripts: {
        work: async ({ input, signal }) => {
          signals.push(signal);
          if (input === 1) await new Promise((resolve) => signal.addEventListener('abort', resolve));
        },
      },
      storage: failing((batch) => batch.some(({ steps, release }) => steps.length > 0 || release)),
    });
    const failed = expect(run()).rejects.toMatchObject(GIVEN_UP);
    await turns(2);
    await clock.advance(60_000);
    await failed;
    expect(signals[1]?.aborted).toBe(true);
    await turns(50);
    expect(ran).toEqual(['x', 'x']);
  });

  it('at the end: the caller receives the error', async () => {
    const { run } = scene([ok('a')], { storage: failing((batch) => batch.some(({ end }) => end)) });
    await expect(run()).rejects.toMatchObject(GIVEN_UP);
  });
});

describe('createOrchestrator', () => {
  it('only checks its options: no timer, no randomness, no call of a port', () => {
    const touched: string[] = [];
    const port = (name: string) =>
      new Proxy(
        { capabilities: { sharedPromises: true, timers: true } },
        {
          get: (target, key) =>
            key in target ? target[key as 'capabilities'] : () => touched.push(`${name}.${String(key)}`),
        },
      );
    const { getRandomValues } = crypto;
    crypto.getRandomValues = ((array: Uint8Array) => {
      touched.push('random');
      return getRandomValues.call(crypto, array);
    }) as typeof crypto.getRandomValues;
    createOrchestrator({
      ensembles: ['name: e\nflow:\n  - { agent: a, operation: api, config: { url: "https://a.example/" } }'],
      storage: port('storage') as never,
      clock: port('clock') as never,
      http: port('http') as never,
      logger: port('logger') as never,
    });
    crypto.getRandomValues = getRandomValues;
    expect(touched).toEqual([]);
  });

  it.each<[string, unknown, string]>([
    ['no object', 'x', 'createOrchestrator: options must be an object'],
    [
      'an unknown option',
      { ensemble: [] },
      'createOrchestrator: `ensemble` is not an option of this version; did you mean `ensembles`?',
    ],
    ['ensembles that are no array', { ensembles: 'name: e' }, 'createOrchestrator: `ensembles` must be an array'],
    ['a script that is no function', { scripts: { a: 1 } }, 'createOrchestrator: script `a` must be a function'],
    [
      'a variable that is no text',
      { env: { PORT: 80 } },
      'createOrchestrator: `env` must have a string for each name; `PORT` has another value',
    ],
    [
      'one name in env and secrets',
      { env: { A: 'x' }, secrets: { A: 'y' } },
      'createOrchestrator: `A` is in `env` and in `secrets`; keep one',
    ],
    [
      'an operation whose name is taken',
      { operations: [{ name: 'code', run: () => 1 }] },
      'createOrchestrator: operation `code` exists already; give yours another name',
    ],
  ])('%s is a TypeError', (_what, options, message) => {
    expect(() => createOrchestrator(options as never)).toThrow(TypeError(message));
  });

  it('two ensembles with the same name are refused', () => {
    expect(() => createOrchestrator({ ensembles: [{ name: 'e', flow: [] }, 'name: e\nflow: []'] })).toThrow(
      'two ensembles are named `e`',
    );
  });
});
