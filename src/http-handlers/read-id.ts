/** Reads names and ids from a path: what can't be one is not there, and no store is asked for it (A92, A124). */

import { OrchestratorError } from '../engine/errors.ts';
import { NAME_PATTERN } from '../engine/model/name.ts';
import type { Call } from './call.ts';

const ID_PATTERNS = {
  execution: /^exec[_-][0-9A-Z]{26}$/,
  token: /^tok_[0-9A-Z]{26}$/,
} as const;

/** The path's `:name`. @param what - what it names, for the message; @throws NOT_FOUND */
export function readName({ params }: Call, what: 'ensemble' | 'agent'): string {
  const { name = '' } = params;
  if (NAME_PATTERN.test(name)) return name;
  throw new OrchestratorError('NOT_FOUND', `there is no ${what} of that name`);
}

/** The path's `:id`. @throws NOT_FOUND */
export function readId({ params }: Call, what: keyof typeof ID_PATTERNS): string {
  const { id = '' } = params;
  if (ID_PATTERNS[what].test(id)) return id;
  throw noSuch(what);
}

/** A query parameter that names an execution. @throws INVALID_REQUEST for what can't be an id */
export function readExecutionId(given: string | undefined, parameter: string): string | undefined {
  if (given === undefined || ID_PATTERNS.execution.test(given)) return given;
  throw new OrchestratorError('INVALID_REQUEST', `\`${parameter}\` must be the id of an execution`);
}

/** The one answer for an id that is unknown or malformed. */
export function noSuch(what: keyof typeof ID_PATTERNS): OrchestratorError {
  return new OrchestratorError('NOT_FOUND', `there is no such ${what}`);
}
