/** Random flows: the engine has the same outcome as a plain reference evaluator, and keeps its invariants in all cases. */

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { outputsOf } from '../../src/engine/execution/execution-record.ts';
import { expectedOutput, isOneThing, unclocked } from './expected.ts';
import type { Step } from './flow-model.ts';
import { concurrentFlow, sequentialFlow, unrulyFlow } from './random-flow.ts';
import { evaluateFlow } from './reference-evaluator.ts';
import { type Ran, runChecked } from './run-checked.ts';

const SEED = 20260101;

function expectAsReference(flow: readonly Step[], { result, ran }: Ran): void {
  const expected = evaluateFlow(flow);
  expect({ status: result.status, failedAgent: result.error?.agent, ran }).toEqual({
    status: expected.status,
    failedAgent: expected.failedAgent,
    ran: expected.ran,
  });
  expect(unclocked(outputsOf(result))).toEqual(expectedOutput(flow));
  const byAgent = (names: readonly string[]) => [...new Set(names)].sort();
  expect(byAgent(result.agents.map(({ name }) => name))).toEqual(byAgent(expected.ran));
}

describe('random flows', () => {
  it('the outcome is that of the reference evaluator (500 flows)', async () => {
    const seen = { completed: 0, failed: 0 };
    await fc.assert(
      fc.asyncProperty(sequentialFlow, async (flow) => {
        const run = await runChecked(flow);
        seen[run.result.status as 'completed'] += 1;
        expectAsReference(flow, run);
      }),
      { numRuns: 500, seed: SEED },
    );
    // Both outcomes occur often enough for the test to be meaningful.
    expect(Math.min(seen.completed, seen.failed)).toBeGreaterThan(100);
  });

  it('the outcome does not depend on durability, nor on whether the storage answers at once (150 flows)', async () => {
    await fc.assert(
      fc.asyncProperty(sequentialFlow, async (flow) => {
        expectAsReference(flow, await runChecked(flow, { durability: 'none' }));
        expectAsReference(flow, await runChecked(flow, { later: true }));
      }),
      { numRuns: 150, seed: SEED + 1 },
    );
  });

  it('without failures, concurrent items have the same outputs as sequential items (150 flows)', async () => {
    await fc.assert(
      fc.asyncProperty(concurrentFlow, async (flow) => {
        fc.pre(isOneThing(flow));
        const { result, ran } = await runChecked(flow, { later: true, slow: true });
        const expected = evaluateFlow(flow);
        expect(result.status).toBe('completed');
        expect([...ran].sort()).toEqual([...expected.ran].sort());
        expect(unclocked(result.output)).toEqual(expectedOutput(flow));
      }),
      { numRuns: 150, seed: SEED + 2 },
    );
  });

  for (const durability of ['step', 'none'] as const) {
    it(`concurrent items that fail, break and retry end the run once, and nothing is lost: durability ${durability} (300 flows)`, async () => {
      await fc.assert(
        fc.asyncProperty(unrulyFlow, fc.boolean(), fc.boolean(), async (flow, slow, later) => {
          const { result } = await runChecked(flow, { slow, later, durability });
          expect(['completed', 'failed']).toContain(result.status);
          if (result.status === 'failed') expect(['AGENT_FAILED', 'ITERATION_LIMIT']).toContain(result.error?.code);
        }),
        { numRuns: 300, seed: SEED + 3 },
      );
    });
  }
});
