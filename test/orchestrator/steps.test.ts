/** `executions.steps`: one row for each step of every kind, in the order in which they began to be known. */

import { describe, expect, it } from 'vitest';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import type { ExecutionStep } from '../../src/index.ts';

const code = (agent: string, fields: object = {}) => ({
  agent,
  operation: 'code',
  config: { script: agent },
  ...fields,
});
const T0 = Date.parse('2026-01-01T00:00:00Z');

function open(flow: readonly object[], { child = [] as readonly object[], ...fields }: Record<string, unknown> = {}) {
  return createTestOrchestrator({
    ensembles: [
      { name: 'e', flow, ...fields },
      { name: 'kid', flow: child as object[] },
      { name: 'picky', inputs: { who: { type: 'string', required: true } }, flow: [] },
    ] as never,
    scripts: {
      a: ({ input }) => input,
      b: () => 'b',
      boom: () => {
        throw new Error('broken');
      },
      flaky: ({ execution }) => {
        if (execution.attempt < 3) throw new Error('not yet');
        return 'at last';
      },
    },
  });
}

type Opened = ReturnType<typeof open>;
/** All steps. Each one is also found by its key. */
const stepsOf = async ({ orchestrator: { executions } }: Opened, id: string): Promise<readonly ExecutionStep[]> => {
  const { steps } = await executions.steps(id);
  for (const step of steps) expect(await executions.step(id, step.key)).toEqual(step);
  return steps;
};
const short = (steps: readonly ExecutionStep[]) =>
  steps.map(({ key, kind, name, status, output }) =>
    [key, kind, name, status, output === undefined ? '' : JSON.stringify(output)].join(' ').trim(),
  );

describe('executions.steps', () => {
  it('has one row for each step of every kind, in the order in which they began to be known', async () => {
    const made = open(
      [
        code('a', { input: { n: 1 } }),
        { if: '${a.output.n == 1}', then: [code('b')], else: [code('boom')] },
        { switch: '${a.output.n}', cases: { 1: [{ sleep: '5s', name: 'nap' }] } },
        { foreach: [1, 2], name: 'each', steps: [code('b', { name: 'one' })] },
        { parallel: [code('b', { name: 'x' }), code('b', { name: 'y' })], waitFor: 'first', name: 'race' },
        { while: '${(lap.output ?? 0) < 1}', steps: [code('a', { name: 'lap', input: 1 })] },
        { try: [code('b', { name: 'careful' })], finally: [code('b', { name: 'cleanup' })] },
        {
          agent: 'r',
          routes: [
            { when: '${false}', member: 'm' },
            { default: true, member: 'm' },
          ],
        },
        { wait: 'go', name: 'answer' },
        { ensemble: 'kid', name: 'sub' },
        code('b', { name: 'never', condition: false }),
        { sleep: '1h', condition: '${false}' },
      ],
      { child: [code('b')], agents: [{ name: 'm', operation: 'code', config: { script: 'b' } }] },
    );
    const handle = await made.orchestrator.start('e', {});
    await made.clock.advance(6000);
    await made.orchestrator.executions.signal(handle.id, 'go', { ok: true });
    await made.clock.advance(1000);
    expect((await handle.result()).status).toBe('completed');
    const found = short(await stepsOf(made, handle.id));
    expect(found.slice(0, 8)).toEqual([
      'flow[0] agent a completed {"n":1}',
      'flow[1] if  completed {"chose":"then"}',
      'flow[1].then[0] agent b completed "b"',
      'flow[2] switch  completed {"chose":"1"}',
      `flow[2].cases.1[0] sleep nap completed ${T0 + 5000}`,
      'flow[3] foreach each completed {"items":2}',
      'flow[3].foreach[0].steps[0] agent one completed "b"',
      'flow[3].foreach[1].steps[0] agent one completed "b"',
    ]);
    expect(found.slice(8, 10)).toEqual([
      'flow[4] parallel race completed {"winner":"x"}',
      'flow[4].parallel[0] agent x completed "b"',
    ]);
    expect(found.slice(-11)).toEqual([
      'flow[5] while  completed {"rounds":1}',
      'flow[5].while[0].steps[0] agent lap completed 1',
      'flow[6] try  completed',
      'flow[6].try[0] agent careful completed "b"',
      'flow[6].finally[0] agent cleanup completed "b"',
      'flow[7] route r completed {"route":1,"target":"m"}',
      'flow[7].m agent m completed "b"',
      'flow[8] wait answer completed {"ok":true}',
      'flow[9] ensemble sub completed {}',
      'flow[10] agent never skipped',
      'flow[11] sleep  skipped',
    ]);
  });

  it('says since when a step waits, retries or runs, and for how long', async () => {
    const made = open(
      [
        {
          parallel: [
            { wait: 'go', name: 'asked' },
            { sleep: '1h', name: 'nap' },
            { ensemble: 'kid', name: 'sub' },
            code('flaky', { retry: { maxAttempts: 3, backoff: 'fixed', delay: 3_600_000 } }),
          ],
        },
      ],
      { child: [{ wait: 'ever' }] },
    );
    const { id } = await made.orchestrator.start('e', {}, { events: false });
    await made.clock.advance(60_000);
    const steps = await stepsOf(made, id);
    expect(steps.map(({ kind, status, startedAt, attempts }) => [kind, status, startedAt, attempts])).toEqual(
      [
        ['parallel', 'running', T0, 1],
        ['sleep', 'waiting', T0, 1],
        ['ensemble', 'waiting', T0, 1],
        ['wait', 'waiting', T0, 1],
        ['agent', 'retrying', T0, 1],
      ].sort((a, b) => steps.findIndex(({ kind }) => kind === a[0]) - steps.findIndex(({ kind }) => kind === b[0])),
    );
    expect(steps.filter(({ kind }) => kind !== 'agent').map(({ duration }) => duration)).toEqual([
      60_000, 60_000, 60_000, 60_000,
    ]);
    expect(steps.find(({ kind }) => kind === 'agent')?.error?.message).toBe('not yet');
    await made.orchestrator.executions.cancel(id);
    await made.clock.advance(60_000);
    expect(new Set((await stepsOf(made, id)).map(({ status }) => status))).toEqual(new Set(['cancelled']));
  });

  it('a step that lost a race is cancelled, while its execution continues', async () => {
    const made = open([
      {
        parallel: [
          { wait: 'ever', name: 'lost' },
          { sleep: '2s', name: 'won' },
        ],
        waitFor: 'first',
      },
      { wait: 'go', name: 'next' },
    ]);
    const { id } = await made.orchestrator.start('e', {}, { events: false });
    await made.clock.advance(60_000);
    expect((await stepsOf(made, id)).map(({ name, status }) => `${name} ${status}`)).toEqual(
      expect.arrayContaining(['lost cancelled', 'won completed', 'next waiting']),
    );
    expect((await stepsOf(made, id)).find(({ name }) => name === 'lost')?.duration).toBe(2000);
  });

  it('an `ensemble` step has the id of its child, whether the child waits, ended or was refused', async () => {
    const made = open(
      [
        {
          parallel: [
            { ensemble: 'kid', name: 'sub' },
            { ensemble: 'kid', name: 'apart', detached: true },
          ],
        },
        { ensemble: 'picky', name: 'refused', input: '${input}', continueOnError: true },
      ],
      { child: [{ wait: 'go' }] },
    );
    const { id } = await made.orchestrator.start('e', {});
    await made.clock.advance(1000);
    const childrenOf = async () =>
      Object.fromEntries(
        (await stepsOf(made, id)).flatMap(({ kind, name, executionId }) =>
          kind === 'ensemble' ? [[name, executionId]] : [],
        ),
      );
    const { executions } = await made.orchestrator.executions.list({ ensemble: 'kid' });
    const waiting = await childrenOf();
    expect(new Set(Object.values(waiting))).toEqual(new Set(executions.map((one) => one.id)));
    for (const one of executions) await made.orchestrator.executions.signal(one.id, 'go', null);
    await made.clock.advance(1000);
    expect(await childrenOf()).toEqual({ ...waiting, refused: undefined });
  });

  it('a retry has the completed child that it kept', async () => {
    const made = open([{ ensemble: 'kid', name: 'made' }, code('boom')], { child: [code('b')] });
    const { id } = await made.orchestrator.execute('e', {});
    const again = await made.orchestrator.executions.retry(id);
    await made.clock.advance(1000);
    const kept = (await stepsOf(made, again.id)).map(({ key, kind, status }) => `${key} ${kind} ${status}`);
    expect(kept).toEqual(['flow[0] ensemble completed', 'flow[1] agent failed']);
  });

  it('a step that fails has its error, whether it is an agent, a wait, a child, a block or a choice', async () => {
    const made = open(
      [
        code('boom', { continueOnError: true }),
        { try: [{ wait: 'go', timeout: '1s' }], catch: [] },
        { wait: 'go', timeout: '1s', onTimeout: 'continue', name: 'late' },
        { ensemble: 'kid', name: 'sub', continueOnError: true },
        { try: [{ if: '${input.text - 1}', then: [code('b')] }], catch: [] },
        { try: [{ while: true, maxIterations: 1, steps: [code('b', { name: 'lap' })] }], catch: [] },
        { foreach: '${input.none}', steps: [code('b', { name: 'one' })], name: 'each', continueOnError: true },
        code('b', { name: 'odd', condition: '${input.text - 1}', continueOnError: true }),
      ],
      { child: [code('boom')] },
    );
    const run = made.orchestrator.execute('e', { text: 'x' });
    await made.clock.advance(10_000);
    const { id } = await run;
    const failed = (await stepsOf(made, id)).filter(({ status }) => status === 'failed');
    expect(failed.map(({ key, kind, error }) => `${key} ${kind} ${error?.code}`)).toEqual([
      'flow[0] agent AGENT_FAILED',
      'flow[1].try[0] wait TIMEOUT',
      'flow[3] ensemble AGENT_FAILED',
      'flow[4].try[0] if EXPRESSION_ERROR',
      'flow[5].try[0] while ITERATION_LIMIT',
      'flow[6] foreach EXPRESSION_ERROR',
      'flow[7] agent EXPRESSION_ERROR',
    ]);
    expect((await stepsOf(made, id)).find(({ name }) => name === 'late')).toMatchObject({
      status: 'completed',
      output: null,
    });
  });

  it('a block without a name that could not begin has its own error, also when `continueOnError` handles it', async () => {
    const bad = '${input.text - 1}';
    const made = open([
      code('boom'),
      { foreach: '${input.none}', steps: [code('b', { name: 'one' })], continueOnError: true },
      { foreach: [1], condition: bad, steps: [code('b', { name: 'two' })], continueOnError: true },
      { parallel: [code('b', { name: 'three' })], condition: bad, continueOnError: true },
      code('a', { input: 1, condition: '${boom.failed}' }),
    ]);
    const { id, status } = await made.orchestrator.execute('e', { text: 'x' });
    expect(status).toBe('completed');
    const steps = await stepsOf(made, id);
    expect(steps.map(({ key, kind, status, error }) => `${key} ${kind} ${status} ${error?.code ?? ''}`.trim())).toEqual(
      [
        'flow[0] agent failed AGENT_FAILED',
        'flow[1] foreach failed EXPRESSION_ERROR',
        'flow[2] foreach failed EXPRESSION_ERROR',
        'flow[3] parallel failed EXPRESSION_ERROR',
        'flow[4] agent completed',
      ],
    );
  });

  it('a step with a name has it when its own expression fails', async () => {
    const made = open([
      { try: [{ sleep: '${input.text}', name: 'nap' }], catch: [] },
      { try: [{ wait: 'go', timeout: '${input.text}', name: 'answer' }], catch: [] },
      { ensemble: 'kid', name: 'sub', input: { n: '${input.text - 1}' }, continueOnError: true },
    ]);
    const { id } = await made.orchestrator.execute('e', { text: 'x' });
    const failed = (await stepsOf(made, id)).filter(({ status }) => status === 'failed');
    expect(failed.map(({ kind, name, error }) => [kind, name, error?.code])).toEqual([
      ['sleep', 'nap', 'EXPRESSION_ERROR'],
      ['wait', 'answer', 'EXPRESSION_ERROR'],
      ['ensemble', 'sub', 'EXPRESSION_ERROR'],
    ]);
  });

  it('pages have every step once, in the same order, and end', async () => {
    const made = open([
      {
        foreach: '${input.items}',
        concurrency: 3,
        steps: [{ if: '${item % 2 == 0}', then: [code('b')] }, code('a', { input: 1 })],
      },
    ]);
    const { id } = await made.orchestrator.execute('e', { items: Array.from({ length: 40 }, (_, i) => i) });
    const all = await stepsOf(made, id);
    // There are 1 + 40 + 40 + 20 steps, and a page has 100 of them by default.
    expect(all.length).toBe(100);
    for (const limit of [1, 7, 100, 250]) {
      const keys: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await made.orchestrator.executions.steps(id, { limit, ...(cursor !== undefined && { cursor }) });
        expect(page.steps.length).toBeLessThanOrEqual(limit);
        expect(page.steps.length).toBeGreaterThan(0);
        keys.push(...page.steps.map(({ key }) => key));
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      expect(keys.length).toBe(101);
      expect(new Set(keys).size).toBe(101);
      expect(keys.slice(0, 100)).toEqual(all.map(({ key }) => key));
    }
    await expect(made.orchestrator.executions.steps(id, { cursor: 'x' })).rejects.toMatchObject({
      code: 'INVALID_CURSOR',
    });
    await expect(made.orchestrator.executions.steps('exec_none')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('with `durability: none`, it has the agents only, once the execution has ended', async () => {
    const made = open([{ if: true, then: [code('b')] }, code('flaky', { retry: { maxAttempts: 3 } })], {
      execution: { durability: 'none' },
    });
    const { id } = await made.orchestrator.execute('e', {});
    expect(short(await stepsOf(made, id))).toEqual([
      'flow[0].then[0] agent b completed "b"',
      'flow[1] agent flaky completed "at last"',
    ]);
  });
});
