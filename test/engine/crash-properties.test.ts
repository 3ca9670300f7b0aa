/**
 * Random flows whose processes die at random commits: their outcome is the outcome of the reference evaluator, where only one
 * outcome is possible. The invariants hold for all flows (the ledger of the engine suite checks them).
 */

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { History } from '../../src/conformance/engine-suite/world/history.ts';
import { outputsOf } from '../../src/engine/execution/execution-record.ts';
import { type CrashOptions, type CrashRun, type Death, runWithCrashes } from './crash-run.ts';
import { expectedOutput, isOneThing, unclocked } from './expected.ts';
import { listsOf, type Step, some } from './flow-model.ts';
import { concurrentFlow, sequentialFlow, unrulyFlow } from './random-flow.ts';
import { evaluateFlow } from './reference-evaluator.ts';

const SEED = Number(process.env.FLOW_SEED ?? 20260401);
const RUNS = Number(process.env.FLOW_RUNS ?? 1);

const death: fc.Arbitrary<Death> = fc.record({
  at: fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 5 }) },
    { weight: 1, arbitrary: fc.integer({ min: 6, max: 30 }) },
  ),
  when: fc.constantFrom('before', 'after'),
});
// An execution is ended after three deaths of its process in a row without a stored result.
const deaths = fc.array(death, { minLength: 1, maxLength: 2 });
const options: fc.Arbitrary<CrashOptions> = fc.record({
  later: fc.boolean(),
  pace: fc.constantFrom('at once', 'a turn', 'long'),
});

/** Attempts in the order in which they first began. */
function firstAttempts({ effects }: History): readonly string[] {
  const seen = new Map<string, string>();
  for (const { idempotencyKey, label } of effects) {
    const attempt = `${idempotencyKey} ${label}`;
    if (!seen.has(attempt)) seen.set(attempt, label.replace(/@\d+$/, ''));
  }
  return [...seen.values()];
}

function expectAsReference(flow: readonly Step[], { record, ledger, deaths: died }: CrashRun, ordered: boolean): void {
  if (!record) return;
  const expected = evaluateFlow(flow);
  const sort = (names: readonly string[]) => (ordered ? names : [...names].sort());
  expect({
    status: record.status,
    failedAgent: record.error?.agent,
    ran: sort(firstAttempts(ledger)),
    output: unclocked(outputsOf(record)),
  }).toEqual({
    status: expected.status,
    failedAgent: expected.failedAgent,
    ran: sort(expected.ran),
    output: expectedOutput(flow),
  });
  // Only steps that were active when a process died may run again.
  if (ordered) expect(ledger.effects.length).toBeLessThanOrEqual(expected.ran.length + died);
}

/** For every `try` that runs at most once: if it began, its cleanup ran once, and no step of it began after that. */
function expectCleanedUp(flow: readonly Step[], { effects }: History): void {
  const names = effects.map(({ label }) => label.replace(/@\d+$/, ''));
  for (const step of flow) {
    if (step.kind === 'foreach' || step.kind === 'while') continue;
    for (const list of listsOf(step)) expectCleanedUp(list, { effects } as History);
    if (step.kind !== 'try' || !step.finally) continue;
    const inside = agentsIn([...step.body, ...(step.catch?.steps ?? [])]);
    const cleanup = agentsIn(step.finally);
    const [first] = step.finally;
    const lastInside = names.findLastIndex((name) => inside.has(name));
    const firstCleanup = names.findIndex((name) => cleanup.has(name));
    if (firstCleanup >= 0) expect(lastInside).toBeLessThan(firstCleanup);
    if (lastInside >= 0 && first?.kind === 'agent' && !first.condition) expect(names).toContain(first.name);
  }
}

/** Whether a loop has a wait, or a step that is retried, in its body. */
function waitsInLoop(flow: readonly Step[]): boolean {
  return some(flow, (step) => {
    if (step.kind !== 'while' && step.kind !== 'foreach') return false;
    return some(step.body, (inner) => {
      if (inner.kind === 'agent') return inner.script === 'flaky';
      return inner.kind === 'sleep' || inner.kind === 'wait';
    });
  });
}

function agentsIn(steps: readonly Step[]): ReadonlySet<string> {
  const names = new Set<string>();
  some(steps, (step) => {
    if (step.kind === 'agent') names.add(step.name);
    return false;
  });
  return names;
}

describe('random flows, crashes at random commits', () => {
  it('one step at a time: status, error, outputs and the order of effects equal the reference (1,000 flows)', async () => {
    let died = 0;
    await fc.assert(
      fc.asyncProperty(sequentialFlow, deaths, options, async (flow, fates, how) => {
        const run = await runWithCrashes(flow, fates, how);
        died += run.deaths;
        expectAsReference(flow, run, true);
      }),
      { numRuns: 1000 * RUNS, seed: SEED },
    );
    expect(died).toBeGreaterThan(400 * RUNS);
  }, 120_000);

  it('one step at a time, with loops whose waits suspend the execution: the same (1,000 flows)', async () => {
    await fc.assert(
      fc.asyncProperty(sequentialFlow, deaths, options, async (flow, fates, how) => {
        fc.pre(waitsInLoop(flow));
        expectAsReference(flow, await runWithCrashes(flow, fates, { ...how, stretch: 100 }), true);
      }),
      { numRuns: 1000 * RUNS, seed: SEED + 3, maxSkipsPerRun: 100 },
    );
  }, 120_000);

  it('concurrent steps that never fail, with loops whose waits suspend the execution: the same (400 flows)', async () => {
    await fc.assert(
      fc.asyncProperty(concurrentFlow, deaths, options, async (flow, fates, how) => {
        fc.pre(isOneThing(flow) && waitsInLoop(flow));
        expectAsReference(flow, await runWithCrashes(flow, fates, { ...how, stretch: 100 }), false);
      }),
      { numRuns: 400 * RUNS, seed: SEED + 4, maxSkipsPerRun: 100 },
    );
  }, 120_000);

  it('concurrent steps that never fail: the outputs equal those of sequential steps (400 flows)', async () => {
    await fc.assert(
      fc.asyncProperty(concurrentFlow, deaths, options, async (flow, fates, how) => {
        fc.pre(isOneThing(flow));
        expectAsReference(flow, await runWithCrashes(flow, fates, how), false);
      }),
      { numRuns: 400 * RUNS, seed: SEED + 1 },
    );
  }, 120_000);

  it('concurrent steps that may fail, be cancelled or run out of time: all invariants hold (800 flows)', async () => {
    const stops = fc.record({
      cancelAt: fc.option(fc.integer({ min: 0, max: 3000 }), { nil: undefined, freq: 2 }),
      timeout: fc.option(fc.integer({ min: 1, max: 4000 }), { nil: undefined, freq: 1 }),
    });
    await fc.assert(
      fc.asyncProperty(unrulyFlow, deaths, options, stops, async (flow, fates, how, stop) => {
        const { record, ledger } = await runWithCrashes(flow, fates, { ...how, ...stop });
        expectCleanedUp(flow, ledger);
        const allowed = ['completed', 'failed', ...(stop.cancelAt === undefined ? [] : ['cancelled'])];
        if (stop.timeout !== undefined) allowed.push('timed_out');
        if (record) expect(allowed).toContain(record.status);
        if (record?.status === 'failed') expect(['AGENT_FAILED', 'ITERATION_LIMIT']).toContain(record.error?.code);
      }),
      { numRuns: 800 * RUNS, seed: SEED + 2 },
    );
  }, 120_000);
});
