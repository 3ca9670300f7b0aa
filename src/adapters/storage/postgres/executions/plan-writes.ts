/** Divides a batch into writes. Each write is one statement, in which no entry depends on what another entry writes. */

import type { NewDelivery } from '../../../../engine/delivery/delivery.ts';
import type {
  CommitEntry,
  ExecutionEnd,
  NewExecution,
  StateChange,
  StepRecord,
} from '../../../../engine/execution/stored-execution.ts';
import { toJsonColumn } from '../../sql/columns.ts';
import { type Counted, countedOf } from '../tables/count-charges.ts';
import type { EntryPart } from './entry-columns.ts';

/** Entries that one statement stores. */
export interface Write {
  /** The entries' places in the batch. */
  readonly places: number[];
  readonly starts: EntryPart<NewExecution>[];
  /** The tags of the starts. */
  readonly tags: EntryPart<string>[];
  /** What the starts count for their callers. */
  readonly charges: EntryPart<Counted>[];
  /** Whether a start expects a document. */
  expects: boolean;
  /** Entries that end or release their execution. A release has no part. */
  readonly settles: EntryPart<ExecutionEnd | undefined>[];
  readonly states: EntryPart<StateChange>[];
  readonly steps: EntryPart<StepRecord>[];
  readonly deliveries: EntryPart<NewDelivery>[];
}

const MAX_ENTRIES = 500;
const MAX_PARTS = 2000;
/** Characters of values. Postgres allows a thousand times as many, but a process should not hold them. */
const MAX_TEXT_LENGTH = 8_000_000;

/**
 * Whether an entry needs several statements in a transaction: a statement can't change what it starts, and signals are
 * sent by a statement of their own.
 */
export function needsTransaction({ start, state, end, signals }: CommitEntry): boolean {
  return (start !== undefined && (state !== undefined || end !== undefined)) || (signals?.length ?? 0) > 0;
}

export function planWrites(batch: readonly CommitEntry[]): readonly Write[] {
  const writes: Write[] = [];
  let plan: Plan | undefined;
  for (let place = 0; place < batch.length; place++) {
    const entry = batch[place] as CommitEntry;
    if (!plan || !fits(plan, entry)) {
      plan = newPlan(isFenceCheck(entry));
      writes.push(plan.write);
    }
    add(plan, entry, place);
  }
  return writes;
}

interface Plan {
  readonly write: Write;
  text: number;
  /** The epoch of each execution; CLOSED when no other entry of the execution may follow. */
  readonly epochs: Map<string, number>;
  /** The ensembles whose state the write changes. */
  ensembles: Set<string> | undefined;
  /** The steps by execution and key. Undefined until an execution has several steps. */
  keys: Map<string, EntryPart<StepRecord>> | undefined;
  isFull: boolean;
  /** The entries write nothing and only check their fences. */
  isFenceCheck: boolean;
}

const CLOSED = -1;

/** Whether an entry writes nothing to its execution and only checks the fence. It may send signals. */
export function isFenceCheck({ start, steps, state, release, end, deliveries }: CommitEntry): boolean {
  return steps.length === 0 && !start && !state && !release && !end && !deliveries;
}

function newPlan(bare: boolean): Plan {
  return {
    write: {
      ...{ places: [], starts: [], tags: [], charges: [], expects: false },
      ...{ settles: [], states: [], steps: [], deliveries: [] },
    },
    ...{ epochs: new Map(), ensembles: undefined, keys: undefined },
    ...{ text: 0, isFull: false, isFenceCheck: bare },
  };
}

function fits(plan: Plan, entry: CommitEntry): boolean {
  const { executionId, epoch, start, state, steps } = entry;
  const { write } = plan;
  if (plan.isFull || needsTransaction(entry) || plan.text > MAX_TEXT_LENGTH) return false;
  if (isFenceCheck(entry) !== plan.isFenceCheck || write.places.length >= MAX_ENTRIES) return false;
  if (write.steps.length + steps.length > MAX_PARTS) return false;
  const known = plan.epochs.get(executionId);
  if (known !== undefined && (start !== undefined || state !== undefined || known !== epoch)) return false;
  return state === undefined || !plan.ensembles?.has(state.ensemble);
}

function add(plan: Plan, entry: CommitEntry, place: number): void {
  const { executionId, epoch, start, steps, state, release, end, deliveries } = entry;
  const { write, epochs } = plan;
  plan.isFull = needsTransaction(entry);
  const isLast = start !== undefined || state !== undefined || release !== undefined || end !== undefined;
  write.places.push(place);
  if (steps.length > 0) {
    // The first step of an execution in this write is new. Most entries have only one step.
    if (steps.length === 1 && !plan.keys && !epochs.has(executionId)) pushStep(plan, entry, steps[0] as StepRecord);
    else for (const step of steps) mergeStep(plan, entry, step);
  }
  for (const delivery of deliveries ?? []) {
    write.deliveries.push({ entry, part: delivery, json: '' });
    plan.text += delivery.body.length;
  }
  epochs.set(executionId, isLast ? CLOSED : epoch);
  if (!isLast) return;
  if (state) {
    write.states.push(partOf(plan, entry, state, state.value));
    plan.ensembles ??= new Set();
    plan.ensembles.add(state.ensemble);
  }
  if (start) {
    write.starts.push(partOf(plan, entry, start, start.input));
    for (const tag of start.tags ?? []) write.tags.push({ entry, part: tag, json: '' });
    const counted = entry.charge ? countedOf(entry.charge, release !== undefined) : [];
    for (const part of counted) write.charges.push({ entry, part, json: '' });
    write.expects ||= entry.expects !== undefined;
  } else if (release || end) write.settles.push(partOf(plan, entry, end, end ? end.output : null));
}

function pushStep(plan: Plan, entry: CommitEntry, step: StepRecord): EntryPart<StepRecord> {
  const entryPart = partOf(plan, entry, step, step.output);
  plan.write.steps.push(entryPart);
  return entryPart;
}

/**
 * Merges records of the same key, because a statement can't write a row twice. A later record replaces an earlier attempt at
 * its place.
 */
function mergeStep(plan: Plan, entry: CommitEntry, step: StepRecord): void {
  plan.keys ??= new Map(plan.write.steps.map((entryPart) => [keyOf(entryPart.entry, entryPart.part), entryPart]));
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

function partOf<Part>(plan: Plan, entry: CommitEntry, part: Part, value: StepRecord['output']): EntryPart<Part> {
  const json = toJsonColumn(value);
  plan.text += json.length;
  return { entry, part, json };
}
