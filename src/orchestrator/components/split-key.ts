/** The key that decides which version of a split an execution gets: the value of an expression that reads its input. */

import { canonicalJson, type JsonObject } from '../../engine/base/json/json.ts';
import { ExpressionScope } from '../../engine/compiled/expression-scope.ts';
import type { SplitSubject } from '../../engine/component/component-source.port.ts';
import { compileSplitKey } from '../../engine/definition/compile/config/compile-references.ts';
import type { FunctionTable } from '../../engine/expression/functions/function-table.ts';

/** @returns undefined for the value null and for an empty text @throws ExpressionSyntaxError; EXPRESSION_ERROR */
export type ReadSplitKey = (by: string, subject: SplitSubject) => string | undefined;

const MAX_COMPILED = 1_000;

export function createReadSplitKey(functions: FunctionTable | undefined): ReadSplitKey {
  const compiled = new Map<string, ReturnType<typeof compileSplitKey>>();
  return (by, { input, executionId }) => {
    const known = compiled.get(by) ?? compileSplitKey(by, functions);
    if (compiled.size >= MAX_COMPILED) compiled.clear();
    compiled.set(by, known);
    const value = known.evaluate(scopeOf(input as JsonObject, executionId));
    return value === null || value === '' ? undefined : typeof value === 'string' ? value : canonicalJson(value);
  };
}

function scopeOf(input: JsonObject, seed: string): ExpressionScope {
  const nothing = { env: {}, headers: {}, trigger: {}, execution: {}, createdAt: 0 };
  const scope = new ExpressionScope({ ...nothing, seed, input }, undefined, 0);
  scope.data = input;
  return scope;
}
