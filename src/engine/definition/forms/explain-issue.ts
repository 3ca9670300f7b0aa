/** Explains the issues of a zod schema in the terms of the language: forms, configs of operations, inputs of executions. */

import type * as z from 'zod/mini';
import { KIND_NAMES } from '../../base/json/kind-names.ts';
import { valueAt } from '../../base/json/value-at.ts';
import { suggestName } from '../../base/suggest-name.ts';
import { nearestDuration } from '../../base/time/duration.ts';
import { DURATION_MESSAGE } from '../../base/time/duration-schema.ts';
import { describeValue, oneOf, quoted } from '../../base/wording.ts';
import { SIGNATURE_SCHEMES } from '../../webhook/webhook.ts';
import type { Path, Problem } from '../source/problem.ts';
import { type FormFacts, formFacts, keyHints } from './form.ts';

const SCHEMES: readonly string[] = SIGNATURE_SCHEMES;

/** The origin of a schema: the forms of the language, or a schema of the host. */
export interface SchemaOrigin {
  /** Whether the author of the schema wrote a message, and not zod. */
  isCustom(message: string): boolean;
  /** What the keys belong to, for a schema that does not name it. */
  readonly keysOf: string;
  /** The keys at a path of the checked value, for a schema whose messages do not name them. */
  keysAt?(path: readonly PropertyKey[]): readonly string[];
}

/** The forms of the language. Their messages begin with `must`, or contain facts as JSON. */
export const LANGUAGE: SchemaOrigin = { isCustom: (message) => message.startsWith('must '), keysOf: 'this map' };

/** A schema of the host. @param keysOf - such as: the config of operation `x` */
export function hostSchema(keysOf: string, keysAt: NonNullable<SchemaOrigin['keysAt']>): SchemaOrigin {
  return { isCustom: (message) => !/^(?:Invalid|Too|Unrecognized|Unexpected)\b/.test(message), keysOf, keysAt };
}

/** @param root - the checked value @param base - its path in the source */
export function explainIssue(issue: z.core.$ZodIssue, root: unknown, base: Path, origin: SchemaOrigin): Problem[] {
  const path = [...base, ...(issue.path as (string | number)[])];
  const found = valueAt(root, issue.path);
  if (issue.code === 'unrecognized_keys') return explainUnknownKeys(issue, path, origin);
  if (issue.code === 'invalid_key') {
    const name = String(issue.path.at(-1));
    return issue.issues.map((inner) => ({ path, key: true, message: notThis(inner.message, name) }));
  }
  if (found === undefined && isAboutKind(issue)) return [{ path, message: requiredMessage(issue, path) }];
  if (origin.isCustom(issue.message)) {
    const isDuration = issue.message.startsWith(DURATION_MESSAGE) && typeof found === 'string';
    const near = isDuration ? nearestDuration(found) : undefined;
    return [{ path, message: notThis(issue.message, found), suggestion: near === found ? undefined : near }];
  }
  switch (issue.code) {
    case 'invalid_type':
      return [{ path, message: `must be ${kindName(issue.expected)}, not ${describeValue(found)}` }];
    case 'invalid_union':
      return [{ path, message: unionMessage(issue, found) }];
    case 'invalid_value': {
      const values = issue.values.map(String);
      const message = `must be ${oneOf(values)}, not ${describeValue(found)}`;
      if (typeof found !== 'string') return [{ path, message }];
      if (path.at(-2) === 'auth' && SCHEMES.includes(found))
        return [{ path, message: `${message}; write \`type: signature, scheme: ${found}\`` }];
      const whole = values.find((value) => value.endsWith(`.${found}`));
      return [{ path, message, suggestion: whole ?? suggestName(found, values) }];
    }
    case 'too_small':
    case 'too_big':
      return [{ path, message: sizeMessage(issue, found) }];
    default:
      return [{ path, message: issue.message }];
  }
}

function explainUnknownKeys(issue: z.core.$ZodIssueUnrecognizedKeys, path: Path, origin: SchemaOrigin): Problem[] {
  const facts = factsOf(issue, origin);
  const problems = unknownKeys(facts, path, issue.keys, origin === LANGUAGE ? FEW_KEYS : MANY_KEYS);
  const more = issue.keys.length - problems.length;
  if (more > 0) problems.push({ path, message: `has ${more} more keys that do not belong to ${facts.what}` });
  return problems;
}

function factsOf(issue: z.core.$ZodIssueUnrecognizedKeys, { keysOf, keysAt }: SchemaOrigin): FormFacts {
  return formFacts(issue.message) ?? { what: keysOf, keys: keysAt?.(issue.path) ?? [] };
}

/** The problems of keys that a map does not have. @param path - of the map @param max - longer lists of keys are left out */
export function unknownKeys(facts: FormFacts, path: Path, keys: readonly string[], max = MANY_KEYS): Problem[] {
  return keyHints(facts, keys).map(({ key, says, means }) => {
    const advice = says === undefined ? keysMessage(facts.keys, max) : `: ${says}`;
    const message = `${quoted(key)} is not a key of ${facts.what}${advice}`;
    return { path: [...path, key], key: true, message, suggestion: says === undefined ? means : undefined };
  });
}

/** Editors list the keys of the language, but not those of a config. */
const FEW_KEYS = 8;
const MANY_KEYS = 16;

function keysMessage(keys: readonly string[], max: number): string {
  if (keys.length === 0 || keys.length > max) return '';
  return keys.length === 1 ? `; the only key is ${oneOf(keys)}` : `; the keys are ${oneOf(keys, 'and')}`;
}

/** The paths of the keys that misspelled keys probably mean. Such a key is not reported as missing. */
export function meantPaths(
  issue: z.core.$ZodIssue,
  root: unknown,
  origin: SchemaOrigin = LANGUAGE,
): (readonly (string | number)[])[] {
  if (issue.code !== 'unrecognized_keys') return [];
  const facts = factsOf(issue, origin);
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

const FILE_HINT =
  ", which names a file: pass the text of the file, such as `readFileSync('flow.yaml', 'utf8')`, or `await loadProject('folder')` from 'ensemble-orchestrator/node'";

function isFileName(found: unknown): boolean {
  return typeof found === 'string' && /^[^\s:]+(?:\.ya?ml|\.json|\/)$/i.test(found);
}

function notThis(message: string, found: unknown): string {
  if (!/^must (?:be|begin) /.test(message) || found === undefined) return message;
  return `${message}, not ${describeValue(found)}${isFileName(found) ? FILE_HINT : ''}`;
}

function unionMessage(issue: z.core.$ZodIssueInvalidUnion, found: unknown): string {
  const kinds = issue.errors
    .flat()
    .map((inner) => (inner.code === 'invalid_type' ? kindName(inner.expected) : undefined));
  if (kinds.length === 0 || kinds.includes(undefined))
    return `has a value that is not allowed here: ${describeValue(found)}`;
  return `must be ${[...new Set(kinds)].join(' or ')}, not ${describeValue(found)}`;
}

function sizeMessage(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig, found: unknown): string {
  const bound = issue.code === 'too_small' ? issue.minimum : issue.maximum;
  const limit = `${issue.code === 'too_small' ? 'at least' : 'at most'} ${bound}`;
  if (issue.origin === 'array') return `must have ${limit} ${bound === 1 ? 'entry' : 'entries'}`;
  if (issue.origin === 'string') return `must have ${limit} ${bound === 1 ? 'character' : 'characters'}`;
  return `must be ${issue.inclusive === false ? limit.replace('at least', 'more than').replace('at most', 'less than') : limit}, not ${describeValue(found)}`;
}

const KINDS = { ...KIND_NAMES, object: 'a map of keys', record: 'a map of keys' } as typeof KIND_NAMES;

function kindName(expected: string): string {
  return KINDS[expected] ?? expected;
}
