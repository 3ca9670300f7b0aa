/** Runs one agent at one step, attempt after attempt, over the journal. */

import type { CompiledAgentStep } from '../definition/compiled-ensemble.ts';
import type { NameSlot } from '../definition/names.ts';
import type { Json, JsonObject } from '../json.ts';
import type { StepRecord } from '../model/stored-execution.ts';
import type { StateUpdate, StepOptions } from '../ports/journal.ts';
import type { MaybePromise } from '../ports/operation.ts';
import { type AttemptPlace, isPromise, runAttempt } from './attempt.ts';
import { toFailure } from './failure.ts';
import type { RunScope } from './run.ts';

const LAST: StepOptions = Object.freeze({ last: true });
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
  const place: AttemptPlace = { key, number: 1, startedAt: clock.now(), monotonic: clock.monotonic() };
  run.ports.emit?.('agent.started', { executionId: run.accepted.id, agent: step.name, key });
  const stepped = attempt(step, scope, place);
  if (isPromise(stepped)) return stepped.then((record) => afterAttempt(record, step, scope, place, router));
  return afterAttempt(stepped, step, scope, place, router);
}

function attempt(step: CompiledAgentStep, scope: RunScope, place: AttemptPlace): MaybePromise<StepRecord | undefined> {
  const plain = step.last ? LAST : NOT_LAST;
  const options = step.setState ? { ...plain, state: stateUpdate(step, scope, place.key, step.setState) } : plain;
  return scope.run.journal.step(place.key, place.number, (store) => runAttempt(step, scope, place, store), options);
}

function afterAttempt(
  record: StepRecord | undefined,
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  router: NameSlot | undefined,
): MaybePromise<boolean> {
  if (record?.retryAt === undefined) return noteResult(record, step, scope, router);
  return retry(record, step, scope, place).then((last) => noteResult(last, step, scope, router));
}

async function retry(
  failed: StepRecord,
  step: CompiledAgentStep,
  scope: RunScope,
  first: AttemptPlace,
): Promise<StepRecord | undefined> {
  let record: StepRecord | undefined = failed;
  while (record?.retryAt !== undefined) {
    emitRetry(record, record.retryAt, scope);
    if (!(await waitUntil(record.retryAt, first.key, scope))) return undefined;
    record = await attempt(step, scope, { ...first, startedAt: record.startedAt, number: record.attempts + 1 });
  }
  return record;
}

function noteResult(
  record: StepRecord | undefined,
  step: CompiledAgentStep,
  scope: RunScope,
  router: NameSlot | undefined,
): boolean {
  if (!record) return false;
  scope.run.lastCommitAt = record.startedAt + record.duration;
  scope.results[step.slot.slot] = record;
  scope.lastOutput = record.output;
  if (step.takesPrompt) scope.takePrompt();
  if (record.error && !step.continueOnError) scope.fail({ slot: step.slot, router, error: record.error });
  emitResult(record, scope);
  return true;
}

/** @returns false when the run was stopped meanwhile */
async function waitUntil(instant: number, key: string, scope: RunScope): Promise<boolean> {
  const stopped = new AbortController();
  const forget = scope.halt.onStop(() => stopped.abort());
  try {
    await scope.run.journal.sleepUntil(key, instant, stopped.signal);
  } catch (thrown) {
    if (!stopped.signal.aborted) throw thrown;
  } finally {
    forget();
  }
  return scope.halt.reason === undefined;
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
        return { record, value: { ...scope.state, ...changes } };
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

function emitResult(record: StepRecord, scope: RunScope): void {
  const { emit } = scope.run.ports;
  if (!emit) return;
  const executionId = scope.run.accepted.id;
  const { name: agent, output, duration, attempts, error } = record;
  if (error)
    emit('agent.failed', {
      executionId,
      agent,
      error: { code: error.code, message: error.message },
      attempts,
      duration,
    });
  else emit('agent.completed', { executionId, agent, output, duration });
}

function emitRetry(record: StepRecord, retryAt: number, scope: RunScope): void {
  const error = { code: record.error?.code ?? 'AGENT_FAILED', message: record.error?.message ?? '' };
  const executionId = scope.run.accepted.id;
  scope.run.ports.emit?.('agent.retrying', {
    executionId,
    agent: record.name,
    error,
    attempt: record.attempts,
    retryAt,
  });
}
