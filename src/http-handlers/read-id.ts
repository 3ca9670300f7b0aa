/** Reads names and ids from a path. A malformed name or id is NOT_FOUND without a read of the storage. */

import { isOrchestratorError, OrchestratorError } from '../engine/base/errors.ts';
import { EXECUTION_ID } from '../engine/model/id.ts';
import { NAME_PATTERN } from '../engine/model/name.ts';
import type { HttpCall } from './call.ts';

const ID_PATTERNS = {
  execution: EXECUTION_ID,
  token: /^tok_[0-9A-Z]{26}$/,
  delivery: /^dlv_[0-9A-Z]{26}$/,
  job: /^job_[0-9A-Z]{26}$/,
  receiver: /^(?:webhook:[0-9a-f]{32}|email:.{1,200}|https?:\/\/.{1,2000})$/,
} as const;

/** The path's `:name`. @param what - what it names, for the message. @throws NOT_FOUND */
export function readName({ params }: HttpCall, what: 'ensemble' | 'agent' | 'component'): string {
  const { name = '' } = params;
  if (NAME_PATTERN.test(name)) return name;
  throw new OrchestratorError('NOT_FOUND', `there is no ${what} with this name`);
}

/** The path's `:id`. @throws NOT_FOUND */
export function readId({ params }: Pick<HttpCall, 'params'>, what: keyof typeof ID_PATTERNS): string {
  const { id = '' } = params;
  if (ID_PATTERNS[what].test(id)) return id;
  throw noSuch(what);
}

/** A query parameter that names an execution. @throws INVALID_REQUEST for a malformed id */
export function readExecutionId(given: string | undefined, parameter: string): string | undefined {
  if (given === undefined || ID_PATTERNS.execution.test(given)) return given;
  throw new OrchestratorError('INVALID_REQUEST', `\`${parameter}\` must be the id of an execution`);
}

/** @throws NOT_FOUND with the message that every unknown id gets */
export async function known<T>(found: Promise<T>, what: keyof typeof ID_PATTERNS = 'execution'): Promise<T> {
  try {
    return await found;
  } catch (thrown) {
    throw isOrchestratorError(thrown, 'NOT_FOUND') ? noSuch(what) : thrown;
  }
}

/** The same error for an unknown id and a malformed one. */
function noSuch(what: keyof typeof ID_PATTERNS): OrchestratorError {
  const message = what === 'receiver' ? 'this receiver is not paused' : `there is no such ${what}`;
  return new OrchestratorError('NOT_FOUND', message);
}
