/** Runs one agent at one step, attempt after attempt, over the journal. */

import type { CompiledAgentStep } from '../definition/compiled-ensemble.ts';
import type { NameSlot } from '../definition/names.ts';
import type { Json, JsonObject } from '../json.ts';
import { sizeOfJson } from '../json-size.ts';
import type { StepRecord } from '../model/stored-execution.ts';
import type { StateUpdate, StepOptions, StoreRecord } from '../ports/journal.ts';
import type { MaybePromise } from '../ports/operation.ts';
import { type AttemptPlace, isPromise, runAttempt } from './attempt.ts';
import { toFailure } from './failure.ts';
import { boundNote } from './level.ts';
import type { RunScope } from './run-scope.ts';
import { waitUntil } from './wait-until.ts';

const LAST: StepOptions = Object.freeze({ last: true });
/** From here on the clock is looked at once more. */
const LARGE_BYTES = 65_536;
const NOT_LAST: StepOptions = Object.freeze({ last: false });

/**
 * Runs the agent to its result, and notes it under its name. Its condition was looked at already.
 *
 * @param router - the router that led here: a guard on it handles the agent's failure too
 * @returns false when the run was stopped before there was a result
 */
export function runAgent(
  step: CompiledAgentStep,
  scope: RunScope,
  router: NameSlot | undefined,
): MaybePromise<boolean> {
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
  };
  const stepped = attempt(step, scope, place);
  if (isPromise(stepped)) return stepped.then((record) => afterAttempt(record, step, scope, place, router));
  return afterAttempt(stepped, step, scope, place, router);
}

function attempt(step: CompiledAgentStep, scope: RunScope, place: AttemptPlace): MaybePromise<StepRecord | undefined> {
  const plain = step.last ? LAST : NOT_LAST;
  if (isRecallOver(place, scope)) return undefined;
  const options = step.setState ? { ...plain, state: stateUpdate(step, scope, place.key, step.setState) } : plain;
  return scope.run.journal.step(
    place.key,
    place.number,
    (store) => {
      const ready = scope.goLive();
      return ready ? ready.then(() => begin(step, scope, place, store)) : begin(step, scope, place, store);
    },
    options,
  );
}

function begin(
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  store: StoreRecord,
): MaybePromise<StepRecord | undefined> {
  if (place.number === 1 && scope.run.ports.emit) emitStart(step, place.key, scope);
  return runAttempt(step, scope, place, store);
}

function afterAttempt(
  record: StepRecord | undefined,
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  router: NameSlot | undefined,
): MaybePromise<boolean> {
  if (record?.retryAt === undefined) return noteResult(record, step, scope, router, place);
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
    if (place.made) emitRetry(record, record.retryAt, scope);
    if (!(await waitUntil(record.retryAt, first.key, scope))) return false;
    const { startedAt, attempts: number } = record;
    // Begun in another process, perhaps: then wall time is all that is known of how long it took so far.
    const monotonic = first.made ? first.monotonic : monotonicOf(startedAt, record.retryAt, scope);
    place = { ...first, startedAt, monotonic, number: number + 1, made: false, bytes: 0 };
    record = await attempt(step, scope, place);
  }
  return noteResult(record, step, scope, router, place);
}

/** The monotonic instant of a wall instant, seen from the end of a wait: a clock that was set back makes no wait shorter. */
function monotonicOf(instant: number, waitedUntil: number, { run }: RunScope): number {
  const { clock } = run.ports;
  return clock.monotonic() - Math.max(0, Math.max(waitedUntil, clock.now()) - instant);
}

function noteResult(
  record: StepRecord | undefined,
  step: CompiledAgentStep,
  scope: RunScope,
  router: NameSlot | undefined,
  { made, bytes }: AttemptPlace,
): boolean {
  if (!record) return false;
  scope.lastCommitAt = record.startedAt + record.duration;
  scope.put(step.slot.slot, record, made ? bytes : sizeOfJson(record.output));
  scope.lastOutput = record.output;
  // What is large took long to store.
  if (bytes >= LARGE_BYTES) scope.run.turns.look();
  if (step.takesPrompt) scope.takePrompt();
  if (record.error && !step.continueOnError) {
    scope.fail({ slots: router ? [step.slot, router] : [step.slot], error: record.error });
  }
  if (made) emitResult(record, scope);
  return true;
}

/** In a part that is over: whether the attempt was not stored by then. */
function isRecallOver({ key, number }: AttemptPlace, scope: RunScope): boolean {
  const { recall } = scope.halt;
  if (recall === undefined || (scope.run.journal.recalled(key)?.attempts ?? 0) >= number) return false;
  recall.root.stop('abandoned');
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
        const value = boundNote({ ...scope.state, ...changes }, 'the state of the ensemble, changed by `setState`,');
        return { record, value };
      } catch (thrown) {
        const { code, message } = toFailure(thrown, scope.run.ports.mask);
        return { record: { ...record, status: 'failed', output: null, error: { code, message, agent: step.name } } };
      } finally {
        scope.results[step.slot.slot] = before;
        scope.state = state;
      }
    },
    stored(value) {
      scope.run.ports.emit?.('state.updated', { executionId: scope.run.accepted.id, state: value });
    },
  };
}

function emitStart(step: CompiledAgentStep, key: string, scope: RunScope): void {
  scope.run.ports.emit?.('agent.started', { executionId: scope.run.accepted.id, agent: step.name, key });
}

function emitResult(record: StepRecord, scope: RunScope): void {
  const { emit } = scope.run.ports;
  if (!emit) return;
  const executionId = scope.run.accepted.id;
  const { key, name: agent, output, duration, attempts, error } = record;
  if (error)
    emit('agent.failed', {
      executionId,
      agent,
      key,
      error: { code: error.code, message: error.message },
      attempts,
      duration,
    });
  else emit('agent.completed', { executionId, agent, key, output, duration });
}

function emitRetry(record: StepRecord, retryAt: number, scope: RunScope): void {
  const error = { code: record.error?.code ?? 'AGENT_FAILED', message: record.error?.message ?? '' };
  const executionId = scope.run.accepted.id;
  scope.run.ports.emit?.('agent.retrying', {
    executionId,
    agent: record.name,
    key: record.key,
    error,
    attempt: record.attempts,
    retryAt,
  });
}
