/** Computes the outputs of a run, also of a run that failed. A problem in one output does not affect the others. */

import { OrchestratorError } from '../base/errors.ts';
import { copySized, formatPath, type Json, JsonError, MAX_VALUE_BYTES } from '../base/json/json.ts';
import { andThen, type MaybePromise } from '../base/maybe-promise.ts';
import type { ExecutionError } from '../execution/execution.ts';
import { toFailure } from './failure.ts';
import { takeSnapshot } from './guards.ts';
import type { RunScope } from './run-scope.ts';

export interface ComputedOutput {
  readonly value: Json;
  /** The problem of the first output that can't be computed. Such an output is null. */
  readonly error?: ExecutionError;
}

export function computeOutput(scope: RunScope): MaybePromise<ComputedOutput> {
  const hasState = scope.run.compiled.initialState !== undefined;
  return hasState ? andThen(takeSnapshot(scope), () => compute(scope)) : compute(scope);
}

function compute(scope: RunScope): ComputedOutput {
  let bytes = 0;
  let error: ExecutionError | undefined;
  const take = (name: string, evaluate: () => Json): Json => {
    try {
      const sized = copySized(evaluate());
      if (bytes + sized.bytes > MAX_VALUE_BYTES) throw tooLarge();
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

function tooLarge(): OrchestratorError {
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
