/** Runs one agent at one step, attempt after attempt, over the journal. */

import type { CompiledAgentStep } from '../definition/compiled-ensemble.ts';
import type { NameResult } from '../definition/scope.ts';
import type { Json, JsonObject } from '../json.ts';
import type { StepRecord } from '../model/stored-execution.ts';
import type { StateUpdate } from '../ports/journal.ts';
import type { MaybePromise } from '../ports/operation.ts';
import { type AttemptResult, failed, isPromise, runAttempt } from './attempt.ts';
import type { RunScope } from './run.ts';

/**
 * Runs the agent to its result. Its condition was looked at already.
 *
 * @returns undefined when the run was stopped before there was a result
 */
export async function runAgent(step: CompiledAgentStep, scope: RunScope): Promise<NameResult | undefined> {
  const { run } = scope;
  const { clock, emit } = run.ports;
  const key = scope.keyPrefix === '' ? step.key : scope.keyPrefix + step.key;
  const begun: Begun = { startedAt: clock.now(), monotonic: clock.monotonic() };
  const options = { last: step.last, state: step.setState && stateUpdate(step, scope, key, step.setState) };
  emit?.('agent.started', { executionId: run.accepted.id, agent: step.name, key });

  for (let attempt = 1; ; ) {
    const number = attempt;
    const stepped = run.journal.step(key, number, () => recordAttempt(step, scope, key, number, begun), options);
    const record = isPromise(stepped) ? await stepped : stepped;
    if (!record) return undefined;
    run.lastCommitAt = record.startedAt + record.duration;
    if (record.retryAt === undefined) {
      emitResult(record, scope);
      return record;
    }
    emitRetry(record, record.retryAt, scope);
    if (!(await waitUntil(record.retryAt, key, scope))) return undefined;
    attempt = record.attempts + 1;
  }
}

interface Begun {
  readonly startedAt: number;
  readonly monotonic: number;
}

function recordAttempt(
  step: CompiledAgentStep,
  scope: RunScope,
  key: string,
  attempt: number,
  begun: Begun,
): MaybePromise<StepRecord | undefined> {
  const result = runAttempt(step, scope, key, attempt);
  if (result instanceof Promise) return result.then((settled) => toRecord(settled, step, scope, key, attempt, begun));
  return toRecord(result, step, scope, key, attempt, begun);
}

function toRecord(
  result: AttemptResult,
  step: CompiledAgentStep,
  scope: RunScope,
  key: string,
  attempts: number,
  begun: Begun,
): StepRecord | undefined {
  if (result.kind === 'halted') return undefined;
  const { clock } = scope.run.ports;
  const duration = Math.round(clock.monotonic() - begun.monotonic);
  const { name } = step;
  const { startedAt } = begun;
  if (result.kind === 'completed') return { key, name, status: 'completed', attempts, startedAt, duration, output: result.output };
  const record = { key, name, status: 'failed' as const, attempts, startedAt, duration, output: null, error: result.error };
  if (!result.retryable || attempts >= step.retry.maxAttempts || scope.halt.reason !== undefined) return record;
  return { ...record, retryAt: clock.now() + Math.max(step.retry.delayAfter(attempts), result.retryAfterMs) };
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

function stateUpdate(step: CompiledAgentStep, scope: RunScope, key: string, setState: (scope: RunScope) => Json): StateUpdate {
  return {
    next(current, record) {
      if (record.status !== 'completed') return { record };
      const before = scope.results[step.slot.slot];
      const state = scope.state;
      try {
        // The expressions read the newest state and the agent's own output.
        scope.results[step.slot.slot] = record;
        scope.state = current ?? (scope.run.compiled.initialState as JsonObject);
        const changes = setState(scope.begin(`${key}|setState`)) as JsonObject;
        return { record, value: { ...scope.state, ...changes } };
      } catch (thrown) {
        const result = failed(step, scope, thrown);
        return { record: { ...record, status: 'failed', output: null, ...(result.kind === 'failed' ? { error: result.error } : {}) } };
      } finally {
        scope.results[step.slot.slot] = before;
        scope.state = state;
      }
    },
  };
}

function emitResult(record: StepRecord, scope: RunScope): void {
  const { emit } = scope.run.ports;
  if (!emit) return;
  const executionId = scope.run.accepted.id;
  const { name: agent, output, duration, attempts, error } = record;
  if (error) emit('agent.failed', { executionId, agent, error: { code: error.code, message: error.message }, attempts, duration });
  else emit('agent.completed', { executionId, agent, output, duration });
}

function emitRetry(record: StepRecord, retryAt: number, scope: RunScope): void {
  const error = { code: record.error?.code ?? 'AGENT_FAILED', message: record.error?.message ?? '' };
  const executionId = scope.run.accepted.id;
  scope.run.ports.emit?.('agent.retrying', { executionId, agent: record.name, error, attempt: record.attempts, retryAt });
}
