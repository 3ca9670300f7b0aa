/** Checks a value that a caller hands over against a schema, and names every problem at once (A112, A114). */

import type * as z from 'zod';
import { OrchestratorError } from './errors.ts';
import { formatPath, type JsonProblem } from './json.ts';
import { KIND_NAMES } from './kind-names.ts';
import { MAX_NAMED, suggestForMany, suggestName } from './suggest-name.ts';
import { valueAt } from './value-at.ts';

/**
 * @param failure - begins the message when it doesn't fit, such as: the body does not fit
 * @throws INVALID_REQUEST with `details.issues`; none of them holds what was handed over
 */
export function readShape<S extends z.ZodObject>(schema: S, value: unknown, failure: string): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const keys = Object.keys(schema.shape);
  throw invalidRequest(
    result.error.issues.flatMap((issue) => explain(issue, value, keys)),
    failure,
  );
}

export function invalidRequest(issues: readonly JsonProblem[], failure: string): OrchestratorError {
  const text = shortList(issues.map(({ path, message }) => (path ? `${path}: ${message}` : message)));
  return new OrchestratorError('INVALID_REQUEST', `${failure}: ${text}`, { details: { issues } });
}

const MAX_PRINTED = 20;

/** Problems in one line of text; of very many, the first ones. */
export function shortList(problems: readonly string[]): string {
  const left = problems.length - MAX_PRINTED;
  const shown = problems.slice(0, MAX_PRINTED).join('; ');
  return left > 0 ? `${shown}; and ${left} more in details.issues` : shown;
}

const MAX_SHOWN = 80;

/** @param keys - those of the schema, for one that is not among them */
function explain(issue: z.core.$ZodIssue, root: unknown, keys: readonly string[]): JsonProblem[] {
  const path = issue.path as (string | number)[];
  if (issue.code !== 'unrecognized_keys')
    return [{ path: formatPath(path), message: messageOf(issue, valueAt(root, path)) }];
  const suggest = suggestForMany();
  const problems = issue.keys.slice(0, MAX_NAMED).map((key) => {
    const near = suggest(key, keys);
    const known = keys.length === 0 ? 'there are none' : `there are ${keys.join(', ')}`;
    const shown = key.length > MAX_SHOWN ? `${key.slice(0, MAX_SHOWN)}...` : key;
    return {
      path: formatPath(path),
      message: `\`${shown}\` is not a key here; ${near === undefined ? known : `did you mean \`${near}\`?`}`,
    };
  });
  const more = issue.keys.length - problems.length;
  if (more > 0) problems.push({ path: formatPath(path), message: `has ${more} more keys that are not known here` });
  return problems;
}

function messageOf(issue: z.core.$ZodIssue, found: unknown): string {
  // The words of the schema's author.
  if (issue.message.startsWith('must ')) return issue.message;
  switch (issue.code) {
    case 'invalid_type': {
      const wanted = KIND_NAMES[issue.expected] ?? issue.expected;
      return found === undefined ? `is required: ${wanted}` : `must be ${wanted}, not ${kindOf(found)}`;
    }
    case 'invalid_value': {
      const values = issue.values.map(String);
      const near = typeof found === 'string' ? suggestName(found, values) : undefined;
      return `must be one of ${values.join(', ')}${near === undefined ? '' : `; did you mean ${near}?`}`;
    }
    default:
      return issue.message;
  }
}

/** What was handed over may be secret: its kind alone is told. */
function kindOf(value: unknown): string | undefined {
  return KIND_NAMES[value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value];
}
