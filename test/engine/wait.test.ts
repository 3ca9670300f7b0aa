/** `wait`: signals on the manual clock, in a storage of one process: outputs, ends, and cost. */

import { describe, expect, it } from 'vitest';
import { manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { createTestOrchestrator, type TestOrchestratorOptions } from '../../src/entries/testing.ts';

const open = (flow: readonly object[], outputs: object = {}, more: TestOrchestratorOptions = {}) =>
  createTestOrchestrator({ ensembles: [{ name: 'e', flow, outputs } as never], ...more });

describe('wait', () => {
  it('a wait without a timeout has no timer, and takes no place of an active run', async () => {
    const orchestrator = open([{ wait: 'go', name: 'answer' }], { answer: '${answer.output}' });
    const runs = await Promise.all(Array.from({ length: 50 }, () => orchestrator.start('e')));
    await orchestrator.clock.advance(60_000);
    expect(orchestrator.clock.nextIn).toBeUndefined();
    for (const [i, { id }] of runs.entries()) await orchestrator.executions.signal(id, 'go', i);
    const outputs = await Promise.all(runs.map(async (run) => (await run.result()).output));
    expect(outputs).toEqual(runs.map((_, answer) => ({ answer })));
  });

  it.each([
    ['2h', 7_200_000],
    [1500, 1500],
    [0, 0],
    ['${input.ms * 2}', 2000],
    ["${'1m'}", 60_000],
  ])('a timeout of %j ends it after %i ms', async (timeout, ms) => {
    const orchestrator = open([{ wait: 'go', timeout, onTimeout: 'continue', name: 'answer' }], {
      answer: '${answer.output}',
      ok: '${answer.success}',
    });
    const result = await orchestrator.execute('e', { ms: 1000 });
    expect(result).toMatchObject({ status: 'completed', duration: ms, output: { answer: null, ok: true } });
  });

  it('by default it fails with TIMEOUT, and the message says where', async () => {
    const orchestrator = open([{ wait: 'go', timeout: '1h', name: 'answer' }]);
    const { status, error } = await orchestrator.execute('e');
    expect([status, error]).toEqual([
      'failed',
      { code: 'TIMEOUT', message: 'no signal `go` came in time for the `wait` at flow[0]', agent: 'answer' },
    ]);
  });

  it.each([-1, 'soon', null, true, 400_000_000_000])(
    'a timeout expression with the value %j fails it',
    async (value) => {
      const orchestrator = open([{ wait: 'go', timeout: '${input.value}', name: 'answer' }]);
      const { error } = await orchestrator.execute('e', { value });
      expect(error).toMatchObject({ code: 'EXPRESSION_ERROR', agent: 'answer' });
      expect(error?.message).toContain('of at most ten years');
    },
  );

  it('emits an event for a signal that it waits for, and none for a signal that came before', async () => {
    const orchestrator = open([{ wait: 'a' }, { wait: 'b', timeout: '1h' }, { wait: 'c' }]);
    const emitted: unknown[] = [];
    orchestrator.on('step.waiting', ({ data }) => emitted.push(data));
    const { id, ...run } = await orchestrator.start('e');
    await orchestrator.clock.advance(1000);
    await orchestrator.executions.signal(id, 'c');
    const until = orchestrator.clock.now() + 3_600_000;
    await orchestrator.executions.signal(id, 'a');
    await orchestrator.clock.advance(1000);
    await orchestrator.executions.signal(id, 'b');
    expect((await run.result()).status).toBe('completed');
    expect(emitted).toEqual([
      { executionId: id, ensemble: 'e', key: 'flow[0]', signal: 'a' },
      { executionId: id, ensemble: 'e', key: 'flow[1]', signal: 'b', until },
    ]);
  });

  it('a failure is handled by the wait that it led to, in any process that resumes the run', async () => {
    const storage = memoryStorage({ shared: true });
    const clock = manualClock();
    const code = (name: string) => ({ agent: name, operation: 'code', config: { script: name } });
    const flow = [code('charge'), { if: 'charge.failed', then: [{ wait: 'settled', name: 'answer' }] }, code('ship')];
    const ran: string[] = [];
    const scripts = {
      charge: () => {
        ran.push('charge');
        throw new Error('card refused');
      },
      ship: () => void ran.push('ship'),
    };
    const start = () => open(flow, { answer: '${answer.output}' }, { storage, clock, scripts });
    const first = start();
    const { id } = await first.start('e');
    await clock.advance(60_000);
    await first.close();
    const second = start();
    await second.ready();
    await second.executions.signal(id, 'settled', 'by Ada');
    await clock.advance(60_000);
    const { status, output, error } = await second.executions.get(id);
    expect([status, output, error]).toEqual(['completed', { answer: 'by Ada' }, undefined]);
    expect(ran).toEqual(['charge', 'ship']);
    await second.close();
  });

  it('a skipped wait takes no signal', async () => {
    const orchestrator = open(
      [
        { wait: 'go', condition: false, name: 'first' },
        { wait: 'go', name: 'second' },
      ],
      {
        first: '${first.executed}',
        second: '${second.output}',
      },
    );
    const { id, ...run } = await orchestrator.start('e');
    await orchestrator.executions.signal(id, 'go', 1);
    expect((await run.result()).output).toEqual({ first: false, second: 1 });
  });

  it('close() waits for it, and ends it when no other process can resume it', async () => {
    const orchestrator = open([{ wait: 'go' }]);
    const run = await orchestrator.start('e');
    await orchestrator.clock.advance(1000);
    const closing = orchestrator.close({ grace: 5000 });
    await orchestrator.clock.advance(4999);
    expect((await orchestrator.executions.get(run.id)).status).toBe('waiting');
    await orchestrator.clock.advance(1);
    await closing;
    expect((await orchestrator.executions.get(run.id)).status).toBe('cancelled');
  });

  it.each([
    ['a function', () => 1],
    ['a map', new Map()],
  ])('a payload that is %s is refused', async (_, payload) => {
    const orchestrator = open([{ wait: 'go' }]);
    const { id } = await orchestrator.start('e');
    const given = orchestrator.executions.signal(id, 'go', { payload });
    await expect(given).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  });
});
