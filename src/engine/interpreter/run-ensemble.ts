/** Runs a compiled ensemble over a journal to an outcome. A failure of an agent is a value, never an exception. */

import { isOrchestratorError, OrchestratorError } from '../base/errors.ts';
import { copySized, formatPath, type Json, JsonError, MAX_VALUE_BYTES } from '../base/json/json.ts';
import { andThen, isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import type { CompiledEnsemble } from '../compiled/compiled-ensemble.ts';
import { METRICS } from '../events/measurement.ts';
import type { ExecutionError } from '../execution/execution.ts';
import type { ExecutionOutcome, InterpretedRun, RunOptions } from '../execution/execution-engine.port.ts';
import { type Journal, JournalLostError } from '../execution/journal.port.ts';
import type { NewExecution } from '../execution/stored-execution.ts';
import { NO_LINE } from '../host/logger.port.ts';
import type { RunSpan, Tracing } from '../host/telemetry.port.ts';
import {
  CANCELLATION_GRACE_MS,
  CancellationScope,
  cancellationError,
  isAtOnce,
  isLimit,
} from './cancellation-scope.ts';
import { NO_GUARDS } from './enter-step.ts';
import { toFailure } from './failure.ts';
import { takeSnapshot } from './guards.ts';
import { markResumed } from './marks.ts';
import { Run, type RunCall, type RunPorts } from './run.ts';
import { runList } from './run-list.ts';
import { RunScope } from './run-scope.ts';

/** Checks the outputs of a run against the ensemble's output schema. @returns the problem, or undefined */
export type OutputCheck = (output: Json) => Promise<string | undefined>;

/**
 * Runs an accepted execution.
 *
 * @param options - whether the execution is resumed, and whether its cancellation was requested
 * @param checkOutput - called with the outputs of a run that completed
 */
export function runEnsemble(
  compiled: CompiledEnsemble,
  accepted: NewExecution,
  journal: Journal,
  ports: RunPorts,
  options: RunOptions,
  checkOutput: OutputCheck | undefined,
): InterpretedRun {
  const {
    resumed,
    recoveries = 0,
    cancelled,
    isLate = false,
    signal,
    reached = Number.NEGATIVE_INFINITY,
    worker,
  } = options;
  const fold = options.handover?.fold;
  const cancellation = new CancellationScope();
  const run = new Run(compiled, accepted, journal, ports, cancellation, runCall, worker);
  if (ports.tracing) run.span = beginSpan(ports.tracing, accepted, options);
  const scope = new RunScope(run, undefined, compiled.slots, cancellation);
  if (!resumed && !isLate) reportStart(run);
  if (recoveries > 0) markResumed(recoveries, run);
  // The parent of a child has the same deadline, and cancels it at that instant: what came first is the deadline.
  const cancel = () => cancellation.stop(isOverdue(accepted, ports) ? 'timed_out' : 'cancelled');
  let cancelTimer: (() => void) | undefined;
  let stopListening: (() => void) | undefined;
  let ended = false;
  let settle: (outcome: MaybePromise<ExecutionOutcome>) => void = () => {};
  const outcome = new Promise<ExecutionOutcome>((resolve) => {
    settle = resolve;
  });
  const forgetTriggers = () => {
    ended = true;
    cancelTimer?.();
    stopListening?.();
  };
  const end = (crash?: ExecutionError) => {
    if (ended) return;
    forgetTriggers();
    settle(concludeRun(scope, crash, checkOutput));
  };
  const abandon = (cause?: unknown) => {
    if (!ended) settle({ status: 'lost', output: null, cause });
    forgetTriggers();
    run.exit.stop('abandoned');
    cancellation.stop('abandoned');
  };
  // A step that ignores its abort signal does not delay the end; its later result is dropped.
  cancellation.onStop((reason) => {
    if (ended) return;
    cancelTimer?.();
    // Blocks have their own grace periods, and put their results together: the walk ends after them.
    if (run.blocks > 0) return;
    if (isAtOnce(reason)) end();
    else cancelTimer = ports.clock.setTimer(CANCELLATION_GRACE_MS, end);
  });
  // The stored records are replayed first, so that the outputs of a run that is stopped then include them.
  const endReplay = () => {
    if (ended) return;
    if (fold) run.countTo(fold.steps);
    if (isLate || cancelled) run.whyEnded = whyNotBegun(run, options);
    if (isLate) cancellation.stop('timed_out');
    else if (cancelled || signal?.aborted) cancel();
    else if (accepted.deadlineAt !== undefined) cancelTimer = armDeadline(accepted.deadlineAt, reached, run);
  };
  journal.onReplayEnd(() => {
    run.endReplay();
    run.whenReplayed(endReplay);
  });
  stopListening = signal?.onAbort(cancel);
  runList(compiled.flow, scope, NO_GUARDS).then(
    () => end(),
    (thrown) => {
      if (thrown instanceof JournalLostError) {
        abandon(thrown.cause);
        return;
      }
      end(crashOf(thrown, scope));
      run.exit.stop('abandoned');
      cancellation.stop('abandoned');
    },
  );
  const stop: InterpretedRun['stop'] = (reason, atOnce = false) => {
    if (atOnce) run.exit.stop('abandoned');
    if (reason === 'paused') run.pauses = true;
    else if (reason === 'cancelled') cancel();
    else cancellation.stop(reason);
    if (atOnce) end();
  };
  const { span } = run;
  if (!span) return { outcome, stop, abandon: () => abandon() };
  outcome.then(({ status, output, error }) => span.end({ status: status === 'lost' ? 'left' : status, output, error }));
  return { outcome, stop, abandon: () => abandon(), trace: span.trace };
}

function beginSpan(
  tracing: Pick<Tracing, 'run'>,
  { id: executionId, ensemble, trigger, input }: NewExecution,
  { worker, handover, resumedAt = 0, recoveries = 0 }: RunOptions,
): RunSpan | undefined {
  const { suspendedAt = resumedAt, trace: previous } = handover ?? {};
  const waited = Math.max(0, resumedAt - suspendedAt);
  return tracing.run({ executionId, ensemble, trigger, worker, input, previous, waited, recoveries });
}

function isOverdue({ deadlineAt = Infinity }: NewExecution, { clock }: RunPorts): boolean {
  return clock.now() >= deadlineAt;
}

function reportStart(run: Run): void {
  const { accepted, ports, logged } = run;
  const { id, input, trigger, ensemble, createdAt } = accepted;
  ports.measure?.(METRICS.queueWait, [ensemble], Math.max(0, ports.clock.now() - createdAt) / 1000);
  if (ports.logger && ports.logger.info !== NO_LINE)
    ports.logger.info({ ...logged, parentId: trigger.parentId, trigger: trigger.type }, 'execution started');
  run.emit?.('execution.started', { id, input });
}

function armDeadline(deadlineAt: number, reached: number, run: Run): (() => void) | undefined {
  const { clock } = run.ports;
  // A wall clock that was set back must not postpone a deadline that was waited for.
  const left = deadlineAt - Math.max(clock.now(), reached);
  // No timer fires while a flow does not yield to the event loop: its steps check the deadline themselves.
  run.deadline = clock.monotonic() + left;
  if (left > 0) return clock.setTimer(left, () => run.cancellation.stop('timed_out'));
  run.cancellation.stop('timed_out');
  return undefined;
}

function concludeRun(
  scope: RunScope,
  crash: ExecutionError | undefined,
  checkOutput: OutputCheck | undefined,
): MaybePromise<ExecutionOutcome> {
  const broken = (thrown: unknown): ExecutionOutcome => {
    if (thrown instanceof JournalLostError) return { status: 'lost', output: null, cause: thrown.cause };
    return { status: 'failed', output: null, error: crashOf(thrown, scope) };
  };
  try {
    const computed = computeOutput(scope);
    if (!isPromise(computed)) return judge(scope, crash, computed, checkOutput);
    return computed.then((output) => judge(scope, crash, output, checkOutput)).catch(broken);
  } catch (thrown) {
    return broken(thrown);
  }
}

/** The outcome of a run. Outputs are computed for failed runs too; then a problem in them is not the run's error. */
function judge(
  scope: RunScope,
  crash: ExecutionError | undefined,
  output: ComputedOutput,
  checkOutput: OutputCheck | undefined,
): MaybePromise<ExecutionOutcome> {
  const { reason } = scope.cancellation;
  if (reason === 'timed_out' || reason === 'cancelled') {
    const { code, message } = cancellationError(reason);
    const why = scope.run.whyEnded ?? (reason === 'timed_out' ? whoseTimeout(scope.run) : '');
    return { status: reason, output: output.value, error: { code, message: message + why } };
  }
  const limit = isLimit(reason) ? cancellationError(reason) : undefined;
  const error =
    crash ?? (limit && { code: limit.code, message: limit.message }) ?? scope.failures?.[0]?.error ?? output.error;
  if (error) return { status: 'failed', output: output.value, error };
  if (!checkOutput) return { status: 'completed', output: output.value };
  return checkOutput(output.value).then((problem) => {
    if (problem === undefined) return { status: 'completed', output: output.value };
    return {
      status: 'failed',
      output: output.value,
      error: { code: 'INVALID_OUTPUT', message: scope.run.ports.mask(problem) },
    };
  });
}

/** Says why an execution is ended before it begins, as far as it is known here. */
function whyNotBegun({ accepted, compiled }: Run, { isLate, cancelled, resumed }: RunOptions): string | undefined {
  if (isLate)
    return `: it had not begun ${compiled.startWithinMs} ms after its start (\`startWithin\` or \`queueTtl\`)`;
  // The cancellation of a child may come from its parent. What is cancelled by itself before it begins has no run.
  const over = accepted.limits?.find((limit) => limit.over)?.over;
  const isTooMany = cancelled && !resumed && over !== undefined && accepted.trigger.parentId === undefined;
  return isTooMany ? `: other executions took its place (\`over: ${over}\`)` : undefined;
}

/** Says which time limit applied: the ensemble's own, or the one from the caller or the parent. */
function whoseTimeout({ accepted, compiled }: Run): string {
  const { createdAt, deadlineAt, trigger } = accepted;
  if (deadlineAt === undefined) return '';
  const ms = deadlineAt - createdAt;
  if (ms === compiled.timeoutMs) return `: \`timeout\` of ensemble \`${compiled.name}\` is ${ms} ms`;
  return `: its ${trigger.parentId === undefined ? 'caller' : 'parent'} gave it ${ms} ms`;
}

// A value that can't be stored is the ensemble's error. An error of the interpreter itself is only logged.
function crashOf(thrown: unknown, scope: RunScope): ExecutionError {
  const { ports, logged } = scope.run;
  if (isOrchestratorError(thrown, 'INVALID_OUTPUT')) return toFailure(thrown, ports.mask).error;
  ports.logger?.error({ ...logged, err: thrown }, 'an execution ended on an internal error');
  return { code: 'INTERNAL', message: 'an internal error ended the execution; the log has the cause' };
}

const runCall: RunCall = async ({ callee, input, keyPrefix, cancellation, caller }) => {
  const { accepted, compiled, journal, ports, worker } = caller;
  const run = new Run(compiled, { ...accepted, input }, journal, ports, cancellation, runCall, worker);
  run.span = caller.span;
  const scope = new RunScope(run, undefined, callee.slots, cancellation, keyPrefix);
  const forgetExit = caller.exit.onStop((reason) => run.exit.stop(reason));
  // The caller is at work while the agent waits for a retry, so the run is not suspended.
  journal.branches(1);
  try {
    await runList(callee.flow, scope, NO_GUARDS);
  } finally {
    journal.branches(-1);
    forgetExit();
  }
  return scope.results[0];
};

interface ComputedOutput {
  readonly value: Json;
  /** The problem of the first output that can't be computed. Such an output is null. */
  readonly error?: ExecutionError;
}

function computeOutput(scope: RunScope): MaybePromise<ComputedOutput> {
  const hasState = scope.run.compiled.initialState !== undefined;
  return hasState ? andThen(takeSnapshot(scope), () => compute(scope)) : compute(scope);
}

function compute(scope: RunScope): ComputedOutput {
  let bytes = 0;
  let error: ExecutionError | undefined;
  const take = (name: string, evaluate: () => Json): Json => {
    try {
      const sized = copySized(evaluate());
      if (bytes + sized.bytes > MAX_VALUE_BYTES) throw tooLargeOutput();
      bytes += sized.bytes;
      return sized.value;
    } catch (thrown) {
      error ??= problemOf(name, thrown, scope);
      return null;
    }
  };
  const value = scope.run.compiled.output(scope, take);
  return error ? { value, error } : { value };
}

function tooLargeOutput(): OrchestratorError {
  return new OrchestratorError(
    'INVALID_OUTPUT',
    'makes the outputs larger than 4 MiB together; store large values and give their keys',
  );
}

function problemOf(name: string, thrown: unknown, scope: RunScope): ExecutionError {
  const place = name === '' ? ['outputs'] : ['outputs', name];
  if (thrown instanceof JsonError) {
    const { path, message } = thrown.problem;
    const at = path ? ` (at ${path})` : '';
    return { code: 'INVALID_OUTPUT', message: `${formatPath(place)}: ${message}${at}` };
  }
  const { error } = toFailure(thrown, scope.run.ports.mask);
  return { ...error, message: `${formatPath(place)}: ${error.message}` };
}
