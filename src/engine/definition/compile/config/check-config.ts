/** Checks the config of an agent with the schema and the check of its operation. Values with expressions are not checked. */

import type * as z from 'zod/mini';
import { formatPath, type Json, type JsonObject } from '../../../base/json/json.ts';
import { replaceAt, valueAt } from '../../../base/json/value-at.ts';
import { isPromise } from '../../../base/maybe-promise.ts';
import { suggestName } from '../../../base/suggest-name.ts';
import { quoted } from '../../../base/wording.ts';
import type { AnyOperation, ConfigIssue } from '../../../operation/operation.port.ts';
import { ASYNC_SCHEMA, issuePath, type StandardIssue } from '../../../operation/standard-schema.port.ts';
import type { Report } from '../../forms/check-shape.ts';
import { explainIssue, hostSchema, meantPaths, type SchemaOrigin, unknownKeys } from '../../forms/explain-issue.ts';
import type { Path, Problem } from '../../source/problem.ts';
import { textPath } from './compile-texts.ts';
import { schemaKeys } from './schema-keys.ts';

type InnerPath = readonly (string | number)[];
type KeysAt = (path: readonly PropertyKey[]) => readonly string[];

/**
 * @param written - the config with its expressions as text
 * @param references - the values that come from components. An expression without a value is in their place
 * @param evaluated - the config, if all its expressions are constant
 * @param path - the path of the config in the definition
 * @returns the checked and frozen config, if it was given evaluated
 */
export function checkConfig(
  operation: AnyOperation,
  written: JsonObject,
  references: readonly { readonly path: InnerPath }[],
  evaluated: JsonObject | undefined,
  path: Path,
  report: Report,
): JsonObject | undefined {
  // A stored config may have what is not written here.
  const hasBase = references.some(({ path: inner }) => inner.length === 0);
  const own =
    (hasBase ? undefined : operation.check?.(written, new Set(references.map(({ path: [key] }) => String(key))))) ?? [];
  const config = evaluated ?? withStatements(written, operation.texts);
  const constant = evaluated !== undefined;
  const only = own.some(({ alone }) => alone);
  const result = only ? undefined : operation.config?.['~standard'].validate(config);
  if (isPromise(result)) {
    Promise.resolve(result).catch(() => {});
    throw new TypeError(`operation \`${operation.name}\`: ${ASYNC_SCHEMA}`);
  }
  const isZod = operation.config !== undefined && '_zod' in operation.config;
  const isZodIssue = (_issue: StandardIssue): _issue is ZodIssue => isZod;
  const keysAt = (at: readonly PropertyKey[]) => schemaKeys(operation.config, at);
  const origin = hostSchema(`the config of \`${operation.name}\``, keysAt);
  // The value of an expression may fit the schema. Keys contain no expressions.
  const issues = [...(result?.issues ?? [])].filter((issue) => {
    if (
      hasBase &&
      !(isZodIssue(issue) && issue.code === 'unrecognized_keys') &&
      valueAt(written, issuePath(issue)) === undefined
    )
      return false;
    return (
      constant ||
      !holdsExpression(written, issuePath(issue), operation.texts) ||
      (isZodIssue(issue) && issue.code === 'unrecognized_keys')
    );
  });
  const meant = new Set(
    issues
      .filter(isZodIssue)
      .flatMap((issue) => meantPaths(issue, config, origin))
      .map(formatPath),
  );
  for (const issue of own) if (!meant.has(formatPath(issue.path))) reportConfig(issue, path, report);
  const paths = new Set(issues.map((issue) => formatPath(issuePath(issue))));
  for (const issue of issues) {
    const inner = issuePath(issue);
    if (meant.has(formatPath(inner))) continue;
    const given = misspelledKey(config, inner, keysAt);
    // The issue about the key that was given says more.
    if (given && paths.has(formatPath(given.path))) continue;
    const missing = given ?? (isZodIssue(issue) ? undefined : unknownKey(config, inner, origin));
    if (missing) report({ ...missing, path: [...path, ...missing.path] });
    else if (!isZodIssue(issue)) reportConfig({ path: inner, message: issue.message }, path, report);
    else for (const problem of explainIssue(issue, config, path, origin)) report(problem);
  }
  if (only || !constant || result?.issues) return undefined;
  return frozenCopy(result ? result.value : config) as JsonObject | undefined;
}

type ZodIssue = StandardIssue & z.core.$ZodIssue;

// A required key that is missing, when the map has a key with a similar name that the schema does not name.
function misspelledKey(config: JsonObject, path: InnerPath, keysAt: KeysAt): Problem | undefined {
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
  const { message, suggestion, notConfigured } = issue;
  report({ path: [...path, ...issue.path], message, suggestion, ...(notConfigured && { notConfigured }) });
}

// The config itself is always a map, but an expression may decide the type of its parts.
function holdsExpression(config: JsonObject, path: InnerPath, texts: AnyOperation['texts']): boolean {
  for (let length = 1; length <= path.length; length++) {
    const value = valueAt(config, path.slice(0, length)) as Json | undefined;
    if (typeof value === 'string')
      return value.includes('${') || (value.includes('{{') && isTemplate(path.slice(0, length), texts));
    if (length === path.length) return value !== undefined && JSON.stringify(value).includes('${');
  }
  return false;
}

function isTemplate(path: InnerPath, texts: AnyOperation['texts'] = {}): boolean {
  const key = textPath(path);
  return Object.hasOwn(texts, key) && texts[key] !== 'sql';
}

/** The config as the schema sees it at load: a query is a statement, whose values are not known. */
function withStatements(config: JsonObject, texts: AnyOperation['texts'] = {}): JsonObject {
  let out = config;
  for (const [key, kind] of Object.entries(texts)) {
    const path = key.split('.');
    const text = kind === 'sql' ? valueAt(out, path) : undefined;
    if (typeof text === 'string') out = replaceAt(out, path, { strings: [text], values: [] }) as JsonObject;
  }
  return out;
}

/**
 * What all attempts share. Undefined for a value with anything but plain data in it, such as a `Date` or a `URL` that the schema made:
 * then each attempt has its own.
 */
function frozenCopy(value: unknown): unknown {
  if (typeof value === 'function') return undefined;
  if (typeof value !== 'object' || value === null) return value;
  const copy: [string, unknown][] = [];
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const copied = frozenCopy(inner);
    if (copied === undefined && inner !== undefined) return undefined;
    copy.push([key, copied]);
  }
  return Object.freeze(Array.isArray(value) ? copy.map(([, inner]) => inner) : Object.fromEntries(copy));
}
