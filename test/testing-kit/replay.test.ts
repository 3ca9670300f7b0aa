/** `replay`: where a recorded execution and today's definition part, in words. */

import { describe, expect, it } from 'vitest';
import type { ExecutionHistory } from '../../src/engine/execution/execution-history.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { createTestOrchestrator, replay } from '../../src/entries/testing.ts';
import { boom, code, echo, ok, scene, when } from '../engine/scene.ts';

type Step = Readonly<Record<string, unknown>>;
type Definition = readonly Step[] | Readonly<Record<string, unknown>>;

const scripts = {
  ok: () => {
    throw new Error('a replay called a script');
  },
  boom: () => null,
  echo: () => null,
};

async function record(definition: Definition, input?: unknown): Promise<ExecutionHistory> {
  const { orchestrator, run } = scene(definition as never);
  return orchestrator.executions.history((await run(input)).id);
}

function replayToday(history: ExecutionHistory, definition: Definition) {
  const ensemble = Array.isArray(definition) ? { name: 'e', flow: definition } : { name: 'e', ...definition };
  return replay(history, { ensembles: [ensemble as never], scripts });
}

describe('replay', () => {
  it('calls no script, and matches the same definition', async () => {
    const flow = [ok('a'), boom('b', { continueOnError: true }), ok('c', when('b.failed'))];
    expect(await replayToday(await record(flow), flow)).toEqual({ matches: true });
  });

  it('a changed config, a new name of a script or a new input is no difference, because none of them is stored', async () => {
    const history = await record([ok('a')]);
    expect(await replayToday(history, [echo('a', { changed: true })])).toEqual({ matches: true });
  });

  it('a new step at the end', async () => {
    expect(await replayToday(await record([ok('a')]), [ok('a'), ok('b')])).toEqual({
      matches: false,
      at: 'flow[1]',
      expected: null,
      found: 'agent `b`',
      reason: "today's definition has agent `b` at flow[1], and nothing was recorded there",
    });
  });

  it('a new step before others', async () => {
    expect(await replayToday(await record([ok('a'), ok('b')]), [ok('a'), ok('check'), ok('b')])).toEqual({
      matches: false,
      at: 'flow[1]',
      expected: 'agent `b`',
      found: 'agent `check`',
      reason: 'agent `b` was recorded at flow[1], and today agent `check` runs there',
    });
  });

  it('a step that is gone', async () => {
    expect(await replayToday(await record([ok('a'), ok('b')]), [ok('a')])).toEqual({
      matches: false,
      at: 'flow[1]',
      expected: 'agent `b`',
      found: null,
      reason: "agent `b` was recorded at flow[1], and today's definition does not come to it",
    });
  });

  it('a condition that chooses another step', async () => {
    const flow = (limit: number) => [
      { if: `\${input.total > ${limit}}`, then: [ok('review')], else: [ok('accept')] },
      ok('end'),
    ];
    const history = await record(flow(100), { total: 50 });
    expect(await replayToday(history, flow(10))).toMatchObject({
      at: 'flow[0].then[0]',
      reason: "today's definition has agent `review` at flow[0].then[0], and nothing was recorded there",
    });
  });

  it('a failure that is handled today, and the other way round', async () => {
    const handled = [boom('a', { continueOnError: true })];
    expect(await replayToday(await record([boom('a')]), handled)).toMatchObject({
      ...{ at: 'status', expected: 'failed', found: 'completed' },
      reason: "the recorded execution ended as failed, and today's definition ends as completed",
    });
    expect(await replayToday(await record(handled), [boom('a')])).toMatchObject({
      ...{ at: 'status', expected: 'completed', found: 'failed' },
      reason: "the recorded execution ended as completed, and today's definition ends as failed: boom in a",
    });
  });

  it('other outputs from the same results', async () => {
    const ensemble = (text: string) => ({ flow: [ok('a')], outputs: { text } });
    const history = await record(ensemble('${a.output}'));
    expect(await replayToday(history, ensemble('<${a.output}>'))).toMatchObject({
      ...{ at: 'output', expected: { text: 'a' }, found: { text: '<a>' } },
    });
  });

  it('an input that is refused today; a new default counts', async () => {
    const ensemble = (inputs: object) => ({ inputs, flow: [ok('a')], outputs: { who: '${input.who}' } });
    const history = await record(ensemble({ who: { type: 'string', default: 'Ada' } }));
    expect(await replayToday(history, ensemble({ who: { type: 'string', default: 'Bob' } }))).toEqual({
      matches: true,
    });
    expect(await replayToday(history, ensemble({ who: { type: 'number' } }))).toMatchObject({
      ...{ at: 'input', expected: { who: 'Ada' } },
      reason: expect.stringMatching(/^today's definition refuses the recorded input: .*who/s),
    });
  });

  it('random values and instants are those of the recorded execution', async () => {
    const ensemble = { flow: [{ sleep: '1h' }, ok('a')], outputs: { id: '${uuid()}', at: '${now()}' } };
    expect(await replayToday(await record(ensemble), ensemble)).toEqual({ matches: true });
  });

  it('a wait and its signal, a sleep, and a child', async () => {
    const child = { name: 'child', flow: [ok('inner')] };
    const flow = [{ wait: 'go', name: 'go' }, { sleep: '1h' }, { ensemble: 'child' }, ok('a')];
    const { orchestrator, start } = scene({ flow, outputs: { by: '${go.output}' } }, { ensembles: [child] });
    const handle = await start();
    await orchestrator.executions.signal(handle.id, 'go', 'Ada');
    const history = await orchestrator.executions.history((await handle.result()).id);
    const today = (changed: readonly unknown[]) =>
      replay(history, { ensembles: [{ name: 'e', flow: changed, outputs: {} } as never, child], scripts });
    expect(await today(flow)).toMatchObject({ at: 'output', found: {} });
    expect(await today([flow[0], ...flow.slice(2)])).toMatchObject({
      at: 'flow[1]',
      found: 'the start of a child execution',
    });
    expect(await today(flow.slice(0, 2))).toMatchObject({ at: 'flow[2]', expected: 'the start of a child execution' });
  });

  it('an execution that has not ended matches as far as it came', async () => {
    const flow = [ok('a'), { wait: 'go' }, ok('b')];
    const { orchestrator, start, clock } = scene(flow);
    const { id } = await start();
    await clock.advance(0);
    const history = await orchestrator.executions.history(id);
    expect(history.status).toBe('waiting');
    expect(await replayToday(history, [...flow, ok('c')])).toEqual({ matches: true });
    expect(await replayToday(history, [ok('other'), { wait: 'go' }])).toMatchObject({ at: 'flow[0]' });
    expect(await replayToday(history, [ok('a')])).toMatchObject({
      at: 'status',
      expected: 'waiting',
      found: 'completed',
    });
  });

  it('an execution that was cancelled matches up to there', async () => {
    const flow = [ok('a'), { sleep: '1h' }, ok('b')];
    const { orchestrator, start, clock } = scene(flow);
    const handle = await start();
    await clock.advance(1000);
    await orchestrator.executions.cancel(handle.id);
    await handle.result();
    const history = await orchestrator.executions.history(handle.id);
    expect([history.end?.status, await replayToday(history, flow)]).toEqual(['cancelled', { matches: true }]);
    expect(await replayToday(history, [ok('b'), { sleep: '1h' }])).toMatchObject({ at: 'flow[0]' });
  });

  it('outputs of an ensemble with a state are not compared, because the state of that time is not stored', async () => {
    const ensemble = {
      state: { initial: { count: 0 } },
      flow: [ok('a', { setState: { count: '${state.count + 1}' } }), ok('b', { condition: '${state.count > 0}' })],
      outputs: { count: '${state.count}' },
    };
    expect(await replayToday(await record(ensemble), ensemble)).toEqual({ matches: true });
  });

  it('a run that exceeds a limit inside of a block', async () => {
    const flow = [{ parallel: [{ foreach: '${input}', steps: [code('b', 'big')] }, ok('a')] }];
    const { orchestrator, run } = scene(flow, { scripts: { big: () => 'x'.repeat(4_000_000) } });
    const history = await orchestrator.executions.history((await run([1, 2, 3, 4, 5, 6, 7, 8, 9])).id);
    expect(history.end?.error?.message).toMatch('the run holds more than 32 MiB');
    const options = { ensembles: [{ name: 'e', flow } as never], scripts: { ...scripts, big: () => null } };
    expect(await replay(history, options)).toEqual({ matches: true });
  });

  it('a project with a storage of its own: nothing of it is used', async () => {
    const storage = new Proxy({} as Storage, {
      get(_empty, key) {
        throw new Error(`the replay used \`${String(key)}\` of the storage`);
      },
    });
    const history = await record([ok('a')]);
    const project = { storage, ensembles: [{ name: 'e', flow: [ok('a')] } as never], scripts };
    expect(await replay(history, project)).toEqual({ matches: true });
  });

  it('the execution of a single agent', async () => {
    const agents = [{ name: 'greet', operation: 'code', config: { script: 'ok' } }] as const;
    const orchestrator = createTestOrchestrator({ agents, scripts: { ok: () => 1 } });
    const { id } = await orchestrator.executeAgent('greet');
    expect(await replay(await orchestrator.executions.history(id), { agents, scripts })).toEqual({ matches: true });
  });

  it('refuses what is not a history, and an ensemble that is gone', async () => {
    const history = await record([ok('a')]);
    await expect(replayToday({ id: 'exec_1' } as never, [])).rejects.toThrow(
      'replay takes the result of `executions.history(id)`, or the same after JSON.parse',
    );
    await expect(replay(history, { ensembles: [{ name: 'ee', flow: [] }] })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
  });
});

describe('executions.history', () => {
  it('has every record, more than one page of them, and is JSON', async () => {
    const { orchestrator, run } = scene([{ foreach: '${input.items}', steps: [code('a', 'ok')] }]);
    const { id } = await run({ items: Array.from({ length: 1200 }, (_, i) => i) });
    const history = await orchestrator.executions.history(id);
    expect([history.format, history.steps.length, history.end?.status]).toEqual([1, 1200, 'completed']);
    expect(JSON.parse(JSON.stringify(history))).toEqual(history);
    await expect(orchestrator.executions.history('exec_01M7WXNBVAVMY1H8W3JXP6GBWP')).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
  });
});
