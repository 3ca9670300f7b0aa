/** Checks a value of a caller against a schema and reports every problem at once. */

import type * as z from 'zod/mini';
import { OrchestratorError } from './errors.ts';
import { formatPath, type JsonProblem } from './json/json.ts';
import { KIND_NAMES } from './json/kind-names.ts';
import { valueAt } from './json/value-at.ts';
import { MAX_NAMED, suggestForMany, suggestName } from './suggest-name.ts';

/**
 * @param failure - the start of the error message, such as: the body does not fit
 * @throws INVALID_REQUEST with `details.issues`. No issue contains the value itself
 */
export function readShape<S extends z.ZodMiniObject>(schema: S, value: unknown, failure: string): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw invalidRequest(
    result.error.issues.flatMap((issue) => explain(issue, value, schema)),
    failure,
  );
}

export function invalidRequest(issues: readonly JsonProblem[], failure: string): OrchestratorError {
  const text = shortList(issues.map(({ path, message }) => (path ? `${path}: ${message}` : message)));
  return new OrchestratorError('INVALID_REQUEST', `${failure}: ${text}`, { details: { issues } });
}

const MAX_PRINTED = 20;

/** Joins problems to one line of text. It prints the first 20, and the number of the others. */
export function shortList(problems: readonly string[]): string {
  const left = problems.length - MAX_PRINTED;
  const shown = problems.slice(0, MAX_PRINTED).join('; ');
  return left > 0 ? `${shown}; and ${left} more in details.issues` : shown;
}

const MAX_SHOWN = 80;

function explain(issue: z.core.$ZodIssue, root: unknown, schema: z.ZodMiniObject): JsonProblem[] {
  const path = issue.path as (string | number)[];
  if (issue.code !== 'unrecognized_keys')
    return [{ path: formatPath(path), message: messageOf(issue, valueAt(root, path)) }];
  const suggest = suggestForMany();
  const keys = keysAt(schema, path);
  const problems = issue.keys.slice(0, MAX_NAMED).map((key) => {
    const near = suggest(key, keys ?? []);
    const known = keys?.length === 0 ? '; no keys are allowed' : keys ? `; the keys are ${keys.join(', ')}` : '';
    const shown = key.length > MAX_SHOWN ? `${key.slice(0, MAX_SHOWN)}...` : key;
    return {
      path: formatPath(path),
      message: `\`${shown}\` is not a key here${near === undefined ? known : `; did you mean \`${near}\`?`}`,
    };
  });
  const more = issue.keys.length - problems.length;
  if (more > 0) problems.push({ path: formatPath(path), message: `has ${more} more unknown keys` });
  return problems;
}

/** The keys of the object at a path. Undefined where something else than objects leads to it. */
function keysAt(schema: z.ZodMiniObject, path: readonly (string | number)[]): readonly string[] | undefined {
  let { shape }: { shape?: Readonly<Record<string, unknown>> } = schema;
  for (const key of path) shape = (shape?.[key] as z.ZodMiniObject | undefined)?.shape;
  return shape && Object.keys(shape);
}

function messageOf(issue: z.core.$ZodIssue, found: unknown): string {
  // The author of the schema wrote this message.
  if (issue.message.startsWith('must ')) return issue.message;
  switch (issue.code) {
    case 'invalid_type': {
      const expected = KIND_NAMES[issue.expected] ?? issue.expected;
      return found === undefined ? `is required: ${expected}` : `must be ${expected}, not ${kindOf(found)}`;
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

/** Names only the kind of a value, because the value may be secret. */
function kindOf(value: unknown): string | undefined {
  return KIND_NAMES[value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value];
}
