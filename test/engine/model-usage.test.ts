/** What models used, in the metrics of an execution: summed over the stored calls of all agents. */

import { describe, expect, it } from 'vitest';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import type { Operation } from '../../src/index.ts';

/** Calls a model `calls` times; each call uses 10 and 1 tokens. Then fails or hangs, if told so. */
function model({ made, price }: { readonly made: string[]; readonly price?: number }): Operation<{
  readonly calls: number;
  readonly then?: string;
}> {
  return {
    name: 'model',
    async run({ config, step, execution }) {
      for (let number = 1; number <= config.calls; number++) {
        await step({ kind: 'model', number, name: 'm' }, () => {
          made.push(`${execution.agent} ${number}`);
          const usage = { inputTokens: 10, outputTokens: 1, ...(price !== undefined && { cost: price }) };
          return { text: '', usage, finishReason: 'stop' };
        });
      }
      if (config.then === 'fail') throw new Error('no');
      if (config.then === 'hang' && made.length < 4) await new Promise(() => {});
      return 'done';
    },
  };
}

const agent = (name: string, calls: number, more: object = {}, then?: string) => ({
  agent: name,
  operation: 'model',
  config: { calls, ...(then && { then }) },
  ...more,
});

describe('metrics.usage', () => {
  it('sums the calls of all agents, of those that failed too', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [
        {
          name: 'e',
          flow: [agent('a', 2), agent('b', 1, { continueOnError: true, retry: { maxAttempts: 2 } }, 'fail')],
        },
      ],
      operations: [model({ made: [], price: 0.25 })],
    });
    const run = await orchestrator.execute('e');
    expect(run.metrics.usage).toEqual({ inputTokens: 30, outputTokens: 3, cost: 0.75 });
    expect((await orchestrator.executions.get(run.id)).metrics).toEqual(run.metrics);
    await orchestrator.close();
  });

  it('is absent without a model, and has no cost without prices', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [
        { name: 'none', flow: [] },
        { name: 'free', flow: [agent('a', 1)] },
      ],
      operations: [model({ made: [] })],
    });
    expect((await orchestrator.execute('none')).metrics).not.toHaveProperty('usage');
    expect((await orchestrator.execute('free')).metrics.usage).toEqual({ inputTokens: 10, outputTokens: 1 });
    await orchestrator.close();
  });

  it('counts a call once that was stored before a crash', async () => {
    const made: string[] = [];
    const orchestrator = createTestOrchestrator({
      ensembles: [{ name: 'e', flow: [agent('a', 3, {}, 'hang'), agent('b', 1)] }],
      operations: [model({ made })],
    });
    const { id } = await orchestrator.start('e');
    await orchestrator.clock.advance(0);
    made.push('crash');
    const next = await orchestrator.crash();
    const run = await next.result(id);
    expect(made).toEqual(['a 1', 'a 2', 'a 3', 'crash', 'b 1']);
    expect(run.metrics.usage).toEqual({ inputTokens: 40, outputTokens: 4 });
    await next.close();
  });

  it('of an execution that waits is up to its last wait', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [{ name: 'e', flow: [agent('a', 2), { wait: 'go' }, agent('b', 1)] }],
      operations: [model({ made: [] })],
    });
    const { id } = await orchestrator.start('e');
    await orchestrator.clock.advance(0);
    expect(await orchestrator.executions.get(id)).toMatchObject({
      status: 'waiting',
      metrics: { usage: { inputTokens: 20, outputTokens: 2 } },
    });
    await orchestrator.executions.signal(id, 'go', null);
    expect((await orchestrator.result(id)).metrics.usage).toEqual({ inputTokens: 30, outputTokens: 3 });
    await orchestrator.close();
  });
});
