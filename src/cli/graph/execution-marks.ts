/** The state of each step of a flow in one execution, as its stored steps say it. Pure. */

import type { ExecutionStep, StepStatus } from '../../engine/ensemble/execution-step.ts';
import { placeOf } from '../../engine/ensemble/flow-places.ts';
import { type Execution, isAtStep, isFinal } from '../../engine/execution/execution.ts';
import { describeTimes, waitsOf } from '../progress/describe-waits.ts';
import { count } from '../terminal/text.ts';
import { END, type FlowGraph, type GraphPart, START } from './flow-graph.ts';
import type { StepMark, StepMarks, StepState } from './print-mermaid.ts';

type Marked = Pick<Execution<unknown>, 'status' | 'startedAt'> & Partial<Pick<Execution<unknown>, 'waitingFor'>>;

const STATES: Readonly<Record<StepStatus, StepState>> = {
  ...{ completed: 'completed', failed: 'failed', retrying: 'retrying', skipped: 'skipped' },
  ...{ running: 'running', waiting: 'running', cancelled: 'skipped' },
};
/** Of several runs of a step, the first of these states that one of them has is shown. */
const ORDER: readonly StepState[] = ['retrying', 'running', 'failed', 'completed', 'skipped'];

/**
 * A step that runs for the first time has no mark: nothing of it is stored yet.
 *
 * @param steps - all stored steps of the execution, as `executions.steps` lists them
 */
export function executionMarks(graph: FlowGraph, execution: Marked, steps: readonly ExecutionStep[]): StepMarks {
  const { status, startedAt } = execution;
  const marks = new Map<string, StepMark>();
  const hasEnded = isFinal(status);
  if (startedAt === undefined && !hasEnded) return marks;
  for (const [place, all] of byPlace(steps)) marks.set(place, markOf(all));
  markFrames(graph.parts, marks, hasEnded);
  markWaits(execution, marks);
  marks.set(START, { state: 'completed' });
  if (hasEnded) marks.set(END, { state: status === 'completed' ? 'completed' : 'failed' });
  return marks;
}

function byPlace<T extends { readonly key: string }>(items: readonly T[]): Map<string, T[]> {
  const found = new Map<string, T[]>();
  for (const item of items) {
    const place = placeOf(item.key);
    const own = found.get(place);
    if (own) own.push(item);
    else found.set(place, [item]);
  }
  return found;
}

/** @param all - the runs of one step */
function markOf(all: readonly ExecutionStep[]): StepMark {
  const agents = all.filter(({ kind }) => kind !== 'route');
  const runs = agents.length > 0 ? agents : all;
  const states = runs.map((run) => STATES[run.status]);
  const state = ORDER.find((one) => states.includes(one)) ?? 'completed';
  const passes = passesOf(runs);
  if (passes !== undefined) return { state, times: passes };
  const [first, second] = runs;
  if (!second) {
    const word =
      first?.status === 'cancelled' ? 'cancelled' : first?.error?.code === 'TIMEOUT' ? 'timed out' : undefined;
    return word === undefined ? { state } : { state, times: word };
  }
  const completed = states.filter((one) => one === 'completed').length;
  return { state, times: completed === runs.length ? `${completed} times` : `${completed} of ${runs.length}` };
}

/** The items of a `foreach`, or the rounds of a `while`, over all its runs that have ended. */
function passesOf(runs: readonly ExecutionStep[]): string | undefined {
  const passes = runs.flatMap(({ output }) => {
    const { items, rounds } = (output ?? {}) as { readonly items?: number; readonly rounds?: number };
    return items ?? rounds ?? [];
  });
  const [{ kind } = { kind: 'agent' }] = runs;
  if (passes.length === 0 || (kind !== 'foreach' && kind !== 'while')) return undefined;
  return count(
    passes.reduce((sum, own) => sum + own),
    kind === 'while' ? 'round' : 'item',
  );
}

/** A list of a `try` is marked by what ran in it. Steps of which nothing is stored did not run, if the execution has ended. */
function markFrames(parts: readonly GraphPart[], marks: Map<string, StepMark>, hasEnded: boolean): void {
  for (const part of parts) {
    const { place } = part;
    if (part.kind === 'block') markFrames(part.parts, marks, hasEnded);
    if (place === '' || marks.has(place)) continue;
    const ran = part.kind === 'block' && !place.endsWith(']') ? statesIn(part.parts, marks) : [];
    if (ran.length > 0) marks.set(place, { state: ran.includes('running') ? 'running' : 'completed' });
    else if (hasEnded) marks.set(place, { state: 'skipped' });
  }
}

function statesIn(parts: readonly GraphPart[], marks: StepMarks): StepState[] {
  return parts.flatMap((part) => {
    const state = marks.get(part.place)?.state;
    const own: StepState[] = state === undefined || state === 'skipped' ? [] : [state];
    return part.kind === 'block' ? [...own, ...statesIn(part.parts, marks)] : own;
  });
}

/** Says how long the steps wait at which the execution waits. */
function markWaits(execution: Marked, marks: Map<string, StepMark>): void {
  for (const [place, waits] of byPlace(waitsOf(execution).filter(isAtStep))) {
    const [first] = waits;
    if (!first) continue;
    const times = waits.length > 1 ? `${waits.length} waits` : `waits ${describeTimes(first)}`;
    marks.set(place, { state: first.kind === 'retry' ? 'retrying' : 'running', times });
  }
}
