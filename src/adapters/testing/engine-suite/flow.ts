/** Runs one flow without a crash, then with a crash at every commit, and holds each run against the first. */

import type { Json } from '../../../engine/json.ts';
import { AGENTS_IN_RECORD, type AgentRun, type Execution, isFinal } from '../../../engine/model/execution.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import { same } from '../storage-suite/context.ts';
import type { Ledger } from './ledger.ts';
import type { Fate } from './life.ts';
import { LEASE_MS, type ProcessOptions, SWEEP_MS } from './process.ts';
import type { Subject } from './subject.ts';
import { inWorld, type World, type WorldParts } from './world.ts';

/** A flow of the suite. */
export interface Flow {
  readonly title: string;
  /** The ensemble named `e`, or whatever `run` runs. */
  readonly ensemble?: object;
  readonly options?: ProcessOptions;
  /** Default: `execute('e', { n: 1 })`. */
  readonly run?: (subject: Subject) => Promise<Execution<unknown>>;
  /** What every run must come to. */
  readonly status: Execution['status'];
  readonly output: unknown;
  readonly error?: { readonly code: string; readonly agent?: string };
  /** Its agents that ran, in the order in which they were stored, sorted where several run at once; undefined: any. */
  readonly agents: readonly string[] | undefined;
  /** How many steps may be at hand when a process dies: they alone may have their effect again. Default 1. */
  readonly atHand?: number;
  /** What is drawn at random is not the same in two runs: then records and effects of two runs are not compared. */
  readonly drawn?: boolean;
  /** Which commits the process dies at, of so many; default: all. */
  readonly points?: (commits: number) => readonly number[];
  /** Signals that it is given from outside, each so many ms behind its start; the id is theirs, whoever is told of it twice. */
  readonly signals?: readonly {
    readonly ms: number;
    readonly id: string;
    readonly name: string;
    readonly payload?: Json;
  }[];
  /** Looked at behind every run. */
  readonly check?: (world: World, record: Execution) => Promise<void>;
}

/** A run, as it is compared. */
interface Outcome {
  readonly record: unknown;
  readonly events: readonly string[];
  readonly ledger: Ledger;
  readonly id: string;
}

export async function runFlow(parts: WorldParts, flow: Flow): Promise<void> {
  let commits = 0;
  const whole = await inWorld(parts, async (world) => {
    const { subject, life } = await world.open(optionsOf(flow));
    giveSignals(world, flow);
    const run = call(flow, subject);
    await world.until('the run', () => run.settled());
    commits = life.calls('commit');
    return outcomeOf(world, flow, subject, (await run.promise).id);
  });
  for (const at of flow.points?.(commits) ?? Array.from({ length: commits }, (_, i) => i + 1)) {
    for (const when of ['before', 'after'] as const) {
      try {
        await crashAt(parts, flow, { method: 'commit', at, when, then: 'dies' }, whole);
      } catch (thrown) {
        throw new Error(`a crash ${when} commit ${at} of ${commits}: ${(thrown as Error).message}`, { cause: thrown });
      }
    }
  }
}

async function crashAt(parts: WorldParts, flow: Flow, fate: Fate, whole: Outcome): Promise<void> {
  await inWorld(parts, async (world) => {
    const first = await world.open({ ...optionsOf(flow), fate });
    giveSignals(world, flow);
    const run = call(flow, first.subject);
    await world.until('the crash', async () => first.life.struck || (await run.settled()));
    // What was stored together this time was not so often stored: it ended without coming to that commit.
    if (!first.life.struck) return;
    if (await run.settled()) throw new Error('the process that died gave a result');
    const died = world.clock.monotonic();
    const left = await outermost(world.reader);
    const second = await world.open(optionsOf(flow));
    await second.subject.ready();
    if (!left) {
      // Nothing was accepted, so nothing may have happened.
      await world.advance(2 * LEASE_MS);
      same(world.ledger.effects.length, 0, 'effects of a run that was not accepted');
      return;
    }
    const held = !isFinal(left.status);
    await world.until('the takeover', async () => !held || (await isTakenUp(world, left.id)));
    const took = world.clock.monotonic() - died;
    if (took > LEASE_MS + 2 * SWEEP_MS && left.status === 'running') throw new Error(`taken over after ${took} ms`);
    await world.ended(left.id);
    compare(flow, await outcomeOf(world, flow, second.subject, left.id), whole);
  });
}

/** The one that was started from outside. */
async function outermost(reader: Storage): Promise<Execution | undefined> {
  return (await reader.listExecutions({ limit: 250 })).find(({ parentId }) => parentId === undefined);
}

/** Whether something of it was stored by the process that came after, or is in hand there. */
async function isTakenUp({ reader, ledger }: World, id: string): Promise<boolean> {
  const record = await reader.getExecution(id);
  if (!record || isFinal(record.status) || record.status === 'waiting') return true;
  return ledger.effects.some((effect) => effect.process > 1) || ledger.entries.some(({ process }) => process > 1);
}

function optionsOf({ ensemble, options }: Flow): ProcessOptions {
  return { ...options, ensembles: [...(ensemble ? [ensemble] : []), ...(options?.ensembles ?? [])] };
}

/** By a handle of nobody who runs anything, whoever runs the execution by then. */
function giveSignals({ reader, later, clock }: World, { signals = [] }: Flow): void {
  for (const { ms, id, name, payload = null } of signals) {
    later(ms, async () => {
      const { id: executionId = '' } = (await outermost(reader)) ?? {};
      await reader.putSignal({ id, executionId, name, payload, createdAt: clock.now() });
    });
  }
}

function call(flow: Flow, subject: Subject) {
  const promise = flow.run ? flow.run(subject) : subject.execute('e', { n: 1 });
  let isSettled = false;
  const settle = () => {
    isSettled = true;
  };
  promise.then(settle, settle);
  return { promise, settled: async () => isSettled };
}

async function outcomeOf(world: World, flow: Flow, subject: Subject, id: string): Promise<Outcome> {
  const record = (await world.reader.getExecution(id)) as Execution;
  const runs: AgentRun[] = [...record.agents];
  if ((flow.atHand ?? 1) > 1) runs.sort((a, b) => (a.key < b.key ? -1 : 1));
  const { status, output, error } = record;
  const names = runs.map(({ name }) => name);
  same(
    {
      status,
      output,
      error: error && { code: error.code, agent: error.agent },
      agents: flow.agents && (flow.atHand ? [...names].sort() : names),
    },
    { status: flow.status, output: flow.output, error: flow.error, agents: flow.agents },
    'the record',
  );
  await flow.check?.(world, record);
  const events: string[] = [];
  for await (const { event } of subject.executions.events(id)) {
    const { agent } = event.data as { readonly agent?: string };
    events.push(agent === undefined || flow.drawn ? event.event : `${event.event} ${agent}`);
  }
  if (flow.atHand) events.sort();
  return { record: flow.drawn ? names.length : comparable(record, runs), events, ledger: world.ledger, id };
}

/** A record without what differs between two runs: ids, instants and durations. */
function comparable(record: Execution, runs: readonly AgentRun[]): unknown {
  const { ensemble, version, status, trigger, input, output, error, metrics, retryOf } = record;
  const each = runs.map(({ startedAt: _startedAt, duration: _duration, ...run }) => run);
  // Which ones are the first 1,000 is chance where many run at once.
  const agents = runs.length < AGENTS_IN_RECORD ? each : each.length;
  const retried = retryOf !== undefined;
  return { ensemble, version, status, trigger, input, output, error, retried, count: metrics.agents, agents };
}

function compare(flow: Flow, crashed: Outcome, whole: Outcome): void {
  same(crashed.record, whole.record, 'the record of the run that crashed');
  same(crashed.events, whole.events, 'its events');
  if (flow.drawn) return;
  const expected = whole.ledger.counts();
  const counts = crashed.ledger.counts();
  const atHand = stepsAtHand(crashed.ledger);
  const left = [...atHand.values()].reduce((sum, count) => sum + count, 0);
  if (left > (flow.atHand ?? 1)) throw new Error(`${left} steps were at hand: ${[...atHand.keys()].join(', ')}`);
  for (const [label, count] of counts) {
    const surplus = count - (expected.get(label) ?? 0);
    if (surplus === 0) continue;
    const name = withoutItem(label);
    const allowed = atHand.get(name) ?? 0;
    if (surplus > 1 || allowed === 0)
      throw new Error(
        `${label} had its effect ${count} times; at hand were ${[...atHand.keys()].join(', ') || 'none'}`,
      );
    atHand.set(name, allowed - 1);
  }
  for (const label of expected.keys()) if (!counts.has(label)) throw new Error(`${label} had no effect`);
}

/** Attempts that the process that died had begun and not stored, by agent and attempt. */
function stepsAtHand({ effects, entries }: Ledger): Map<string, number> {
  const open = new Map<string, number>();
  const add = (label: string, change: number) => open.set(label, (open.get(label) ?? 0) + change);
  for (const { process, label } of effects) if (process === 1) add(withoutItem(label), 1);
  for (const { process, steps } of entries) {
    if (process !== 1) continue;
    for (const { name, attempts, note } of steps) if (!note) add(`${name}@${attempts}`, -1);
  }
  for (const [label, count] of open) if (count === 0) open.delete(label);
  return open;
}

function withoutItem(label: string): string {
  return label.replace(/#.*@/, '@');
}
