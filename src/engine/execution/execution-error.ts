/** The error of a failure as its readers see it: only the record of an execution has all of it. */

import type { EventError } from '../events/event.ts';
import type { ExecutionError } from './execution.ts';

/** The error as expressions, parents and listings see it: without `stack` and `cause`. */
export function withoutStack(error: ExecutionError): Omit<ExecutionError, 'stack' | 'cause'> {
  if (error.stack === undefined && error.cause === undefined) return error;
  const { stack: _stack, cause: _cause, ...rest } = error;
  return rest;
}

/** The error as events have it. */
export function toEventError({ code, message, details }: ExecutionError): EventError {
  return details ? { code, message, details } : { code, message };
}
