/** Computes what a run gives: each output by itself, for runs that failed too. */

import { OrchestratorError } from '../errors.ts';
import { copySized, formatPath, type Json, JsonError, MAX_VALUE_BYTES } from '../json.ts';
import type { ExecutionError } from '../model/execution.ts';
import type { MaybePromise } from '../ports/operation.ts';
import { toFailure } from './failure.ts';
import { afterSnapshot } from './level.ts';
import type { RunScope } from './run-scope.ts';

export interface ComputedOutput {
  readonly value: Json;
  /** Why the first output that can't be computed can't; it is null, the others are what they are. */
  readonly error?: ExecutionError;
}

export function computeOutput(scope: RunScope): MaybePromise<ComputedOutput> {
  const { compiled } = scope.run;
  return compiled.initialState === undefined ? compute(scope) : afterSnapshot(scope, () => compute(scope));
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
  const { code, message } = toFailure(thrown, scope.run.ports.mask);
  return { code, message: `${formatPath(place)}: ${message}` };
}
