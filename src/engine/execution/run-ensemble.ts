/** Compiled ensemble, input and journal to an outcome: an agent's failure is a value, never a throw. */

import type { CompiledEnsemble } from '../definition/compiled-ensemble.ts';
import { isOrchestratorError } from '../errors.ts';
import type { Json } from '../json.ts';
import type { ExecutionError } from '../model/execution.ts';
import type { NewExecution } from '../model/stored-execution.ts';
import type { ExecutionOutcome, InterpretedRun, RunOptions } from '../ports/execution-engine.ts';
import { type Journal, JournalLostError } from '../ports/journal.ts';
import type { MaybePromise } from '../ports/operation.ts';
import { isPromise } from './attempt.ts';
import { type ComputedOutput, computeOutput } from './compute-outputs.ts';
import { HALT_GRACE_MS, Halt, type HaltReason, haltError, isAtOnce, isLimit } from './halt.ts';
import { Run, type RunPorts } from './run.ts';
import { runList } from './run-list.ts';
import { RunScope } from './run-scope.ts';

/** Checks what a run gives, if the ensemble has an output schema; a returned text says what is wrong. */
export type OutputCheck = (output: Json) => Promise<string | undefined>;

/**
 * Runs an accepted execution.
 *
 * @param options - whether it is taken up again, and whether it is to be cancelled
 * @param checkOutput - reads the outputs of a run that completed
 */
export function runEnsemble(
  compiled: CompiledEnsemble,
  accepted: NewExecution,
  journal: Journal,
  ports: RunPorts,
  { resumed, cancelled, signal, reached = Number.NEGATIVE_INFINITY }: RunOptions,
  checkOutput: OutputCheck | undefined,
): InterpretedRun {
  const halt = new Halt();
  const scope = new RunScope(new Run(compiled, accepted, journal, ports, halt), undefined, compiled.slots, halt);
  if (!resumed)
    ports.emit?.('execution.started', { id: accepted.id, ensemble: accepted.ensemble, input: accepted.input });
  const cancel = () => halt.stop('cancelled');
  let cancelTimer: (() => void) | undefined;
  let ended = false;
  let settle: (outcome: ExecutionOutcome) => void = () => {};
  const outcome = new Promise<ExecutionOutcome>((resolve) => {
    settle = resolve;
    const end = (crash?: ExecutionError) => {
      if (ended) return;
      ended = true;
      cancelTimer?.();
      signal?.removeEventListener('abort', cancel);
      resolve(conclude(scope, crash, checkOutput));
    };
    // A step that ignores its signal does not hold up the end; what it still gives goes nowhere.
    const onHalt = (reason: HaltReason) => {
      if (ended) return;
      cancelTimer?.();
      // Blocks have graces of their own, and put together what they came to: the walk ends behind them.
      if (scope.run.blocks > 0) return;
      if (isAtOnce(reason)) end();
      else cancelTimer = ports.clock.setTimer(HALT_GRACE_MS, end);
    };
    halt.onStop(onHalt);
    // What was stored before is recalled first, so that the outputs of a run that is stopped then are computed from it.
    const goLive = () => {
      if (ended) return;
      if (cancelled || signal?.aborted) cancel();
      else if (accepted.deadlineAt !== undefined) cancelTimer = armDeadline(accepted.deadlineAt, reached, scope.run);
    };
    journal.onLive(() => {
      scope.run.goLive();
      scope.run.whenRecalled(goLive);
    });
    signal?.addEventListener('abort', cancel, { once: true });
    runList(compiled.flow, scope, undefined).then(
      () => end(),
      (thrown) => {
        if (thrown instanceof JournalLostError) {
          abandon(thrown.cause);
          return;
        }
        end(crashOf(thrown, scope));
        scope.run.givenUp.stop('abandoned');
        halt.stop('abandoned');
      },
    );
  });
  const abandon = (cause?: unknown) => {
    if (!ended) settle({ status: 'lost', output: null, cause });
    ended = true;
    cancelTimer?.();
    signal?.removeEventListener('abort', cancel);
    scope.run.givenUp.stop('abandoned');
    halt.stop('abandoned');
  };
  return { outcome, stop: (reason) => halt.stop(reason), abandon: () => abandon() };
}

function armDeadline(deadlineAt: number, reached: number, run: Run): (() => void) | undefined {
  const { clock } = run.ports;
  // A wall clock that was set back puts no deadline off that was waited for.
  const left = deadlineAt - Math.max(clock.now(), reached);
  // No timer fires while a flow leaves the event loop no turn: its steps look at the clock themselves.
  run.deadline = clock.monotonic() + left;
  if (left > 0) return clock.setTimer(left, () => run.halt.stop('timed_out'));
  run.halt.stop('timed_out');
  return undefined;
}

function conclude(
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

/** What a run came to. Outputs are computed for failed runs too; then a problem in them is not the run's error. */
function judge(
  scope: RunScope,
  crash: ExecutionError | undefined,
  output: ComputedOutput,
  checkOutput: OutputCheck | undefined,
): MaybePromise<ExecutionOutcome> {
  const { reason } = scope.halt;
  if (reason === 'timed_out' || reason === 'cancelled') {
    const { code, message } = haltError(reason);
    const why = reason === 'timed_out' ? whoseTimeout(scope.run) : '';
    return { status: reason, output: output.value, error: { code, message: message + why } };
  }
  const limit = isLimit(reason) ? haltError(reason) : undefined;
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

/** Which of the limits of time was the earliest. */
function whoseTimeout({ accepted, compiled }: Run): string {
  const { createdAt, deadlineAt, trigger } = accepted;
  if (deadlineAt === undefined) return '';
  const ms = deadlineAt - createdAt;
  if (ms === compiled.timeoutMs) return `: \`timeout\` of ensemble \`${compiled.name}\` is ${ms} ms`;
  return `: its ${trigger.parentId === undefined ? 'caller' : 'parent'} gave it ${ms} ms`;
}

// What can't be stored says so. What the interpreter itself stumbles over is a text for the log alone.
function crashOf(thrown: unknown, scope: RunScope): ExecutionError {
  if (isOrchestratorError(thrown, 'INVALID_OUTPUT'))
    return { code: thrown.code, message: scope.run.ports.mask(thrown.message) };
  scope.run.ports.logger.error(
    { err: thrown, executionId: scope.run.accepted.id },
    'an execution ended on an internal error',
  );
  return { code: 'INTERNAL', message: 'an internal error ended the execution; the log has its cause' };
}
