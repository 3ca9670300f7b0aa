/** Checks a value that a caller hands over against a schema, and names every problem at once (A112, A114). */

import type * as z from 'zod';
import { OrchestratorError } from './errors.ts';
import { formatPath, type JsonProblem } from './json.ts';

/**
 * @param failure - begins the message when it doesn't fit, such as: the body does not fit
 * @throws INVALID_REQUEST with `details.issues`
 */
export function readShape<S extends z.ZodType>(schema: S, value: unknown, failure: string): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues.map(({ path, message }) => ({
    path: formatPath(path as (string | number)[]),
    message,
  }));
  throw invalidRequest(issues, failure);
}

export function invalidRequest(issues: readonly JsonProblem[], failure: string): OrchestratorError {
  const text = issues.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join('; ');
  return new OrchestratorError('INVALID_REQUEST', `${failure}: ${text}`, { details: { issues } });
}
