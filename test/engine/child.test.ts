/** `ensemble`: a child execution, whose end is the result of the step; how the flow around it handles that result. */

import { describe, expect, it } from 'vitest';
import { boom, childrenOf, code, deferred, echo, ok, scene, turns, when } from './scene.ts';

/** Returns its input as `got`. */
const same = { name: 'same', flow: [echo('say', '${input}')], outputs: { got: '${say.output}' } };
const failing = { name: 'failing', flow: [ok('before'), boom('broken')], outputs: { before: '${before.output}' } };
const slow = { name: 'slow', flow: [{ sleep: '${input.ms}' }, ok('woke')], outputs: { woke: '${woke.output}' } };
const hasty = { name: 'hasty', timeout: 700, flow: [{ sleep: '1h' }] };
const ensembles = [same, failing, slow, hasty];

describe('ensemble', () => {
  it('its output is the output of the child, which has its own record that names its parent', async () => {
    const flow = [ok('a'), { ensemble: 'same', input: { v: '${a.output}', n: '${input.n + 1}' } }, ok('z')];
    const made = scene({ flow, outputs: { child: '${same.output}' } }, { ensembles });
    const run = await made.run({ n: 1 });
    expect(run).toMatchObject({
      status: 'completed',
      output: { child: { got: { v: 'a', n: 2 } } },
      metrics: { agents: 2 },
    });
    expect(run.agents.map(({ name }) => name)).toEqual(['a', 'z']);
    expect(made.ran).toEqual(['a', 'say', 'z']);
    const [child, ...more] = await childrenOf(made, run.id);
    expect(more).toEqual([]);
    expect(child).toMatchObject({
      ensemble: 'same',
      status: 'completed',
      parentId: run.id,
      trigger: { type: 'ensemble', parentId: run.id, key: 'flow[1]', rootId: run.id, depth: 1 },
      input: { v: 'a', n: 2 },
      output: { got: { v: 'a', n: 2 } },
    });
    expect(child?.id).not.toBe(run.id);
    expect(run.parentId).toBeUndefined();
    expect((await childrenOf(made, child?.id as string)).length).toBe(0);
  });

  it('a grandchild names its parent and its root', async () => {
    const middle = { name: 'middle', flow: [{ ensemble: 'same', input: 7 }], outputs: { got: '${same.output.got}' } };
    const made = scene(
      { flow: [{ ensemble: 'middle' }], outputs: { got: '${middle.output.got}' } },
      { ensembles: [...ensembles, middle] },
    );
    const run = await made.run();
    expect(run.output).toEqual({ got: 7 });
    const [child] = await childrenOf(made, run.id);
    const [grandchild] = await childrenOf(made, child?.id as string);
    expect(grandchild?.trigger).toEqual({
      type: 'ensemble',
      parentId: child?.id,
      key: 'flow[0]',
      rootId: run.id,
      depth: 2,
    });
  });

  it.each<[string, object, string, string]>([
    ['fails', { ensemble: 'failing' }, 'EXECUTION_FAILED', 'ensemble `failing` failed: boom in broken'],
    [
      'runs out of time',
      { ensemble: 'slow', input: { ms: 9000 }, timeout: '5s' },
      'EXECUTION_TIMEOUT',
      'ensemble `slow` ran out of time: its parent gave it 5000 ms',
    ],
    [
      'runs out of its own time',
      { ensemble: 'hasty' },
      'EXECUTION_TIMEOUT',
      'ensemble `hasty` ran out of time: `timeout` of ensemble `hasty` is 700 ms',
    ],
  ])('a child that %s fails the step, with %j', async (_how, step, expected, message) => {
    const made = scene({ flow: [{ ...step, name: 'c' }, ok('z')], outputs: { c: '${c.failed}' } }, { ensembles });
    const run = await made.run();
    expect(run).toMatchObject({
      status: 'failed',
      partialOutput: { c: true },
      error: { code: expected, message, agent: 'c' },
    });
    expect(made.ran).not.toContain('z');
  });

  it('a child that is cancelled alone notifies its parent, which continues', async () => {
    const flow = [{ try: [{ ensemble: 'slow', input: { ms: '5d' } }], catch: [echo('why', '${error}')] }];
    const made = scene({ flow, outputs: { why: '${why.output}' } }, { ensembles });
    const handle = await made.start();
    await turns();
    const [child] = await childrenOf(made, handle.id);
    expect(child?.status).toBe('waiting');
    expect((await made.orchestrator.executions.get(handle.id)).status).toBe('waiting');
    await made.orchestrator.executions.cancel(child?.id as string);
    expect(await handle.result()).toMatchObject({
      status: 'completed',
      duration: 0,
      output: { why: { code: 'EXECUTION_CANCELLED', message: 'ensemble `slow` was cancelled', agent: 'slow' } },
    });
  });

  it.each<[string, readonly object[], unknown]>([
    ['continueOnError', [{ ensemble: 'failing', continueOnError: true }, ok('z')], { failed: true, z: 'z', why: null }],
    [
      'a condition that checks its failure',
      [{ ensemble: 'failing' }, echo('why', '${failing.error.code}', when('failing.failed')), ok('z')],
      { failed: true, z: 'z', why: 'EXECUTION_FAILED' },
    ],
    [
      'a `try` around it',
      [{ try: [{ ensemble: 'failing' }], catch: [echo('why', '${error.agent}')] }, ok('z')],
      { failed: true, z: 'z', why: 'failing' },
    ],
  ])('its failure is handled by %s', async (_by, flow, output) => {
    const outputs = { failed: '${failing.failed}', z: '${z.output}', why: '${why.output}' };
    const steps = flow.some((step) => JSON.stringify(step).includes('"why"'))
      ? flow
      : [...flow, echo('why', 0, when('false'))];
    expect(await scene({ flow: steps, outputs }, { ensembles }).run()).toMatchObject({ status: 'completed', output });
  });

  it('a condition skips it: nothing is started, and its name reads as skipped', async () => {
    const flow = [{ ensemble: 'same', ...when('input.go') }];
    const made = scene({ flow, outputs: { ran: '${same.executed}', got: '${same.output}' } }, { ensembles });
    const run = await made.run({ go: false });
    expect(run.output).toEqual({ ran: false, got: null });
    expect(await childrenOf(made, run.id)).toEqual([]);
    expect((await made.run({ go: true })).output).toEqual({ ran: true, got: { got: {} } });
  });

  it('its input is checked by its own `inputs`; an invalid input fails the step, and nothing is started', async () => {
    const strict = { name: 'strict', inputs: { n: { type: 'number', required: true } }, flow: [ok('never')] };
    const made = scene([{ ensemble: 'strict', input: { n: '${input.word}' } }], { ensembles: [strict] });
    const run = await made.run({ word: 'seven' });
    expect(run).toMatchObject({ status: 'failed', error: { code: 'EXECUTION_FAILED', agent: 'strict' } });
    expect(run.error?.message).toContain('n');
    expect(await childrenOf(made, run.id)).toEqual([]);
    expect(made.ran).toEqual([]);
  });

  it('in a `foreach` with concurrency: one child for each item, that many at once, outputs in order', async () => {
    const gates = new Map<number, ReturnType<typeof deferred>>();
    const each = {
      name: 'each',
      flow: [code('work', 'work', { input: '${input}' })],
      outputs: { n: '${work.output * 10}' },
    };
    const made = scene(
      {
        flow: [{ foreach: [1, 2, 3, 4], concurrency: 2, steps: [{ ensemble: 'each', input: '${item}' }], name: 'all' }],
        outputs: { all: '${all.output}' },
      },
      {
        ensembles: [each],
        scripts: {
          work({ input }) {
            const gate = deferred();
            gates.set(input as number, gate);
            return gate.promise;
          },
        },
      },
    );
    const handle = await made.start();
    await turns();
    expect([...gates.keys()]).toEqual([1, 2]);
    for (const n of [2, 1, 4, 3]) {
      gates.get(n)?.resolve(n);
      await turns();
    }
    expect((await handle.result()).output).toEqual({ all: [10, 20, 30, 40].map((n) => ({ n })) });
    expect((await childrenOf(made, handle.id)).length).toBe(4);
  });

  it.each(['first', 'any'])('in a `parallel` with waitFor: %s, the child that lost is cancelled', async (waitFor) => {
    const flow = [
      {
        parallel: [
          { ensemble: 'slow', input: { ms: '5h' }, name: 'late' },
          { ensemble: 'slow', input: { ms: '2s' }, name: 'soon' },
        ],
        waitFor,
        name: 'race',
      },
    ];
    const made = scene({ flow, outputs: { winner: '${race.output.winner}' } }, { ensembles });
    const run = await made.run();
    expect(run).toMatchObject({ status: 'completed', output: { winner: 'soon' }, duration: 2000 });
    await made.clock.advance(0);
    const ends = (await childrenOf(made, run.id)).map(
      ({ input, status }) => `${(input as { ms: string }).ms} ${status}`,
    );
    expect(ends.sort()).toEqual(['2s completed', '5h cancelled']);
  });

  it('in a `while`: a new child in each round', async () => {
    const flow = [
      {
        while: '${!poll.executed || poll.output.n < 3}',
        steps: [{ ensemble: 'poll', input: '${(poll.output.n || 0) + 1}' }],
      },
    ];
    const poll = { name: 'poll', flow: [{ sleep: '10s' }], outputs: { n: '${input}' } };
    const made = scene({ flow, outputs: { n: '${poll.output.n}' } }, { ensembles: [poll] });
    const run = await made.run();
    expect(run).toMatchObject({ output: { n: 3 }, duration: 30_000 });
    expect((await childrenOf(made, run.id)).map(({ input }) => input)).toEqual([1, 2, 3]);
  });

  it('detached: the flow continues with its id, and the child continues after the end of its parent', async () => {
    const flow = [{ ensemble: 'slow', input: { ms: '5h' }, detached: true }, ok('z')];
    const made = scene({ flow, timeout: 60_000, outputs: { slow: '${slow.output}' } }, { ensembles });
    const run = await made.run();
    const [child] = await childrenOf(made, run.id);
    expect(run).toMatchObject({ status: 'completed', duration: 0, output: { slow: { executionId: child?.id } } });
    expect(child).toMatchObject({ trigger: { detached: true }, parentId: run.id });
    expect(child?.deadlineAt).toBeUndefined();
    await made.clock.advance(5 * 3_600_000);
    expect(await made.orchestrator.executions.get(child?.id as string)).toMatchObject({
      status: 'completed',
      output: { woke: 'woke' },
    });
  });

  it.each<[string, number | undefined]>([
    ['cancel', undefined],
    ['timeout', 1000],
  ])("detached: its parent's %s does not reach it", async (_what, timeout) => {
    const flow = [{ ensemble: 'slow', input: { ms: '5h' }, detached: true }, { sleep: '1d' }];
    const made = scene({ flow, ...(timeout && { timeout }) }, { ensembles });
    const handle = await made.start();
    await turns();
    if (timeout === undefined) await made.orchestrator.executions.cancel(handle.id);
    expect((await handle.result()).status).toBe(timeout === undefined ? 'cancelled' : 'timed_out');
    await made.clock.advance(5 * 3_600_000);
    expect((await childrenOf(made, handle.id)).map(({ status }) => status)).toEqual(['completed']);
  });
});
