/** Reports what happens to steps: as marks in the journal, which are stored, and as events for the listeners of this process. */

import type { JsonObject } from '../base/json/json.ts';
import type { NameSlot } from '../compiled/name-slot.ts';
import { toStepEvent } from '../ensemble/step-event.ts';
import { markKey, resumedKey, type StepFact, type StepKind, toNote } from '../ensemble/step-kind.ts';
import type { ExecutionError } from '../execution/execution.ts';
import type { StepRecord } from '../execution/stored-execution.ts';
import type { Run } from './run.ts';
import type { RunScope } from './run-scope.ts';

/** What a mark needs of its step. */
interface MarkedStep {
  readonly kind: StepKind;
  /** Its place in its level. */
  readonly key: string;
  readonly slot?: NameSlot | undefined;
}

/**
 * Marks a fact about a step, and emits its event. Does nothing if it was marked before the execution was resumed, and in a part of the
 * flow that was already over.
 */
export function markStep(
  step: MarkedStep,
  fact: StepFact,
  scope: RunScope,
  facts: JsonObject = NO_FACTS,
  error?: ExecutionError,
): void {
  const { run, cancellation, keyPrefix } = scope;
  if (cancellation.replay !== undefined) return;
  const { slot } = step;
  const named = slot ? (facts === NO_FACTS ? { name: slot.name } : { ...facts, name: slot.name }) : facts;
  const key = markKey(keyPrefix + step.key, step.kind, fact);
  if (run.replaying === 0) {
    storeMark(key, named, run, error);
    return;
  }
  // What is still being replayed may stop this part: then the step never came here.
  run.whenReplayed(() => {
    if (cancellation.reason === undefined) storeMark(key, named, run, error);
  });
}

/** Marks a step that failed before it began, unless the run was stopped meanwhile. Call it right after the failure. */
export function markRefused(step: MarkedStep, scope: RunScope): void {
  if (scope.cancellation.reason === undefined) markStep(step, 'failed', scope, NO_FACTS, scope.lastMarked);
}

/** Marks the end of a block whose steps did not reach their end, if a failure ended them, and not a stop from outside. */
export function markEnded(step: MarkedStep, scope: RunScope, facts?: JsonObject): void {
  const error = lastError(scope);
  if (error && scope.cancellation.reason === undefined) markStep(step, 'ended', scope, facts, error);
}

/** The newest failure that is pending at this level. */
export function lastError({ failures }: RunScope): ExecutionError | undefined {
  return failures?.at(-1)?.error;
}

/** Marks that a worker continues the execution after another one died. */
export function markResumed(recoveries: number, run: Run): void {
  storeMark(resumedKey(recoveries), { recoveries }, run);
}

function storeMark(key: string, output: JsonObject, run: Run, error?: ExecutionError): void {
  const mark = toNote(key, { at: run.ports.clock.now(), output, error });
  if (run.journal.mark(mark)) emitRecord(mark, run);
}

/** Emits the event that a record stands for. @param other - see `toStepEvent` */
export function emitRecord(record: StepRecord, { emit }: Run, other?: StepRecord): void {
  if (!emit) return;
  const made = toStepEvent(record, other);
  if (made) emit(made.event, made.details);
}

const NO_FACTS: JsonObject = Object.freeze({});
