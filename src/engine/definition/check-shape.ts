/** Checks a value against one form of the language, says what is wrong in words of the language, and drops the wrong parts. */

import type * as z from 'zod';
import { RESERVED_NAMES } from '../model/name.ts';
import type { Path, Problem } from './problem.ts';
import type { UnknownKeyFacts } from './schema.ts';
import { suggestName } from './suggest-name.ts';

export type Report = (problem: Problem) => void;

/**
 * Checks `value`, reports every problem, and gives back what can still be worked with, so that the rest of the definition is
 * checked too: a wrong optional part is left out; undefined when a required part is missing or wrong.
 *
 * @param path - where the value stands in the source
 */
export function checkShape<S extends z.ZodType>(schema: S, value: unknown, path: Path, report: Report): z.output<S> | undefined {
  let current = value;
  for (let round = 0; round < 20; round++) {
    const result = schema.safeParse(current);
    if (result.success) return result.data;
    const { issues } = result.error;
    if (round === 0) for (const issue of issues) for (const problem of explainIssue(issue, value, path)) report(problem);
    const repaired = dropWrongParts(current, issues);
    if (repaired === current) return undefined;
    current = repaired;
  }
  return undefined;
}

/** A zod issue in words of the language. @param root - the checked value, which stands at `base` */
export function explainIssue(issue: z.core.$ZodIssue, root: unknown, base: Path): Problem[] {
  const path = [...base, ...(issue.path as (string | number)[])];
  const found = valueAt(root, issue.path);
  switch (issue.code) {
    case 'unrecognized_keys': {
      const facts = unknownKeyFacts(issue.message);
      return issue.keys.map((key) => ({
        path: [...path, key],
        key: true,
        message: `\`${key}\` is not a key of ${facts.what}`,
        suggestion: suggestName(key, facts.keys),
      }));
    }
    case 'invalid_type':
      return [{ path, message: found === undefined ? 'is required' : mustBe(typeName(issue.expected), found) }];
    case 'invalid_union': {
      const expected = issue.errors.flat().map((inner) => (inner.code === 'invalid_type' ? typeName(inner.expected) : 'another value'));
      return [{ path, message: found === undefined ? 'is required' : mustBe([...new Set(expected)].join(' or '), found) }];
    }
    case 'invalid_value': {
      if (found === undefined) return [{ path, message: 'is required' }];
      const values = issue.values.map(String);
      return [
        {
          path,
          message: `must be ${oneOf(values)}, not ${describe(found)}`,
          suggestion: typeof found === 'string' ? suggestName(found, values) : undefined,
        },
      ];
    }
    case 'invalid_key':
      return issue.issues.map((inner) => ({ path, key: true, message: inner.message }));
    case 'too_small':
    case 'too_big':
      return [{ path, message: sizeMessage(issue, found) }];
    default:
      return [{ path, message: issue.message }];
  }
}

// Forms of the language hand their facts over as JSON; the config schema of an operation knows nothing of that.
function unknownKeyFacts(message: string): UnknownKeyFacts {
  return message.startsWith('{') ? (JSON.parse(message) as UnknownKeyFacts) : { what: "this operation's config", keys: [] };
}

function sizeMessage(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig, found: unknown): string {
  if (!issue.message.startsWith('Too ')) return issue.message;
  const limit = issue.code === 'too_small' ? `at least ${issue.minimum}` : `at most ${issue.maximum}`;
  if (issue.origin === 'array') return `must have ${limit} entries`;
  return `must be ${limit}, not ${describe(found)}`;
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'a map of keys',
  record: 'a map of keys',
  array: 'a list',
};

function typeName(expected: string): string {
  return TYPE_NAMES[expected] ?? expected;
}

function mustBe(expected: string, found: unknown): string {
  return `must be ${expected}, not ${describe(found)}`;
}

/** A value as a message shows it: short, with its kind. */
export function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a map of keys';
  const text = typeof value === 'string' ? `'${value}'` : String(value);
  return text.length > 40 ? `${text.slice(0, 37)}...` : text;
}

/** `a`, `b` or `c` */
export function oneOf(values: readonly string[]): string {
  const quoted = values.map((value) => `\`${value}\``);
  return quoted.length < 2 ? (quoted[0] ?? '') : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`;
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let value = root;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[part];
  }
  return value;
}

// Copies the value without the parts that the issues name. A missing part takes the map that lacks it along.
function dropWrongParts(value: unknown, issues: readonly z.core.$ZodIssue[]): unknown {
  const copy = structuredClone(value);
  let dropped = false;
  for (const issue of issues) {
    const targets = issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [[...issue.path]];
    for (const target of targets) {
      const missing = target.length > 0 && valueAt(copy, target) === undefined;
      dropped = remove(copy, missing ? target.slice(0, -1) : target) || dropped;
    }
  }
  return dropped ? copy : value;
}

function remove(root: unknown, path: readonly PropertyKey[]): boolean {
  const key = path.at(-1);
  if (key === undefined) return false;
  const parent = valueAt(root, path.slice(0, -1));
  // An entry of a list stays: taking it out would shift the paths of those behind it.
  if (typeof parent !== 'object' || parent === null || Array.isArray(parent) || !Object.hasOwn(parent, key)) return false;
  delete (parent as Record<PropertyKey, unknown>)[key];
  return true;
}

/** Says when a name is one that the language keeps for itself. */
export function checkNotReserved(name: string, path: Path, report: Report): boolean {
  if (!RESERVED_NAMES.has(name)) return true;
  report({ path, message: `\`${name}\` is a reserved name; choose another` });
  return false;
}
