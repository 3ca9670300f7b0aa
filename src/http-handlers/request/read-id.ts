/** Reads names and ids from a path. A malformed name or id is NOT_FOUND without a read of the storage. */

import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import { NAME_PATTERN } from '../../engine/ensemble/name.ts';
import { EXECUTION_ID } from '../../engine/execution/id.ts';

const IDS = {
  execution: EXECUTION_ID,
  token: /^tok_[0-9A-Z]{26}$/,
  delivery: /^dlv_[0-9A-Z]{26}$/,
  job: /^job_[0-9A-Z]{26}$/,
  receiver: /^(?:webhook:[0-9a-f]{32}|email:.{1,200}|https?:\/\/.{1,2000})$/,
  schedule: /^[A-Za-z][A-Za-z0-9_-]{0,63}\.[0-9a-f]{1,64}$/,
} as const;

const NOT_FOUND: Readonly<Record<string, string>> = {
  receiver: 'this receiver is not paused',
  schedule: 'there is no such schedule; GET /api/v1/schedules has their ids',
};

/** What a path names: by `:id`, or by `:name`. */
export type Thing = keyof typeof IDS | 'ensemble' | 'agent' | 'component';

/** @throws NOT_FOUND */
export function readThing({ id = '', name = '' }: Readonly<Record<string, string>>, what: Thing): void {
  if (what in IDS ? IDS[what as keyof typeof IDS].test(id) : NAME_PATTERN.test(name)) return;
  throw noSuch(what);
}

/** A query parameter that names an execution. @throws INVALID_REQUEST for a malformed id */
export function readExecutionId(given: string | undefined, parameter: string): string | undefined {
  if (given === undefined || IDS.execution.test(given)) return given;
  throw new OrchestratorError('INVALID_REQUEST', `\`${parameter}\` must be the id of an execution`);
}

/** What a caller gets for an error of `run`: every unknown id has the same message; a name has a message of its own. */
export function asUnknown(thrown: unknown, what: Thing): unknown {
  return what in IDS && isOrchestratorError(thrown, 'NOT_FOUND') ? noSuch(what) : thrown;
}

/** The same error for an unknown id and a malformed one. */
function noSuch(what: Thing): OrchestratorError {
  const message = NOT_FOUND[what] ?? (what in IDS ? `there is no such ${what}` : `there is no ${what} with this name`);
  return new OrchestratorError('NOT_FOUND', message);
}
