/** Checks a value that a caller hands over against a schema, and names every problem at once (A112, A114). */

import type * as z from 'zod';
import { OrchestratorError } from './errors.ts';
import { formatPath, type JsonProblem } from './json.ts';
import { KIND_NAMES } from './kind-names.ts';
import { suggestName } from './suggest-name.ts';
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
  const text = issues.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join('; ');
  return new OrchestratorError('INVALID_REQUEST', `${failure}: ${text}`, { details: { issues } });
}

const MAX_SHOWN = 80;

/** @param keys - those of the schema, for one that is not among them */
function explain(issue: z.core.$ZodIssue, root: unknown, keys: readonly string[]): JsonProblem[] {
  const path = issue.path as (string | number)[];
  if (issue.code !== 'unrecognized_keys')
    return [{ path: formatPath(path), message: messageOf(issue, valueAt(root, path)) }];
  return issue.keys.map((key) => {
    const near = suggestName(key, keys);
    const known = keys.length === 0 ? 'there are none' : `there are ${keys.join(', ')}`;
    const shown = key.length > MAX_SHOWN ? `${key.slice(0, MAX_SHOWN)}...` : key;
    return {
      path: formatPath(path),
      message: `\`${shown}\` is not a key here; ${near === undefined ? known : `did you mean \`${near}\`?`}`,
    };
  });
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
