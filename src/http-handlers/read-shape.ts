/** Checks a request's body against its schema: unknown keys are refused, and every problem is named at once (A112, A114). */

import type * as z from 'zod';
import { OrchestratorError } from '../engine/errors.ts';
import { formatPath } from '../engine/json.ts';

/** @throws INVALID_REQUEST with `details.issues` */
export function readShape<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const issues = result.error.issues.map(({ path, message }) => ({
    path: formatPath(path as (string | number)[]),
    message,
  }));
  const text = issues.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join('; ');
  throw new OrchestratorError('INVALID_REQUEST', `the body does not fit: ${text}`, { details: { issues } });
}
