/** Checks the shape of a JSON Schema that declares inputs, so that a slip in it is told at its place. */

import type { Json, JsonObject } from '../json.ts';
import { suggestName } from '../suggest-name.ts';
import { slowPattern } from './check-pattern.ts';
import type { Report } from './check-shape.ts';
import type { Path } from './problem.ts';
import { describe, oneOf } from './wording.ts';

const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];
// What keywords hold: one schema, a list of them, a map of them.
const ONE = ['items', 'additionalProperties', 'propertyNames', 'contains', 'not', 'if', 'then', 'else'];
const LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const MAPS = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'];

/**
 * @param schema - what stands where a schema is expected
 * @param path - where it stands
 */
export function checkJsonSchema(schema: Json, path: Path, report: Report): void {
  if (typeof schema === 'boolean') return;
  if (!isMap(schema)) {
    report({ path, message: `must be a JSON Schema such as \`{ type: string }\`, not ${describe(schema)}` });
    return;
  }
  for (const [key, value] of Object.entries(schema)) {
    const at = [...path, key];
    if (key === 'type') checkType(value, at, report);
    else if (ONE.includes(key)) checkJsonSchema(value, at, report);
    else if (LISTS.includes(key)) checkList(value, at, report);
    else if (MAPS.includes(key)) checkMap(value, at, report, key === 'patternProperties');
    else checkPlainKeyword(key, value, at, report);
  }
}

function checkType(type: Json, path: Path, report: Report): void {
  const list = Array.isArray(type);
  const types: readonly Json[] = list ? type : [type as Json];
  types.forEach((name, i) => {
    if (typeof name === 'string' && TYPES.includes(name)) return;
    const suggestion = typeof name === 'string' ? suggestName(name, TYPES) : undefined;
    report({ path: list ? [...path, i] : path, message: `must be ${oneOf(TYPES)}, not ${describe(name)}`, suggestion });
  });
}

function checkList(value: Json, path: Path, report: Report): void {
  if (!Array.isArray(value)) report({ path, message: `must be a list of JSON Schemas, not ${describe(value)}` });
  else for (const [i, inner] of (value as readonly Json[]).entries()) checkJsonSchema(inner, [...path, i], report);
}

function checkMap(value: Json, path: Path, report: Report, keysArePatterns: boolean): void {
  if (!isMap(value)) {
    report({ path, message: `must be a map of names to JSON Schemas, not ${describe(value)}` });
    return;
  }
  for (const [key, inner] of Object.entries(value)) {
    const wrong = keysArePatterns ? patternProblem(key) : undefined;
    if (wrong !== undefined) report({ path: [...path, key], key: true, message: wrong });
    checkJsonSchema(inner, [...path, key], report);
  }
}

function checkPlainKeyword(key: string, value: Json, path: Path, report: Report): void {
  if (key === 'required' && !isTextList(value)) {
    report({ path, message: `must be a list of the fields that are required, not ${describe(value)}` });
  } else if (key === 'enum' && !Array.isArray(value)) {
    report({ path, message: `must be a list of values, not ${describe(value)}` });
  } else if (key === 'pattern') {
    const wrong = patternProblem(value);
    if (wrong !== undefined) report({ path, message: wrong });
  }
}

function isMap(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTextList(value: Json): boolean {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}

function patternProblem(pattern: Json): string | undefined {
  if (!isPattern(pattern)) return `must be a regular expression, not ${describe(pattern)}`;
  const slow = slowPattern(pattern);
  return slow === undefined ? undefined : `is a pattern that a text could make very slow: ${slow}`;
}

function isPattern(value: Json): value is string {
  try {
    return typeof value === 'string' && new RegExp(value) instanceof RegExp;
  } catch {
    return false;
  }
}
