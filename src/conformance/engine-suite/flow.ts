/** Runs one flow without a crash, then with a crash at every commit, and compares each of those runs with the first. */

import type { Json } from '../../engine/base/json/json.ts';
import { isPart } from '../../engine/ensemble/step-kind.ts';
import {
  AGENTS_IN_RECORD,
  type AgentResult,
  type Execution,
  type ExecutionError,
  isFinal,
} from '../../engine/execution/execution.ts';
import { outputsOf } from '../../engine/execution/execution-record.ts';
import type { Fault } from '../../testing-kit/processes/process-control.ts';
import { same } from '../storage-suite/context.ts';
import type { WorldReader } from './world/engine-world.ts';
import type { History } from './world/history.ts';
import type { ProcessOptions } from './world/process.ts';
import { compareReports, type Listener, listen, readStored } from './world/reported-events.ts';
import type { Subject } from './world/subject.ts';
import { inWorld, type World, type WorldParts } from './world/world.ts';

/** A flow of the suite. */
export interface Flow {
  readonly title: string;
  /** The ensemble that runs: it is named `e`, unless `run` starts another one. */
  readonly ensemble?: object;
  readonly options?: ProcessOptions;
  /** Default: `execute('e', { n: 1 })`. */
  readonly run?: (subject: Subject) => Promise<Execution<unknown>>;
  /** The status that every run must end with. */
  readonly status: Execution['status'];
  readonly output: unknown;
  readonly error?: { readonly code: string; readonly agent?: string };
  /** Agents that ran, in the order in which they were stored, or sorted if several run at once. Undefined: not checked. */
  readonly agents: readonly string[] | undefined;
  /** How many steps may be in progress when a process dies. Only those may have their effect again. Default 1. */
  readonly inProgress?: number;
  /** The flow uses random values, which differ between two executions: then records and effects are not compared. */
  readonly isRandom?: boolean;
  /** The commits at which the process dies, given their number. Default: all. */
  readonly points?: (commits: number) => readonly number[];
  /** Signals from outside, each `ms` after the start. An id that appears twice is a repeated signal. */
  readonly signals?: readonly {
    readonly ms: number;
    readonly id: string;
    readonly name: string;
    readonly payload?: Json;
    /** What the execution waits for then, each as `key kind name`, in any order. Undefined: not checked. */
    readonly waitingFor?: readonly string[];
  }[];
  /** Called after every run. */
  readonly check?: (world: World, record: Execution) => Promise<void>;
}

/** The parts of a run that are compared. */
interface Outcome {
  readonly record: unknown;
  /** The attempts of each agent run. */
  readonly attempts: readonly number[];
  readonly events: readonly string[];
  readonly history: History;
  readonly id: string;
}

export async function runFlow(parts: WorldParts, flow: Flow): Promise<void> {
  let commits = 0;
  const reference = await inWorld(parts, async (world) => {
    const { subject, control } = await world.open(optionsOf(flow));
    const listener = listen(subject);
    sendSignals(world, flow);
    const run = call(flow, subject);
    await world.until('the run', () => run.settled());
    commits = control.calls('commit');
    return outcomeOf(world, flow, subject, (await run.promise).id, listener);
  });
  for (const at of flow.points?.(commits) ?? Array.from({ length: commits }, (_, i) => i + 1)) {
    for (const when of ['before', 'after'] as const) {
      try {
        await crashAt(parts, flow, { method: 'commit', at, when, then: 'kill' }, reference);
      } catch (thrown) {
        throw new Error(`a crash ${when} commit ${at} of ${commits}: ${(thrown as Error).message}`, { cause: thrown });
      }
    }
  }
}

async function crashAt(parts: WorldParts, flow: Flow, fault: Fault, reference: Outcome): Promise<void> {
  await inWorld(parts, async (world) => {
    const first = await world.open({ ...optionsOf(flow), fault });
    sendSignals(world, flow);
    const run = call(flow, first.subject);
    await world.until('the crash', async () => first.control.triggered || (await run.settled()));
    // This run grouped its entries into fewer commits: it ended before it reached that commit.
    if (!first.control.triggered) return;
    if (await run.settled()) throw new Error('the process that died returned a result');
    const died = world.clock.monotonic();
    const left = await outermost(world.reader);
    const second = await world.open(optionsOf(flow));
    const listener = listen(second.subject);
    await second.subject.ready();
    if (!left) {
      // Nothing was accepted, so nothing may have happened.
      await world.advance(world.takeoverMs);
      same(world.history.effects.length, 0, 'effects of a run that was not accepted');
      return;
    }
    const held = !isFinal(left.status);
    await world.until('another process to resume it', async () => !held || (await isResumed(world, left.id)));
    const took = world.clock.monotonic() - died;
    if (took > world.takeoverMs && left.status === 'running') throw new Error(`resumed after ${took} ms`);
    await world.ended(left.id);
    compare(flow, await outcomeOf(world, flow, second.subject, left.id, listener, true), reference);
  });
}

/** The execution that was started from outside. */
async function outermost(reader: WorldReader): Promise<Execution | undefined> {
  return (await reader.executions.list({ limit: 250 })).find(({ parentId }) => parentId === undefined);
}

/** Whether a later process has stored something of the execution or runs it. */
async function isResumed({ reader, history }: World, id: string): Promise<boolean> {
  const record = await reader.executions.get(id);
  if (!record || isFinal(record.status) || record.status === 'waiting') return true;
  return history.effects.some((effect) => effect.process > 1) || history.entries.some(({ process }) => process > 1);
}

function optionsOf({ ensemble, options }: Flow): ProcessOptions {
  return { ...options, ensembles: [...(ensemble ? [ensemble] : []), ...(options?.ensembles ?? [])] };
}

/** Stores the signals by a handle that belongs to no process, so it does not matter which process runs the execution. */
function sendSignals(world: World, { signals = [] }: Flow): void {
  const { reader, later, clock } = world;
  for (const { ms, id, name, payload = null, waitingFor } of signals) {
    later(ms, async () => {
      const { id: executionId = '' } = (await outermost(reader)) ?? {};
      if (waitingFor) await checkWaits(world, executionId, waitingFor);
      await reader.signals.put({ id, executionId, name, payload, createdAt: clock.now() });
    });
  }
}

/** @param expected - see `signals` of `Flow` @throws Error unless the record lists these waits, and no others */
async function checkWaits(world: World, id: string, expected: readonly string[]): Promise<void> {
  const { executions } = world.reader;
  const now = world.clock.now();
  const found: string[] = [];
  for (const { key, kind, name = '', executionId, since, until } of (await executions.get(id))?.waitingFor ?? []) {
    found.push(`${key} ${kind} ${name}`.trim());
    if (!(since <= now && (until === undefined || until >= now)))
      throw new Error(`at ${now}, the wait at ${key} lasts from ${since} to ${until}`);
    const child = executionId === undefined ? undefined : await executions.get(executionId);
    same(
      [child?.ensemble, child?.parentId],
      kind === 'child' ? [name, id] : [undefined, undefined],
      'the awaited child',
    );
  }
  same(found.sort(), [...expected].sort(), 'what the execution waits for');
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

/** @param listener - of the process that ended it @param isResumed - another process began it */
async function outcomeOf(
  world: World,
  flow: Flow,
  subject: Subject,
  id: string,
  listener: Listener,
  isResumed = false,
): Promise<Outcome> {
  const record = (await world.reader.executions.get(id)) as Execution;
  const runs: AgentResult[] = [...record.agents];
  if ((flow.inProgress ?? 1) > 1) runs.sort((a, b) => (a.key < b.key ? -1 : 1));
  const { status, error } = record;
  const output = outputsOf(record);
  const names = runs.map(({ name }) => name);
  same(
    {
      status,
      output,
      error: error && { code: error.code, agent: error.agent },
      agents: flow.agents && (flow.inProgress ? [...names].sort() : names),
    },
    { status: flow.status, output: flow.output, error: flow.error, agents: flow.agents },
    'the record',
  );
  await flow.check?.(world, record);
  const stored = await readStored(subject, id);
  if (!storesAtEnd(flow)) compareReports(listener.received(id), stored, !isResumed);
  let events: string[] = [];
  for (const { event, data } of stored) {
    if (dependsOnTime(event, flow)) continue;
    const { agent, key } = data as { readonly agent?: string; readonly key?: string };
    events.push(flow.isRandom ? event : [event, agent ?? key].join(' '));
  }
  // The agents run one after the other; children may run at the same time.
  const ofChildren = events.filter((text) => text.startsWith('child.')).sort();
  if (flow.inProgress) events.sort();
  else events = [...events.filter((text) => !text.startsWith('child.')), ...ofChildren];
  const attempts = runs.map((run) => run.attempts);
  return {
    record: flow.isRandom ? names.length : comparable(record, runs),
    attempts,
    events,
    history: world.history,
    id,
  };
}

/** Whether it depends on how long the execution was away: whether a wait has to wait, and which deadline passes first. */
function dependsOnTime(event: string, { status }: Flow): boolean {
  if (event === 'child.ended') return status === 'timed_out';
  return event === 'run.resumed' || event === 'step.waiting' || event === 'step.continued';
}

/** Whether nothing of it is stored on the way to its end. */
function storesAtEnd({ ensemble }: Flow): boolean {
  return (ensemble as { readonly execution?: { readonly durability?: string } })?.execution?.durability === 'none';
}

/** A record without the values that differ between two runs: ids, instants and durations. */
function comparable(record: Execution, runs: readonly AgentResult[]): unknown {
  const { ensemble, version, status, trigger, input, metrics, retryOf } = record;
  const output = outputsOf(record);
  const error = withoutChildIds(record.error);
  const each = runs.map(({ startedAt: _startedAt, duration: _duration, attempts: _attempts, ...run }) => run);
  // Where many agents run at once, chance decides which ones are the first 1,000.
  const agents = runs.length < AGENTS_IN_RECORD ? each : each.length;
  const retried = retryOf !== undefined;
  return { ensemble, version, status, trigger, input, output, error, retried, count: metrics.agents, agents };
}

/** The details of a failed child have its id. */
function withoutChildIds(error: ExecutionError | undefined): unknown {
  return error && JSON.parse(JSON.stringify(error), (key, value) => (key === 'executionId' ? undefined : value));
}

function compare(flow: Flow, crashed: Outcome, reference: Outcome): void {
  same(crashed.record, reference.record, 'the record of the run that crashed');
  same(crashed.events, reference.events, 'its events');
  if (flow.isRandom) return;
  const repeated = crashed.attempts.reduce((sum, count, i) => sum + count - (reference.attempts[i] ?? 0), 0);
  if (repeated < 0 || repeated > (flow.inProgress ?? 1)) throw new Error(`${repeated} attempts were made again`);
  const expected = reference.history.counts();
  const counts = crashed.history.counts();
  const inProgress = stepsInProgress(crashed.history);
  const left = [...inProgress.values()].reduce((sum, count) => sum + count, 0);
  if (left > (flow.inProgress ?? 1))
    throw new Error(`${left} steps were in progress: ${[...inProgress.keys()].join(', ')}`);
  for (const [label, count] of counts) {
    const surplus = count - (expected.get(label) ?? 0);
    if (surplus === 0) continue;
    const name = withoutItem(label);
    const allowed = inProgress.get(name) ?? 0;
    if (surplus > 1 || allowed === 0)
      throw new Error(
        `${label} had its effect ${count} times; in progress: ${[...inProgress.keys()].join(', ') || 'none'}`,
      );
    inProgress.set(name, allowed - 1);
  }
  for (const label of expected.keys()) if (!counts.has(label)) throw new Error(`${label} had no effect`);
}

/** Attempts that the dead process had begun but not stored: label without item -> count. */
function stepsInProgress({ effects, entries }: History): Map<string, number> {
  const open = new Map<string, number>();
  const add = (label: string, change: number) => open.set(label, (open.get(label) ?? 0) + change);
  for (const { process, label } of effects) if (process === 1) add(withoutItem(label), 1);
  for (const { process, steps } of entries) {
    if (process !== 1) continue;
    for (const step of steps) {
      const { key, name, attempts, note, output } = step;
      if (!note) add(`${name}@${attempts}`, -1);
      else if (isPart(step))
        add(`${(output as { readonly agent: string }).agent}${key.slice(key.lastIndexOf('.'))}@1`, -1);
    }
  }
  for (const [label, count] of open) if (count === 0) open.delete(label);
  return open;
}

function withoutItem(label: string): string {
  return label.replace(/#.*@/, '@');
}
