/** Reads `${agent.output}` and the other members of a result. */

import type { Json, JsonObject } from '../../../base/json/json.ts';
import type { ExpressionScope, NameResult } from '../../../compiled/expression-scope.ts';
import type { ExecutionError } from '../../../execution/execution.ts';
import { withoutStack } from '../../../execution/execution-error.ts';
import type { NameResolution, PathSegment } from '../../../expression/compile/compiled-expression.ts';

/** @param result - finds the result in a scope; undefined when the step was not reached yet */
export function readResult(
  result: (scope: ExpressionScope) => NameResult | undefined,
  path: readonly PathSegment[],
): NameResolution<ExpressionScope> {
  switch (path[0]) {
    case 'output':
      return { read: (scope) => result(scope)?.output ?? null, consumed: 1 };
    case 'failed':
      return { read: (scope) => result(scope)?.status === 'failed', consumed: 1 };
    case 'success':
      return { read: (scope) => result(scope)?.status === 'completed', consumed: 1 };
    case 'executed':
      return { read: (scope) => wasExecuted(result(scope)), consumed: 1 };
    case 'error':
      return { read: (scope) => errorView(result(scope)), consumed: 1 };
    default:
      return { read: (scope) => view(result(scope)), consumed: 0 };
  }
}

/** Reads a slot of the level itself (`depth` 0) or of a level around it. */
export function readSlot(index: number, depth: number, path: readonly PathSegment[]): NameResolution<ExpressionScope> {
  if (depth === 0) return readResult((scope) => scope.results[index], path);
  return readResult((scope) => {
    let at = scope;
    for (let up = 0; up < depth; up++) at = at.parent as ExpressionScope;
    return at.results[index];
  }, path);
}

function wasExecuted(result: NameResult | undefined): boolean {
  return result !== undefined && result.status !== 'skipped' && result.executed !== false;
}

function errorView(result: NameResult | undefined): Json {
  return readError(result?.error);
}

/** An error as expressions read it. They read the same with every value of the option `errors`. */
export function readError(error: ExecutionError | undefined): Json {
  return error ? ({ ...withoutStack(error) } as JsonObject) : null;
}

function view(result: NameResult | undefined): Json {
  return {
    output: result?.output ?? null,
    executed: wasExecuted(result),
    success: result?.status === 'completed',
    failed: result?.status === 'failed',
    error: errorView(result),
  };
}
