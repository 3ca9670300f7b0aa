/** Says in words of the language what a schema found: forms of the language, configs of operations, inputs of a run. */

import type * as z from 'zod';
import { KIND_NAMES } from '../kind-names.ts';
import { suggestName } from '../suggest-name.ts';
import { valueAt } from '../value-at.ts';
import { formFacts, keyHints } from './form.ts';
import type { Path, Problem } from './problem.ts';
import { describe, oneOf, quoted } from './wording.ts';

/** Whose schema spoke: the language's own forms, or one that the library was handed. */
export interface Speaker {
  /** Whether a message is one that the schema's author wrote, and not zod's own. */
  isCustom(message: string): boolean;
  /** What the keys belong to, for schemas that don't say it themselves. */
  readonly keysOf: string;
}

/** The forms of the language: their own messages begin with `must`, or hold facts as JSON. */
export const LANGUAGE: Speaker = { isCustom: (message) => message.startsWith('must '), keysOf: 'this map' };

/** A schema from elsewhere. @param keysOf - such as: the config of operation `x` */
export function foreignSchema(keysOf: string): Speaker {
  return { isCustom: (message) => !/^(?:Invalid|Too|Unrecognized|Unexpected)\b/.test(message), keysOf };
}

/** @param root - the checked value, which stands at `base` */
export function explainIssue(issue: z.core.$ZodIssue, root: unknown, base: Path, speaker: Speaker): Problem[] {
  const path = [...base, ...(issue.path as (string | number)[])];
  const found = valueAt(root, issue.path);
  if (issue.code === 'unrecognized_keys') return explainUnknownKeys(issue, path, speaker);
  if (issue.code === 'invalid_key') {
    const name = String(issue.path.at(-1));
    return issue.issues.map((inner) => ({ path, key: true, message: notThis(inner.message, name) }));
  }
  if (found === undefined && isAboutKind(issue)) return [{ path, message: requiredMessage(issue, path) }];
  if (speaker.isCustom(issue.message)) return [{ path, message: notThis(issue.message, found) }];
  switch (issue.code) {
    case 'invalid_type':
      return [{ path, message: `must be ${kindName(issue.expected)}, not ${describe(found)}` }];
    case 'invalid_union':
      return [{ path, message: unionMessage(issue, found) }];
    case 'invalid_value': {
      const values = issue.values.map(String);
      const suggestion = typeof found === 'string' ? suggestName(found, values) : undefined;
      return [{ path, message: `must be ${oneOf(values)}, not ${describe(found)}`, suggestion }];
    }
    case 'too_small':
    case 'too_big':
      return [{ path, message: sizeMessage(issue, found) }];
    default:
      return [{ path, message: issue.message }];
  }
}

function explainUnknownKeys(issue: z.core.$ZodIssueUnrecognizedKeys, path: Path, { keysOf }: Speaker): Problem[] {
  const facts = formFacts(issue.message) ?? { what: keysOf, keys: [] };
  const problems: Problem[] = keyHints(facts, issue.keys).map(({ key, says, means }) => {
    const advice = says === undefined ? keysMessage(facts.keys) : `: ${says}`;
    const message = `${quoted(key)} is not a key of ${facts.what}${advice}`;
    return { path: [...path, key], key: true, message, suggestion: says === undefined ? means : undefined };
  });
  const more = issue.keys.length - problems.length;
  if (more > 0) problems.push({ path, message: `has ${more} more keys that are not of ${facts.what}` });
  return problems;
}

const MANY_KEYS = 8;

function keysMessage(keys: readonly string[]): string {
  if (keys.length === 0 || keys.length > MANY_KEYS) return '';
  return `; it has ${oneOf(keys, 'and')}`;
}

/** The keys that unknown keys were meant to be, where they are not given too: that these are missing only follows. */
export function meantPaths(issue: z.core.$ZodIssue, root: unknown): (readonly (string | number)[])[] {
  const facts = issue.code === 'unrecognized_keys' ? formFacts(issue.message) : undefined;
  if (!facts || issue.code !== 'unrecognized_keys') return [];
  const held = valueAt(root, issue.path) as object;
  return keyHints(facts, issue.keys).flatMap(({ means }) => {
    return means === undefined || Object.hasOwn(held, means) ? [] : [[...(issue.path as (string | number)[]), means]];
  });
}

function isAboutKind(issue: z.core.$ZodIssue): boolean {
  return issue.code === 'invalid_type' || issue.code === 'invalid_union' || issue.code === 'invalid_value';
}

function requiredMessage(issue: z.core.$ZodIssue, path: Path): string {
  const key = path.at(-1);
  const subject = typeof key === 'string' ? `${quoted(key)} is required` : 'is required';
  if (issue.code === 'invalid_value') return `${subject}: ${oneOf(issue.values.map(String))}`;
  const kind = issue.code === 'invalid_type' && issue.expected !== 'string' ? KINDS[issue.expected] : undefined;
  return kind ? `${subject}: ${kind}` : subject;
}

function notThis(message: string, found: unknown): string {
  return /^must (?:be|begin) /.test(message) && found !== undefined ? `${message}, not ${describe(found)}` : message;
}

function unionMessage(issue: z.core.$ZodIssueInvalidUnion, found: unknown): string {
  const kinds = issue.errors
    .flat()
    .map((inner) => (inner.code === 'invalid_type' ? kindName(inner.expected) : undefined));
  if (kinds.length === 0 || kinds.includes(undefined))
    return `has a value that is not allowed here: ${describe(found)}`;
  return `must be ${[...new Set(kinds)].join(' or ')}, not ${describe(found)}`;
}

function sizeMessage(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig, found: unknown): string {
  const bound = issue.code === 'too_small' ? issue.minimum : issue.maximum;
  const limit = `${issue.code === 'too_small' ? 'at least' : 'at most'} ${bound}`;
  if (issue.origin === 'array') return `must have ${limit} ${bound === 1 ? 'entry' : 'entries'}`;
  if (issue.origin === 'string') return `must have ${limit} ${bound === 1 ? 'character' : 'characters'}`;
  return `must be ${issue.inclusive === false ? limit.replace('at least', 'more than').replace('at most', 'less than') : limit}, not ${describe(found)}`;
}

const KINDS = { ...KIND_NAMES, object: 'a map of keys', record: 'a map of keys' } as typeof KIND_NAMES;

function kindName(expected: string): string {
  return KINDS[expected] ?? expected;
}
