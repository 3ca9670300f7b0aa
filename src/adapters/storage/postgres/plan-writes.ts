/** Divides a batch into writes: each is one statement, in which no entry depends on what another one of it writes. */

import type {
  CommitEntry,
  ExecutionEnd,
  NewDelivery,
  NewExecution,
  StateChange,
  StepRecord,
} from '../../../engine/model/stored-execution.ts';
import { toJsonColumn } from '../sql/columns.ts';

/** A part of an entry, with the entry that it stands and falls with. */
export interface Owned<Part> {
  readonly entry: CommitEntry;
  part: Part;
  /** Its value, as JSON: what may be large is written once. */
  json: string;
}

/** Entries that one statement stores. */
export interface Write {
  /** The entries' places in the batch. */
  readonly places: number[];
  readonly starts: Owned<NewExecution>[];
  /** Entries that end their execution, or give it up: then without a part. */
  readonly settles: Owned<ExecutionEnd | undefined>[];
  readonly states: Owned<StateChange>[];
  readonly steps: Owned<StepRecord>[];
  readonly deliveries: Owned<NewDelivery>[];
  /** Its steps are results of first attempts: their keys are new. */
  isFresh: boolean;
  /** Some steps or deliveries belong to executions that start in the same write. */
  givesToStarts: boolean;
}

const MOST_ENTRIES = 500;
const MOST_PARTS = 2000;
/** Characters of values; a statement may hold a thousand times as many, a process had better not. */
const MOST_TEXT = 8_000_000;

/**
 * Whether an entry needs several statements, in one transaction: what a statement starts it can't change, and what it sends
 * stands for itself.
 */
export function isTwofold({ start, state, end, signals }: CommitEntry): boolean {
  return (start !== undefined && (state !== undefined || end !== undefined)) || (signals?.length ?? 0) > 0;
}

export function planWrites(batch: readonly CommitEntry[]): readonly Write[] {
  const writes: Write[] = [];
  let plan: Plan | undefined;
  for (let place = 0; place < batch.length; place++) {
    const entry = batch[place] as CommitEntry;
    if (!plan || !fits(plan, entry)) {
      plan = newPlan(isBare(entry));
      writes.push(plan.write);
    }
    add(plan, entry, place);
  }
  return writes;
}

interface Plan {
  readonly write: Write;
  text: number;
  /** The executions of its entries, with their epochs; CLOSED where no other entry may follow. */
  readonly epochs: Map<string, number>;
  /** The ensembles whose state it changes. */
  ensembles: Set<string> | undefined;
  /** Its steps, by execution and key; once an execution has several. */
  keys: Map<string, Owned<StepRecord>> | undefined;
  isFull: boolean;
  /** Its entries write nothing: they ask whether their executions are still held. */
  isBare: boolean;
}

const CLOSED = -1;

/** Whether nothing is written of an entry itself: it asks whether its execution is still held. */
export function isBare({ start, steps, state, deliveries, release, end }: CommitEntry): boolean {
  return steps.length === 0 && !start && !state && !release && !end && !deliveries?.length;
}

function newPlan(bare: boolean): Plan {
  return {
    write: {
      ...{ places: [], starts: [], settles: [], states: [], steps: [], deliveries: [] },
      ...{ isFresh: true, givesToStarts: false },
    },
    ...{ epochs: new Map(), ensembles: undefined, keys: undefined },
    ...{ text: 0, isFull: false, isBare: bare },
  };
}

function fits(plan: Plan, entry: CommitEntry): boolean {
  const { executionId, epoch, start, state, steps } = entry;
  const { write } = plan;
  if (plan.isFull || isTwofold(entry) || plan.text > MOST_TEXT) return false;
  if (isBare(entry) !== plan.isBare || write.places.length >= MOST_ENTRIES) return false;
  if (write.steps.length + steps.length > MOST_PARTS) return false;
  const known = plan.epochs.get(executionId);
  if (known !== undefined && (start !== undefined || state !== undefined || known !== epoch)) return false;
  return state === undefined || !plan.ensembles?.has(state.ensemble);
}

function add(plan: Plan, entry: CommitEntry, place: number): void {
  const { executionId, epoch, start, steps, state, deliveries, release, end } = entry;
  const { write, epochs } = plan;
  plan.isFull = isTwofold(entry);
  const isLast = start !== undefined || state !== undefined || release !== undefined || end !== undefined;
  write.places.push(place);
  if (steps.length > 0) {
    // One step of an execution that was not there before is new: most entries hold no more.
    if (steps.length === 1 && !plan.keys && !epochs.has(executionId)) pushStep(plan, entry, steps[0] as StepRecord);
    else for (const step of steps) mergeStep(plan, entry, step);
  }
  epochs.set(executionId, isLast ? CLOSED : epoch);
  if (deliveries) for (const part of deliveries) write.deliveries.push(own(plan, entry, part, part.payload));
  if (!isLast) return;
  if (state) {
    write.states.push(own(plan, entry, state, state.value));
    plan.ensembles ??= new Set();
    plan.ensembles.add(state.ensemble);
  }
  if (start) {
    write.starts.push(own(plan, entry, start, start.input));
    if (steps.length > 0 || deliveries?.length) write.givesToStarts = true;
  } else if (release || end) write.settles.push(own(plan, entry, end, end ? end.output : null));
}

/** Whether it is the result of a first attempt, and nothing else. */
export function isResult({ status, attempts, retryAt, note, error }: StepRecord): boolean {
  return attempts === 1 && status === 'completed' && retryAt === undefined && !note && error === undefined;
}

function pushStep(plan: Plan, entry: CommitEntry, step: StepRecord): Owned<StepRecord> {
  const owned = own(plan, entry, step, step.output);
  plan.write.steps.push(owned);
  if (!isResult(step)) plan.write.isFresh = false;
  return owned;
}

/** One statement can't write a row twice: of two records of one key, the first keeps its place, and takes the value of the other. */
function mergeStep(plan: Plan, entry: CommitEntry, step: StepRecord): void {
  plan.keys ??= new Map(plan.write.steps.map((owned) => [keyOf(owned.entry, owned.part), owned]));
  const key = keyOf(entry, step);
  const earlier = plan.keys.get(key);
  if (!earlier) plan.keys.set(key, pushStep(plan, entry, step));
  else if (earlier.part.retryAt !== undefined && earlier.part.attempts <= step.attempts) {
    earlier.part = step;
    earlier.json = toJsonColumn(step.output);
  }
}

function keyOf({ executionId }: CommitEntry, { key }: StepRecord): string {
  return `${executionId}\n${key}`;
}

function own<Part>(plan: Plan, entry: CommitEntry, part: Part, value: StepRecord['output']): Owned<Part> {
  const json = toJsonColumn(value);
  plan.text += json.length;
  return { entry, part, json };
}
