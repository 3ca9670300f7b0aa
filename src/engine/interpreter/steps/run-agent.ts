/** Runs one agent at one step: its attempts, through the journal. */

import type { Json, JsonObject } from '../../base/json/json.ts';
import { countedBytes } from '../../base/json/measure-json.ts';
import { isPromise, type MaybePromise } from '../../base/maybe-promise.ts';
import type { CompiledAgentStep } from '../../compiled/compiled-ensemble.ts';
import type { NameSlot } from '../../compiled/name-slot.ts';
import { markOfAttempt } from '../../ensemble/step-kind.ts';
import type { StateUpdate, StepOptions, StoreRecord } from '../../execution/journal.port.ts';
import type { StepRecord } from '../../execution/stored-execution.ts';
import type { Attempt } from '../attempt/attempt.ts';
import { runAttempt } from '../attempt/run-attempt.ts';
import { toFailure } from '../failure.ts';
import { checkDecisionSize, stopsReplay } from '../guards.ts';
import { emitRecord } from '../marks.ts';
import type { RunScope } from '../run-scope.ts';
import { waitUntil } from './wait-until.ts';

const LAST: StepOptions = Object.freeze({ last: true });
const NOT_LAST: StepOptions = Object.freeze({ last: false });
/** After an output of this size the clock is read again: storing it took long. */
const LARGE_BYTES = 65_536;

/**
 * Runs the agent to its final result, and sets the result of its name. Its condition was evaluated before.
 *
 * @param router - the route that led here: a guard on the route handles the agent's failure too
 * @returns false when the run was stopped before there was a result
 */
export function runAgent(step: CompiledAgentStep, scope: RunScope, router?: NameSlot): MaybePromise<boolean> {
  const { clock } = scope.run.ports;
  const first: Attempt = {
    step,
    scope,
    router,
    key: scope.keyPrefix === '' ? step.key : scope.keyPrefix + step.key,
    number: 1,
    startedAt: clock.now(),
    monotonic: clock.monotonic(),
    made: false,
    bytes: 0,
    cutOff: 0,
    parts: undefined,
    transaction: undefined,
    span: undefined,
  };
  const record = recordOf(first);
  return isPromise(record) ? record.then((stored) => afterFirst(stored, first)) : afterFirst(record, first);
}

/** What is stored of the attempt, or what running it leaves. */
function recordOf(attempt: Attempt): MaybePromise<StepRecord | undefined> {
  const { step, scope, key, number } = attempt;
  const plain = step.last ? LAST : NOT_LAST;
  if (stopsReplay(key, scope, number)) return undefined;
  const options = step.setState ? { ...plain, state: stateUpdate(step, scope, key, step.setState) } : plain;
  return scope.run.journal.step(
    key,
    number,
    (store) => {
      const ready = scope.endReplay();
      return ready ? ready.then(() => beginFirstAttempt(attempt, store)) : beginFirstAttempt(attempt, store);
    },
    options,
    step.name,
  );
}

function beginFirstAttempt(attempt: Attempt, store: StoreRecord): MaybePromise<StepRecord | undefined> {
  const { step, scope, key, number } = attempt;
  if (number === 1) scope.run.emit?.('agent.started', { agent: step.name, key });
  return runAttempt(attempt, store);
}

function afterFirst(record: StepRecord | undefined, first: Attempt): MaybePromise<boolean> {
  return record?.retryAt === undefined ? putResult(record, first) : retry(record, first);
}

async function retry(failed: StepRecord, first: Attempt): Promise<boolean> {
  const { step, scope, key } = first;
  let attempt = first;
  let record: StepRecord | undefined = failed;
  while (record?.retryAt !== undefined) {
    if (attempt.made) emitRecord(markOfAttempt(record), scope.run);
    if (!(await waitUntil(record.retryAt, key, { key, kind: 'retry', name: step.name }, scope))) return false;
    const { startedAt, attempts: number } = record;
    // If the first attempt ran in another process, only wall time says how long the step took so far.
    const monotonic = first.made ? first.monotonic : monotonicOf(startedAt, record.retryAt, scope);
    const { cutOff, parts } = attempt;
    attempt = {
      ...first,
      startedAt,
      monotonic,
      number: number + 1,
      made: false,
      bytes: 0,
      cutOff,
      parts,
      transaction: undefined,
    };
    record = await recordOf(attempt);
  }
  return putResult(record, attempt);
}

/** The monotonic instant of a wall instant, computed at the end of a wait: a wall clock that was set back makes no wait shorter. */
function monotonicOf(instant: number, waitedUntil: number, { run }: RunScope): number {
  const { clock } = run.ports;
  return clock.monotonic() - Math.max(0, Math.max(waitedUntil, clock.now()) - instant);
}

function putResult(record: StepRecord | undefined, { step, scope, router, made, bytes }: Attempt): boolean {
  if (!record) return false;
  scope.lastCommitAt = record.startedAt + record.duration;
  scope.put(step.slot.slot, record, made ? bytes : countedBytes(record.output));
  scope.lastOutput = record.output;
  if (bytes >= LARGE_BYTES) scope.run.ports.turns.readClock();
  if (step.takesPrompt) scope.takePrompt();
  if (record.error && !step.continueOnError) {
    scope.fail({ slots: router ? [step.slot, router] : [step.slot], error: record.error });
  }
  if (made) emitRecord(record, scope.run);
  return true;
}

function stateUpdate(
  step: CompiledAgentStep,
  scope: RunScope,
  key: string,
  setState: (scope: RunScope) => Json,
): StateUpdate {
  return {
    next(current, record) {
      if (record.status !== 'completed') return { record };
      const before = scope.results[step.slot.slot];
      const state = scope.state;
      try {
        // The expressions read the newest state and the agent's own output.
        scope.results[step.slot.slot] = record;
        scope.state = current ?? (scope.run.compiled.initialState as JsonObject);
        const changes = setState(scope.begin(key, 'setState')) as JsonObject;
        const value = checkDecisionSize(
          { ...scope.state, ...changes },
          'the state of the ensemble, changed by `setState`,',
        );
        return { record, value };
      } catch (thrown) {
        const { error } = toFailure(thrown, scope.run.ports.mask);
        return { record: { ...record, status: 'failed', output: null, error: { ...error, agent: step.name } } };
      } finally {
        scope.results[step.slot.slot] = before;
        scope.state = state;
      }
    },
    stored(value) {
      scope.run.emit?.('state.updated', { state: value });
    },
  };
}
