/** Runs one agent at one step: its attempts, through the journal. */

import type { Json, JsonObject } from '../base/json.ts';
import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { countedBytes } from '../base/measure-json.ts';
import type { CompiledAgentStep } from '../compiled/compiled-ensemble.ts';
import type { NameSlot } from '../compiled/name-slot.ts';
import { markOfAttempt } from '../model/step-kind.ts';
import type { StepRecord } from '../model/stored-execution.ts';
import type { StateUpdate, StepOptions, StoreRecord } from '../ports/journal.ts';
import { runAttempt } from './attempt.ts';
import type { AttemptPlace } from './attempt-place.ts';
import { toFailure } from './failure.ts';
import { checkDecisionSize, stopsReplay } from './guards.ts';
import { emitRecord } from './marks.ts';
import type { RunScope } from './run-scope.ts';
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
  const { run } = scope;
  const { clock } = run.ports;
  const key = scope.keyPrefix === '' ? step.key : scope.keyPrefix + step.key;
  const place: AttemptPlace = {
    key,
    number: 1,
    startedAt: clock.now(),
    monotonic: clock.monotonic(),
    made: false,
    bytes: 0,
    cutOff: 0,
    parts: undefined,
  };
  const record = attempt(step, scope, place);
  if (isPromise(record)) return record.then((stored) => afterAttempt(stored, step, scope, place, router));
  return afterAttempt(record, step, scope, place, router);
}

function attempt(step: CompiledAgentStep, scope: RunScope, place: AttemptPlace): MaybePromise<StepRecord | undefined> {
  const plain = step.last ? LAST : NOT_LAST;
  if (stopsReplay(place.key, scope, place.number)) return undefined;
  const options = step.setState ? { ...plain, state: stateUpdate(step, scope, place.key, step.setState) } : plain;
  return scope.run.journal.step(
    place.key,
    place.number,
    (store) => {
      const ready = scope.endReplay();
      return ready ? ready.then(() => begin(step, scope, place, store)) : begin(step, scope, place, store);
    },
    options,
    step.name,
  );
}

function begin(
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  store: StoreRecord,
): MaybePromise<StepRecord | undefined> {
  if (place.number === 1) scope.run.emit?.('agent.started', { agent: step.name, key: place.key });
  return runAttempt(step, scope, place, store);
}

function afterAttempt(
  record: StepRecord | undefined,
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  router: NameSlot | undefined,
): MaybePromise<boolean> {
  if (record?.retryAt === undefined) return putResult(record, step, scope, router, place);
  return retry(record, step, scope, place, router);
}

async function retry(
  failed: StepRecord,
  step: CompiledAgentStep,
  scope: RunScope,
  first: AttemptPlace,
  router: NameSlot | undefined,
): Promise<boolean> {
  let place = first;
  let record: StepRecord | undefined = failed;
  while (record?.retryAt !== undefined) {
    if (place.made) emitRecord(markOfAttempt(record), scope.run);
    if (!(await waitUntil(record.retryAt, first.key, { key: first.key, kind: 'retry', name: step.name }, scope)))
      return false;
    const { startedAt, attempts: number } = record;
    // If the first attempt ran in another process, only wall time says how long the step took so far.
    const monotonic = first.made ? first.monotonic : monotonicOf(startedAt, record.retryAt, scope);
    const { cutOff, parts } = place;
    place = { ...first, startedAt, monotonic, number: number + 1, made: false, bytes: 0, cutOff, parts };
    record = await attempt(step, scope, place);
  }
  return putResult(record, step, scope, router, place);
}

/** The monotonic instant of a wall instant, computed at the end of a wait: a wall clock that was set back makes no wait shorter. */
function monotonicOf(instant: number, waitedUntil: number, { run }: RunScope): number {
  const { clock } = run.ports;
  return clock.monotonic() - Math.max(0, Math.max(waitedUntil, clock.now()) - instant);
}

function putResult(
  record: StepRecord | undefined,
  step: CompiledAgentStep,
  scope: RunScope,
  router: NameSlot | undefined,
  { made, bytes }: AttemptPlace,
): boolean {
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
