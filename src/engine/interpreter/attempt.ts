/** One attempt of one agent: evaluates its input and config, runs the operation, and builds the record of the result. */

import { OrchestratorError } from '../base/errors.ts';
import { copySized, JsonError } from '../base/json.ts';
import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import type { CompiledAgentStep, CompiledReferences } from '../compiled/compiled-ensemble.ts';
import type { ExecutionError } from '../model/execution.ts';
import type { StepRecord } from '../model/stored-execution.ts';
import type { StoreRecord } from '../ports/journal.ts';
import { AttemptContext } from './attempt-context.ts';
import { fillReferences } from './fill-references.ts';
import type { AttemptPlace } from './attempt-place.ts';
import { describeThrown, type ThrownFailure, toFailure, toLoggedError } from './failure.ts';
import type { RunScope } from './run-scope.ts';

/**
 * Runs one attempt and stores its record. Returns without a promise when the operation and the store do.
 *
 * @returns undefined when it failed after the run was stopped: then nothing is stored
 */
export function runAttempt(
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  store: StoreRecord,
): MaybePromise<StepRecord | undefined> {
  // A resumed run may have to stop just where its replay ends.
  if (scope.cancellation.reason !== undefined) return undefined;
  place.made = true;
  // Before a later attempt there is a pause, and the process may have died in it.
  if (place.number === 1 && scope.run.journal.mayRepeat) place.cutOff = 1;
  const isRouted = step.takesPrompt && scope.findPrompt()?.isReference;
  const references = isRouted ? step.routed : step.references;
  return references ? fill(step, references, scope, place, store) : make(step, scope, place, store);
}

function fill(
  step: CompiledAgentStep,
  references: CompiledReferences,
  scope: RunScope,
  place: AttemptPlace,
  store: StoreRecord,
): MaybePromise<StepRecord | undefined> {
  const fail = (thrown: unknown) => store(failed(step, scope, place, thrown));
  let filled: MaybePromise<CompiledAgentStep>;
  try {
    filled = fillReferences(step, references, scope, place);
  } catch (thrown) {
    return fail(thrown);
  }
  const next = (ready: CompiledAgentStep) =>
    scope.cancellation.reason === undefined ? make(ready, scope, place, store) : undefined;
  return isPromise(filled) ? filled.then(next, fail) : next(filled);
}

function make(
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  store: StoreRecord,
): MaybePromise<StepRecord | undefined> {
  let context: AttemptContext;
  try {
    context = new AttemptContext(step, scope, place);
  } catch (thrown) {
    return store(failed(step, scope, place, thrown));
  }
  return begin(context, step, scope, place, store);
}

/** Runs the operation. Right before that, and nowhere else, it checks that no other worker can have resumed the run. */
function begin(
  context: AttemptContext,
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  store: StoreRecord,
): MaybePromise<StepRecord | undefined> {
  const lease = scope.run.journal.waitForLease();
  if (lease !== undefined)
    return lease.then(() =>
      scope.cancellation.reason === undefined ? begin(context, step, scope, place, store) : undefined,
    );
  let result: unknown;
  try {
    result = step.operation.run(context);
  } catch (thrown) {
    return store(failed(step, scope, place, thrown, keptOf(thrown, scope)));
  }
  if (!isPromise(result)) {
    context.release();
    return store(completed(step, scope, place, result));
  }
  if (step.timeoutMs === undefined) return settle(result, context, step, scope, place, store);
  const settled = settle(result, context, step, scope, place, (record) => record);
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
      return context.isAborted ? undefined : store(completed(step, scope, place, value));
    },
    (thrown) => {
      context.release();
      if (context.isAborted) return undefined;
      return store(failed(step, scope, place, thrown, keptOf(thrown, scope)));
    },
  );
}

// A result after the timeout is dropped, and a failure too: a script may reject because its signal aborted.
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
  if (scope.cancellation.closed) return undefined;
  try {
    const { value: output, bytes } = copySized(value);
    place.bytes = bytes;
    return {
      key: place.key,
      name: step.name,
      status: 'completed',
      attempts: place.number + place.cutOff,
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

/** @param kept - the stack and the cause of what the operation threw, for the record */
function failed(
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  thrown: unknown,
  kept?: KeptOfThrown,
): StepRecord | undefined {
  if (scope.cancellation.reason !== undefined) return undefined;
  const failure = toFailure(thrown, scope.run.ports.mask);
  const retryAt = nextAttempt(step, scope, place, failure);
  const error = { ...failure.error, agent: step.name, ...kept };
  logFailure(error, thrown, scope, place, retryAt);
  return {
    key: place.key,
    name: step.name,
    status: 'failed',
    // The number of a failed attempt says which attempt is next.
    attempts: retryAt === undefined ? place.number + place.cutOff : place.number,
    startedAt: place.startedAt,
    duration: elapsed(scope, place),
    output: null,
    error,
    ...(retryAt === undefined ? {} : { retryAt }),
  };
}

type KeptOfThrown = Pick<ExecutionError, 'stack' | 'cause'>;

/** What the option `errors` adds to the error of an attempt. */
function keptOf(thrown: unknown, { run }: RunScope): KeptOfThrown | undefined {
  if (!run.ports.keepsStacks) return undefined;
  const { stack, cause } = describeThrown(thrown, run.ports.mask);
  return { ...(stack !== undefined && { stack }), ...(cause && { cause }) };
}

function logFailure(
  { code, agent, details }: ExecutionError,
  thrown: unknown,
  { run }: RunScope,
  { key, number: attempt }: AttemptPlace,
  retryAt: number | undefined,
): void {
  const { logger, mask } = run.ports;
  if (!logger) return;
  const about = { ...run.logged, agent, attempt, key, retryAt, code, details };
  logger.warn({ ...about, err: toLoggedError(describeThrown(thrown, mask)) }, 'attempt failed');
}

function nextAttempt(
  step: CompiledAgentStep,
  scope: RunScope,
  place: AttemptPlace,
  failure: ThrownFailure,
): number | undefined {
  if (!failure.retryable || place.number >= step.retry.maxAttempts) return undefined;
  return scope.run.ports.clock.now() + Math.max(delayOf(step, scope, place), failure.retryAfterMs);
}

// Derived from the execution's seed like every random value, so that each worker gets the same wait.
function delayOf({ retry }: CompiledAgentStep, scope: RunScope, { key, number }: AttemptPlace): number {
  const delay = retry.delayAfter(number);
  return retry.jitter === 0
    ? delay
    : Math.round(delay * (1 - retry.jitter * scope.begin(key, `retry ${number}`).random()));
}

function elapsed(scope: RunScope, place: AttemptPlace): number {
  const { clock, turns } = scope.run.ports;
  turns.now = clock.monotonic();
  return Math.round(turns.now - place.monotonic);
}
