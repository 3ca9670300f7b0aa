/** Checks the config of an agent with the schema and the check of its operation. Values with expressions are not checked. */

import type * as z from 'zod/mini';
import { formatPath, type Json, type JsonObject } from '../../base/json.ts';
import { isPromise } from '../../base/maybe-promise.ts';
import type { AnyOperation, ConfigIssue } from '../../ports/operation.ts';
import { issuePath, type StandardIssue } from '../../ports/standard-schema.ts';
import { suggestName } from '../../base/suggest-name.ts';
import { valueAt } from '../../base/value-at.ts';
import type { Report } from '../forms/check-shape.ts';
import { explainIssue, hostSchema, meantPaths, type SchemaOrigin, unknownKeys } from '../forms/explain-issue.ts';
import type { Path, Problem } from '../source/problem.ts';
import { quoted } from '../source/wording.ts';
import { schemaKeys } from './schema-keys.ts';

type InnerPath = readonly (string | number)[];
type KeysAt = (path: readonly PropertyKey[]) => readonly string[];

/**
 * @param constant - whether the config contains no expressions
 * @param path - the path of the config in the definition
 * @returns the checked and frozen config when it contains no expressions
 */
export function checkConfig(
  operation: AnyOperation,
  config: JsonObject,
  constant: boolean,
  path: Path,
  report: Report,
): JsonObject | undefined {
  const own = operation.check?.(config) ?? [];
  const only = own.some(({ alone }) => alone);
  const result = only ? undefined : operation.config?.['~standard'].validate(config);
  if (isPromise(result)) {
    throw new TypeError(`operation \`${operation.name}\`: its config schema must be synchronous`);
  }
  const keysAt = (at: readonly PropertyKey[]) => schemaKeys(operation.config, at);
  const origin = hostSchema(`the config of \`${operation.name}\``, keysAt);
  // The value of an expression may fit the schema. Keys contain no expressions.
  const issues = (result?.issues ?? []).filter((issue) => {
    return constant || !holdsExpression(config, issuePath(issue)) || isUnknownKey(issue);
  });
  const meant = new Set(
    issues
      .filter(isZodIssue)
      .flatMap((issue) => meantPaths(issue, config, origin))
      .map(formatPath),
  );
  for (const issue of own) if (!meant.has(formatPath(issue.path))) reportConfig(issue, path, report);
  for (const issue of issues) {
    const inner = issuePath(issue);
    if (meant.has(formatPath(inner))) continue;
    const missing =
      misspelled(config, inner, keysAt) ?? (isZodIssue(issue) ? undefined : unknownKey(config, inner, origin));
    if (missing) report({ ...missing, path: [...path, ...missing.path] });
    else if (!isZodIssue(issue)) reportConfig({ path: inner, message: issue.message }, path, report);
    else for (const problem of explainIssue(issue, config, path, origin)) report(problem);
  }
  if (only || !constant || result?.issues) return undefined;
  return deepFreeze(structuredClone((result?.value ?? config) as JsonObject));
}

function isUnknownKey(issue: StandardIssue): boolean {
  return isZodIssue(issue) && issue.code === 'unrecognized_keys';
}

// A required key that is missing, when the map has a key with a similar name that the schema does not name.
function misspelled(config: JsonObject, path: InnerPath, keysAt: KeysAt): Problem | undefined {
  const [map, key] = [path.slice(0, -1), path.at(-1)];
  const given = valueAt(config, map);
  if (typeof key !== 'string' || valueAt(config, path) !== undefined || typeof given !== 'object') return undefined;
  const known = keysAt(map);
  const near = suggestName(
    key,
    Object.keys(given ?? {}).filter((other) => !known.includes(other)),
  );
  return near === undefined
    ? undefined
    : { path: [...map, near], key: true, message: `${quoted(key)} is required`, suggestion: key };
}

// Not every library marks its issue about an unknown key.
function unknownKey(config: JsonObject, path: InnerPath, { keysOf, keysAt }: SchemaOrigin): Problem | undefined {
  const [map, key] = [path.slice(0, -1), path.at(-1)];
  const keys = keysAt?.(map) ?? [];
  if (typeof key !== 'string' || keys.length === 0 || keys.includes(key)) return undefined;
  return valueAt(config, path) === undefined ? undefined : unknownKeys({ what: keysOf, keys }, map, [key])[0];
}

function reportConfig(issue: ConfigIssue, path: Path, report: Report): void {
  report({ path: [...path, ...issue.path], message: issue.message, suggestion: issue.suggestion });
}

function isZodIssue(issue: StandardIssue): issue is StandardIssue & z.core.$ZodIssue {
  return typeof (issue as { code?: unknown }).code === 'string' && Array.isArray(issue.path);
}

// The config itself is always a map, but an expression may decide the type of its parts.
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
