/** How `${agent.output}` and its kin are read from the result of a name. */

import type { NameResolution, PathSegment } from '../expression/compiled-expression.ts';
import type { Json } from '../json.ts';
import type { NameResult, Scope } from './scope.ts';

/** What may follow an agent's name. */
export const RESULT_MEMBERS: readonly string[] = ['output', 'failed', 'success', 'executed', 'error'];

/** @param result - finds the result in a scope; undefined as long as the step was not reached */
export function readResult(
  result: (scope: Scope) => NameResult | undefined,
  path: readonly PathSegment[],
): NameResolution<Scope> {
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

/** Reads a slot of the level itself (`depth` 0) or of one around it. */
export function readSlot(index: number, depth: number, path: readonly PathSegment[]): NameResolution<Scope> {
  if (depth === 0) return readResult((scope) => scope.results[index], path);
  return readResult((scope) => {
    let at = scope;
    for (let up = 0; up < depth; up++) at = at.parent as Scope;
    return at.results[index];
  }, path);
}

function wasExecuted(result: NameResult | undefined): boolean {
  return result !== undefined && result.status !== 'skipped' && result.executed !== false;
}

function errorView(result: NameResult | undefined): Json {
  return result?.error ? { ...result.error } : null;
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
