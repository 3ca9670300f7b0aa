/** Compiled ensemble, input and journal to an outcome: an agent's failure is a value, never a throw. */

import type { CompiledEnsemble } from '../definition/compiled-ensemble.ts';
import { OrchestratorError } from '../errors.ts';
import { copyJson, type Json } from '../json.ts';
import type { ExecutionError } from '../model/execution.ts';
import type { NewExecution } from '../model/stored-execution.ts';
import type { ExecutionOutcome, InterpretedRun } from '../ports/execution-engine.ts';
import type { Journal } from '../ports/journal.ts';
import { failed, haltError } from './attempt.ts';
import { Halt } from './halt.ts';
import { createRun, type RunPorts, RunScope } from './run.ts';
import { afterSnapshot } from './level.ts';
import { runList } from './run-list.ts';

/** Checks what a run gives, if the ensemble has an output schema; a returned text says what is wrong. */
export type OutputCheck = (output: Json) => string | undefined | Promise<string | undefined>;

/** Runs an accepted execution. @param checkOutput - reads the outputs of a run that completed */
export function runEnsemble(
  compiled: CompiledEnsemble,
  accepted: NewExecution,
  journal: Journal,
  ports: RunPorts,
  checkOutput?: OutputCheck,
): InterpretedRun {
  const halt = new Halt();
  const run = createRun(compiled, accepted, journal, ports);
  const scope = new RunScope(run, undefined, compiled.slots, halt);
  return { outcome: toOutcome(scope, checkOutput), stop: (reason) => halt.stop(reason) };
}

async function toOutcome(scope: RunScope, checkOutput: OutputCheck | undefined): Promise<ExecutionOutcome> {
  const { run, halt } = scope;
  const cancelDeadline = armDeadline(scope);
  ports(scope).emit?.('execution.started', { id: run.accepted.id, ensemble: run.accepted.ensemble, input: run.input });
  let error: ExecutionError | undefined;
  try {
    await runList(run.compiled.flow, scope, undefined);
    error = scope.failures?.[0]?.error;
  } catch (thrown) {
    error = internalError(thrown, scope);
  }
  cancelDeadline?.();
  const output = await computeOutput(scope);
  if (halt.reason === 'timed_out' || halt.reason === 'cancelled') {
    const { code, message } = haltError(halt.reason);
    return { status: halt.reason, output: output.value, error: { code, message } };
  }
  error ??= output.error;
  if (!error && checkOutput) {
    const problem = await checkOutput(output.value);
    if (problem !== undefined) error = { code: 'INVALID_OUTPUT', message: ports(scope).mask(problem) };
  }
  return error ? { status: 'failed', output: output.value, error } : { status: 'completed', output: output.value };
}

function ports(scope: RunScope): RunPorts {
  return scope.run.ports;
}

function armDeadline(scope: RunScope): (() => void) | undefined {
  const { accepted, ports: given } = scope.run;
  if (accepted.deadlineAt === undefined) return undefined;
  return given.clock.setTimer(accepted.deadlineAt - given.clock.now(), () => scope.halt.stop('timed_out'));
}

/** Outputs are computed for failed runs too; then a problem in them is not the run's error. */
async function computeOutput(scope: RunScope): Promise<{ readonly value: Json; readonly error?: ExecutionError }> {
  try {
    const compute = () => copyJson(scope.run.compiled.output(scope.begin('outputs')));
    return { value: await (scope.run.compiled.initialState === undefined ? compute() : afterSnapshot(scope, compute)) };
  } catch (thrown) {
    const result = failed({ name: '' }, scope, thrown);
    if (result.kind !== 'failed') return { value: null };
    const { code, message } = result.error;
    return { value: null, error: { code, message: `outputs: ${message}` } };
  }
}

// What the interpreter itself stumbles over, such as a store that is gone: the text stays in the log.
function internalError(thrown: unknown, scope: RunScope): ExecutionError {
  ports(scope).logger.error({ err: thrown, executionId: scope.run.accepted.id }, 'an execution ended on an internal error');
  const fixed = new OrchestratorError('INTERNAL', 'an internal error ended the execution; the log has its cause');
  return { code: fixed.code, message: fixed.message };
}
