/** One attempt of one agent: evaluates what it is handed, runs the operation, and makes the record of how it came out. */

import type { CompiledAgentStep } from '../definition/compiled-ensemble.ts';
import { OrchestratorError } from '../errors.ts';
import { copySized, JsonError } from '../json.ts';
import type { ExecutionError } from '../model/execution.ts';
import type { StepRecord } from '../model/stored-execution.ts';
import type { StoreRecord } from '../ports/journal.ts';
import type { MaybePromise } from '../ports/operation.ts';
import { AttemptContext } from './attempt-context.ts';
import { type Failure, toFailure } from './failure.ts';
import type { RunScope } from './run-scope.ts';

/** Which attempt it is, and when the first one began. */
export interface AttemptPlace {
  readonly key: string;
  /** Counted from 1. */
  readonly number: number;
  /** Whether the attempt was made now; otherwise its record is recalled, and nobody is told of it again. */
  made: boolean;
  /** What its output counts, when it was made now. */
  bytes: number;
  /** Unix ms. */
  readonly startedAt: number;
  readonly monotonic: number;
}

/**
 * Runs one attempt and stores how it came out. Answers at once when operation and store do.
 *
 * @returns undefined when it failed after the run was stopped: there is nothing to store then
 */
export function runAttempt(
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  store: StoreRecord,
): MaybePromise<StepRecord | undefined> {
  // A run that was taken up again may have to stop just where it becomes live.
  if (scope.halt.reason !== undefined) return undefined;
  place.made = true;
  let context: AttemptContext;
  try {
    context = new AttemptContext(step, scope, place.key, place.number);
  } catch (thrown) {
    return store(failed(step, scope, place, thrown));
  }
  return begin(context, step, scope, place, store);
}

/** The effect: begun once nobody else can have continued with the run, which is asked right before it and nowhere else. */
function begin(
  context: AttemptContext,
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  store: StoreRecord,
): MaybePromise<StepRecord | undefined> {
  const doubt = scope.run.journal.confirm();
  if (doubt !== undefined)
    return doubt.then(() => (scope.halt.reason === undefined ? begin(context, step, scope, place, store) : undefined));
  let given: unknown;
  try {
    given = step.operation.run(context);
  } catch (thrown) {
    return store(failed(step, scope, place, thrown));
  }
  if (!isPromise(given)) {
    context.release();
    return store(completed(step, scope, place, given));
  }
  if (step.timeoutMs === undefined) return settle(given, context, step, scope, place, store);
  const settled = settle(given, context, step, scope, place, (record) => record);
  return inTime(settled, step.timeoutMs, context, step, scope, place).then(store);
}

function settle(
  pending: PromiseLike<unknown>,
  context: AttemptContext,
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  store: StoreRecord,
): Promise<StepRecord | undefined> {
  return Promise.resolve(pending).then(
    (value) => {
      context.release();
      return store(completed(step, scope, place, value));
    },
    (thrown) => {
      context.release();
      return store(failed(step, scope, place, thrown));
    },
  );
}

// What comes after the timeout is nobody's any more.
function inTime(
  settled: Promise<StepRecord | undefined>,
  timeoutMs: number,
  context: AttemptContext,
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
): Promise<StepRecord | undefined> {
  return new Promise((resolve, reject) => {
    const cancelTimer = scope.run.ports.clock.setTimer(timeoutMs, () => {
      const error = new OrchestratorError('TIMEOUT', `agent \`${step.name}\` took longer than ${timeoutMs} ms`, {
        retryable: true,
      });
      context.abort(error);
      resolve(failed(step, scope, place, error));
    });
    settled.then((record) => {
      cancelTimer();
      resolve(record);
    }, reject);
  });
}

function completed(
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  value: unknown,
): StepRecord | undefined {
  if (scope.halt.closed) return undefined;
  try {
    const { value: output, bytes } = copySized(value);
    place.bytes = bytes;
    return {
      key: place.key,
      name: step.name,
      status: 'completed',
      attempts: place.number,
      startedAt: place.startedAt,
      duration: elapsed(scope, place),
      output,
    };
  } catch (thrown) {
    if (!(thrown instanceof JsonError)) return failed(step, scope, place, thrown);
    const { path, message } = thrown.problem;
    const what = path ? `\`${path}\` in what agent \`${step.name}\` gave` : `what agent \`${step.name}\` gave`;
    return failed(step, scope, place, new OrchestratorError('INVALID_OUTPUT', `${what} ${message}`));
  }
}

function failed(
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  thrown: unknown,
): StepRecord | undefined {
  if (scope.halt.reason !== undefined) return undefined;
  const failure = toFailure(thrown, scope.run.ports.mask);
  const error: ExecutionError = { code: failure.code, message: failure.message, agent: step.name };
  const retryAt = nextAttempt(step, scope, place, failure);
  return {
    key: place.key,
    name: step.name,
    status: 'failed',
    attempts: place.number,
    startedAt: place.startedAt,
    duration: elapsed(scope, place),
    output: null,
    error,
    ...(retryAt === undefined ? {} : { retryAt }),
  };
}

function nextAttempt(
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  failure: Failure,
): number | undefined {
  if (!failure.retryable || place.number >= step.retry.maxAttempts) return undefined;
  return scope.run.ports.clock.now() + Math.max(step.retry.delayAfter(place.number), failure.retryAfterMs);
}

function elapsed(scope: RunScope, place: AttemptPlace): number {
  const { clock, turns } = scope.run.ports;
  turns.now = clock.monotonic();
  return Math.round(turns.now - place.monotonic);
}

export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
