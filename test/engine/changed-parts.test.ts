/** A part whose number has the stored result of another tool: the operation was changed while its execution was in progress. */

import { expect, it } from 'vitest';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import type { OperationContext } from '../../src/index.ts';
import { defineOperation } from '../../src/index.ts';

it.each([
  ['after a crash', true],
  ['in the next attempt', false],
])('another tool with the number of a stored one, %s; a model may have another name', async (_, crashes) => {
  let [name, hangs, calls] = ['pay', crashes, 0];
  const count = () => ++calls;
  const run = async ({ step, execution: { attempt } }: OperationContext) => {
    await step({ kind: 'model', number: 1, name }, count);
    await step({ kind: 'tool', number: 1, name }, count);
    if (hangs) await new Promise(() => {});
    name = 'refund';
    if (attempt === 1) throw new Error('again');
  };
  const retry = { maxAttempts: 3, backoff: 'fixed', delay: 10 };
  const orchestrator = createTestOrchestrator({
    operations: [defineOperation({ name: 'mine', run })],
    ensembles: [{ name: 'e', flow: [{ agent: 'a', operation: 'mine', retry }] } as never],
  });
  const { id } = await orchestrator.start('e');
  await orchestrator.clock.advance(0);
  while ((await orchestrator.executions.steps(id)).steps.length < 2 && crashes) await orchestrator.clock.advance(0);
  [name, hangs] = ['refund', false];
  const { error, status } = await (crashes ? await orchestrator.crash() : orchestrator).result(id);
  expect([status, calls, error?.code]).toEqual(['failed', 2, 'AGENT_FAILED']);
  expect(error?.message).toContain('tool part 1 of agent `a` is stored as `pay`, and `refund` was asked for');
});
