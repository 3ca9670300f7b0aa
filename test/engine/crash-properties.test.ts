/**
 * T39: random flows whose processes die at random commits: what they come to is what the reference evaluator comes to, where
 * that is one thing; what must always hold holds everywhere (the ledger of the engine suite checks I2, I4, I9 and A21).
 */

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Ledger } from '../../src/adapters/testing/engine-suite/ledger.ts';
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
const deaths = fc.array(death, { minLength: 1, maxLength: 3 });
const options: fc.Arbitrary<CrashOptions> = fc.record({
  later: fc.boolean(),
  pace: fc.constantFrom('at once', 'a turn', 'long'),
});

/** Attempts in the order in which they were first begun. */
function firstAttempts({ effects }: Ledger): readonly string[] {
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
    output: unclocked(record.output),
  }).toEqual({
    status: expected.status,
    failedAgent: expected.failedAgent,
    ran: sort(expected.ran),
    output: expectedOutput(flow),
  });
  // Only what was at hand when a process died may be done again.
  if (ordered) expect(ledger.effects.length).toBeLessThanOrEqual(expected.ran.length + died);
}

/** What began was cleaned up, once, and began no more behind that: of every `try` that runs at most once. */
function expectCleanedUp(flow: readonly Step[], { effects }: Ledger): void {
  const names = effects.map(({ label }) => label.replace(/@\d+$/, ''));
  for (const step of flow) {
    if (step.kind === 'foreach' || step.kind === 'while') continue;
    for (const list of listsOf(step)) expectCleanedUp(list, { effects } as Ledger);
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

function agentsIn(steps: readonly Step[]): ReadonlySet<string> {
  const names = new Set<string>();
  some(steps, (step) => {
    if (step.kind === 'agent') names.add(step.name);
    return false;
  });
  return names;
}

describe('random flows, crashes at random commits', () => {
  it('T39: one thing at a time: status, error, outputs and the order of effects are those of the reference (1,000 flows)', async () => {
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

  it('T39: several things at a time, where nothing fails: as one by one (400 flows)', async () => {
    await fc.assert(
      fc.asyncProperty(concurrentFlow, deaths, options, async (flow, fates, how) => {
        fc.pre(isOneThing(flow));
        expectAsReference(flow, await runWithCrashes(flow, fates, how), false);
      }),
      { numRuns: 400 * RUNS, seed: SEED + 1 },
    );
  }, 120_000);

  it('T39: several things at a time, and anything may fail, be cancelled or run out of time (800 flows)', async () => {
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
