/** The state of each step of a flow in one execution, as far as its stored results show it. Pure. */

import type { EnsembleDefinition, StepDefinition } from '../../engine/model/ensemble.ts';
import {
  type AgentRun,
  type Execution,
  type FinalStatus,
  isFinal,
  type PendingWait,
} from '../../engine/model/execution.ts';
import { END, START } from './flow-graph.ts';
import { type PlacedList, placedLists, placeOf, verbOf } from './flow-places.ts';
import { describeTimes, waitsOf } from '../progress/describe-waits.ts';
import type { StepMark, StepMarks, StepState } from './print-mermaid.ts';

/** A step and its place. */
interface Placed {
  readonly step: StepDefinition;
  readonly place: string;
}

/** The result of one agent run, or of a child execution that a step started. */
export interface StepRun {
  /** Its place, with the numbers of its items and rounds. */
  readonly key: string;
  /** `running` also for a child execution that is queued or waits. */
  readonly status: AgentRun['status'] | FinalStatus | 'running';
}

/** `now`: the execution may be in this list. `done`: the list ran to its end. `left`: it ended before its last step. */
type Stage = 'now' | 'done' | 'left';

/**
 * Only results of agents and child executions are stored. So the current step, and whether a wait is over, follow from the results
 * of later steps.
 *
 * @param runs - every stored agent run of the execution, and its child executions
 */
export function stepMarks(
  definition: EnsembleDefinition,
  execution: Pick<Execution<unknown>, 'status' | 'startedAt'> & Partial<Pick<Execution<unknown>, 'waitingFor'>>,
  runs: readonly StepRun[],
): StepMarks {
  const { status, startedAt } = execution;
  const marks = new Map<string, StepMark>();
  if (startedAt === undefined && !isFinal(status)) return marks;
  marks.set(START, { state: 'completed' });
  if (isFinal(status)) marks.set(END, { state: status === 'completed' ? 'completed' : 'failed' });
  const flow = placed({ place: 'flow', steps: definition.flow });
  const known = tally(runs);
  findActive(flow, known);
  markList(flow, status === 'completed' ? 'done' : isFinal(status) ? 'left' : 'now', known, marks);
  markWaits(waitsOf(execution), marks);
  return marks;
}

/** Marks the steps at which the execution waits: the record knows them, whatever the results show. */
function markWaits(waits: readonly PendingWait[], marks: Map<string, StepMark>): void {
  const byPlace = new Map<string, PendingWait[]>();
  for (const wait of waits) {
    const place = placeOf(wait.key);
    byPlace.set(place, [...(byPlace.get(place) ?? []), wait]);
  }
  for (const [place, [first, ...others]] of byPlace) {
    const times = others.length > 0 ? `${others.length + 1} waits` : `waits ${describeTimes(first as PendingWait)}`;
    marks.set(place, { state: first?.kind === 'retry' ? 'retrying' : 'running', times });
  }
}

type Tally = Record<StepRun['status'], number>;

interface Known {
  readonly runs: Map<string, Tally>;
  /** The places of the members that each router led to, by the router's place. */
  readonly routed: Map<string, Set<string>>;
  /** The items or rounds with stored results, by the loop's place. */
  readonly passes: Map<string, Set<string>>;
  /** The places of steps in which something ran. */
  readonly active: Set<string>;
}

function tally(runs: readonly StepRun[]): Known {
  const known: Known = { runs: new Map(), routed: new Map(), passes: new Map(), active: new Set() };
  const addTo = (sets: Map<string, Set<string>>, key: string, value: string) =>
    sets.set(key, (sets.get(key) ?? new Set()).add(value));
  for (const { key, status } of runs) {
    const place = placeOf(key);
    const counts = known.runs.get(place) ?? {
      completed: 0,
      failed: 0,
      retrying: 0,
      running: 0,
      timed_out: 0,
      cancelled: 0,
    };
    counts[status] += 1;
    known.runs.set(place, counts);
    // A step's key ends with its number. The key of a router's member ends with the member's name.
    if (!place.endsWith(']')) addTo(known.routed, place.slice(0, place.lastIndexOf('.')), place);
    for (const { 0: pass, index } of key.matchAll(/\.(?:foreach|while)\[\d+\](?=\.)/g)) {
      addTo(known.passes, placeOf(key.slice(0, index)), key.slice(0, index + pass.length));
    }
  }
  return known;
}

function placed({ steps, place }: Pick<PlacedList, 'steps' | 'place'>): Placed[] {
  return steps.map((step, i) => ({ step, place: `${place}[${i}]` }));
}

/** A step's lists. Each branch of a `parallel` is a list of its own, because branches do not wait for each other. */
function listsOf({
  step,
  place,
}: Placed): { readonly part: string; readonly place: string; readonly steps: Placed[] }[] {
  const isParallel = verbOf(step) === 'parallel';
  return placedLists(step, place).flatMap((list) => {
    const steps = placed(list);
    if (!isParallel) return [{ part: list.part, place: list.place, steps }];
    return steps.map((branch) => ({ part: list.part, place: branch.place, steps: [branch] }));
  });
}

function findActive(steps: readonly Placed[], known: Known): boolean {
  let any = false;
  for (const at of steps) {
    let isActive = known.runs.has(at.place) || known.routed.has(at.place);
    for (const list of listsOf(at)) if (findActive(list.steps, known)) isActive = true;
    if (isActive) known.active.add(at.place);
    any ||= isActive;
  }
  return any;
}

function isActiveIn(steps: readonly Placed[], { active }: Known): boolean {
  return steps.some(({ place }) => active.has(place));
}

/** Whether the stored results show that a step has ended. */
function isOver(at: Placed, known: Known): boolean {
  if (!known.active.has(at.place)) return false;
  const lists = listsOf(at);
  const hasRunOut = ({ steps }: { readonly steps: readonly Placed[] }) => {
    const last = steps.at(-1);
    return last !== undefined && isOver(last, known);
  };
  switch (verbOf(at.step)) {
    case 'ensemble':
      return (known.runs.get(at.place)?.running ?? 0) === 0 || 'detached' in at.step;
    case 'agent':
      return (known.runs.get(at.place)?.retrying ?? 0) === 0;
    case 'if':
    case 'switch':
      return lists.some(hasRunOut);
    case 'parallel':
      return lists.every(hasRunOut);
    case 'try': {
      const cleanup = lists.find(({ part }) => part === 'finally');
      return cleanup ? hasRunOut(cleanup) : lists.some(hasRunOut);
    }
    default:
      // The results do not show whether a loop continues.
      return false;
  }
}

function markList(steps: readonly Placed[], stage: Stage, known: Known, marks: Map<string, StepMark>): void {
  const last = steps.findLastIndex(({ place }) => known.active.has(place));
  for (const [i, at] of steps.entries()) {
    const before = steps[i - 1];
    const isNext = before === undefined || isOver(before, known);
    if (i < last || stage === 'done') markStep(at, 'done', known, marks);
    else if (i === last) markStep(at, stage, known, marks);
    else if (stage === 'now' && isNext) markStep(at, 'now', known, marks);
    else if (stage === 'left') markSkipped(at, marks);
  }
}

function markStep(at: Placed, stage: Stage, known: Known, marks: Map<string, StepMark>): void {
  const { step, place } = at;
  const lists = listsOf(at);
  if (verbOf(step) === 'agent') markAgent(place, stage, known, marks);
  else if (known.runs.has(place)) marks.set(place, markOf(known.runs.get(place) as Tally));
  else if (lists.length > 0) markBlock(at, stage === 'now' && isOver(at, known) ? 'done' : stage, known, marks);
  else if (stage === 'now') marks.set(place, { state: 'running' });
  else if (stage === 'done') markPassed(step, place, marks);
}

/** Marks a step without stored results that the execution has passed. */
function markPassed(step: StepDefinition, place: string, marks: Map<string, StepMark>): void {
  const isChild = verbOf(step) === 'ensemble';
  // A wait has no stored result, so a wait with a condition may have been skipped. A child execution may have been refused, or is no longer stored.
  if ('condition' in step === isChild) marks.set(place, { state: isChild ? 'skipped' : 'completed' });
}

function markAgent(place: string, stage: Stage, known: Known, marks: Map<string, StepMark>): void {
  const members = known.routed.get(place) ?? [];
  for (const member of members) marks.set(member, markOf(known.runs.get(member) as Tally));
  const own = known.runs.get(place);
  if (own) marks.set(place, markOf(own));
  else if (known.routed.has(place)) marks.set(place, { state: 'completed' });
  else marks.set(place, { state: stage === 'now' ? 'running' : 'skipped' });
}

function markOf(counts: Tally): StepMark {
  const { completed, failed, retrying, running, timed_out: timedOut, cancelled } = counts;
  const runs = completed + failed + retrying + running + timedOut + cancelled;
  const state = stateOf(counts);
  if (runs > 1) return { state, times: completed === runs ? `${runs} times` : `${completed} of ${runs}` };
  const word = timedOut > 0 ? 'timed out' : cancelled > 0 ? 'cancelled' : undefined;
  return word === undefined ? { state } : { state, times: word };
}

function stateOf({ failed, retrying, running, timed_out: timedOut, cancelled }: Tally): StepState {
  if (retrying > 0) return 'retrying';
  if (running > 0) return 'running';
  if (failed + timedOut > 0) return 'failed';
  // A child execution that was cancelled has not failed.
  return cancelled > 0 ? 'skipped' : 'completed';
}

function markBlock(at: Placed, stage: Stage, known: Known, marks: Map<string, StepMark>): void {
  const { step, place } = at;
  const verb = verbOf(step);
  const isActive = known.active.has(place);
  // A choice was made even if it led to no step. A loop in which nothing ran may have been skipped.
  const wasReached = isActive || ['if', 'switch', 'try'].includes(verb);
  const state: StepState = stage === 'now' ? 'running' : wasReached ? 'completed' : 'skipped';
  const times = passesOf(verb, known.passes.get(place)?.size ?? 0);
  marks.set(place, { state, ...(times !== undefined && { times }) });
  const lists = listsOf(at);
  const newest = lists.findLastIndex(({ steps }) => isActiveIn(steps, known));
  for (const [i, list] of lists.entries()) {
    const isOwn = isActiveIn(list.steps, known);
    // It is not known yet whether the parts after the current one will run.
    if (verb === 'try' && (stage !== 'now' || i <= Math.max(newest, 0))) {
      marks.set(list.place, { state: tryState(i, newest, stage, isOwn) });
    }
    if (stage === 'now' && mayBeIn(verb, i, newest, isOwn)) markList(list.steps, 'now', known, marks);
    else if (isOwn)
      markList(list.steps, stage === 'done' && (verb !== 'try' || i === newest) ? 'done' : 'left', known, marks);
    else if (stage !== 'now' || (verb === 'try' && i < newest))
      for (const inner of list.steps) markSkipped(inner, marks);
  }
}

/** Whether an execution whose current step is this block may be in its list `i`. @param newest - the last list in which something ran */
function mayBeIn(verb: string, i: number, newest: number, isOwn: boolean): boolean {
  if (verb === 'if' || verb === 'switch') return isOwn;
  return verb === 'try' ? i === Math.max(newest, 0) : true;
}

function tryState(i: number, newest: number, stage: Stage, isOwn: boolean): StepState {
  if (stage === 'now' && i === Math.max(newest, 0)) return 'running';
  return isOwn ? 'completed' : 'skipped';
}

function passesOf(verb: string, passes: number): string | undefined {
  if (passes === 0) return undefined;
  const noun = verb === 'while' ? 'round' : 'item';
  return `${passes} ${noun}${passes === 1 ? '' : 's'}`;
}

function markSkipped(at: Placed, marks: Map<string, StepMark>): void {
  const lists = listsOf(at);
  // The results do not show whether a wait was passed.
  if (['agent', 'ensemble'].includes(verbOf(at.step)) || lists.length > 0) marks.set(at.place, { state: 'skipped' });
  for (const { steps } of lists) for (const inner of steps) markSkipped(inner, marks);
}
