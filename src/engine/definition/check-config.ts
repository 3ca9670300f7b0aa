/** Checks an agent's config, as far as it holds no expression, by the schema and the check of its operation. */

import type * as z from 'zod';
import type { Json, JsonObject } from '../json.ts';
import type { AnyOperation, ConfigIssue } from '../ports/operation.ts';
import type { StandardIssue } from '../ports/standard-schema.ts';
import { valueAt } from '../value-at.ts';
import type { Report } from './check-shape.ts';
import { explainIssue, foreignSchema } from './explain-issue.ts';
import type { Path } from './problem.ts';

/**
 * @param constant - whether the config holds no expression
 * @param path - where the config stands
 * @returns the checked config, frozen, when it holds no expression
 */
export function checkConfig(
  operation: AnyOperation,
  config: JsonObject,
  constant: boolean,
  path: Path,
  report: Report,
): JsonObject | undefined {
  const own = operation.check?.(config) ?? [];
  for (const issue of own) reportConfig(issue, path, report);
  if (own.some(({ alone }) => alone)) return undefined;
  const result = operation.config?.['~standard'].validate(config);
  if (result instanceof Promise) {
    throw new TypeError(`operation \`${operation.name}\`: its config schema must check without waiting`);
  }
  for (const issue of result?.issues ?? []) {
    const inner = issuePath(issue);
    // A text that will be evaluated may turn into what the schema asks for.
    if (!constant && holdsExpression(config, inner)) continue;
    if (!isZodIssue(issue)) reportConfig({ path: inner, message: issue.message }, path, report);
    else {
      const speaker = foreignSchema(`the config of \`${operation.name}\``);
      for (const problem of explainIssue(issue, config, path, speaker)) report(problem);
    }
  }
  if (!constant || result?.issues) return undefined;
  return deepFreeze(structuredClone((result?.value ?? config) as JsonObject));
}

function reportConfig(issue: ConfigIssue, path: Path, report: Report): void {
  report({ path: [...path, ...issue.path], message: issue.message, suggestion: issue.suggestion });
}

function isZodIssue(issue: StandardIssue): issue is StandardIssue & z.core.$ZodIssue {
  return typeof (issue as { code?: unknown }).code === 'string' && Array.isArray(issue.path);
}

/** The path of an issue of any Standard Schema. */
export function issuePath(issue: StandardIssue): (string | number)[] {
  return (issue.path ?? []).map((part) => {
    const key = typeof part === 'object' ? part.key : part;
    return typeof key === 'symbol' ? String(key) : key;
  });
}

// The whole config always is a map; what its parts are, an expression may decide.
function holdsExpression(config: JsonObject, path: readonly (string | number)[]): boolean {
  for (let length = 1; length <= path.length; length++) {
    const value = valueAt(config, path.slice(0, length)) as Json | undefined;
    if (typeof value === 'string') return value.includes('${');
    if (length === path.length) return value !== undefined && JSON.stringify(value).includes('${');
  }
  return false;
}

function deepFreeze<T extends Json>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const inner of Object.values(value)) deepFreeze(inner as Json);
    Object.freeze(value);
  }
  return value;
}
