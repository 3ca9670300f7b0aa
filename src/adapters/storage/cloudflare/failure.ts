/** The failures of Workers KV, R2 and D1, which come as plain errors with a text. */

import { isOrchestratorError, messageOf, OrchestratorError } from '../../../engine/base/errors.ts';

/** Numbers in the texts of R2 and KV for what is too large, and for what no repetition repairs. */
const TOO_LARGE = /\b(413|414|100100|10012)\b/;
const REFUSED = /\b(400|401|403|404|10002|10003|10004|10005|10006|10020)\b/;

/** @param store - the function that made the store, for the message */
export function toCloudflareFailure(store: string, thrown: unknown): OrchestratorError {
  if (isOrchestratorError(thrown)) return thrown;
  const text = messageOf(thrown);
  const cause = { cause: thrown };
  if (TOO_LARGE.test(text)) return new OrchestratorError('INVALID_REQUEST', `${store}: the value is too large`, cause);
  if (REFUSED.test(text)) {
    return new OrchestratorError(
      'NOT_CONFIGURED',
      `${store}: the call is refused; check the binding of the Worker`,
      cause,
    );
  }
  return new OrchestratorError('OVERLOADED', `${store}: the store did not do the call`, { ...cause, retryable: true });
}

/** Runs a call of a binding. @throws OrchestratorError for whatever the binding throws; the signal's reason after it has aborted */
export async function withBindingErrors<T>(store: string, call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await call();
  } catch (thrown) {
    signal?.throwIfAborted();
    throw toCloudflareFailure(store, thrown);
  }
}
