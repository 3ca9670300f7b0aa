/** Turns what Postgres and its drivers throw into the library's errors: which may pass later, and what to look at. */

import { isOrchestratorError, messageOf, OrchestratorError } from '../../../engine/errors.ts';

/** The server is away, starting, stopping, full, or gave this call up for another one. */
const PASSING = /^(08(?!P01)|53|57P|40001|40P01|55P03|57014|25006|25P0[23])/;
/** What sockets and name servers answer, and what postgres.js calls a lost connection. */
const UNREACHABLE = /^(E(?!RR_)[A-Z_]+|CONNECTION_(CLOSED|ENDED|DESTROYED)|CONNECT_TIMEOUT)$/;
/** pg gives these without a code. */
const LOST =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client (has encountered|was closed)|Cannot use a pool)/;
/** A value that no column takes, or that is too large. */
const UNSTORABLE = /^(22|54)/;
/** Prepared statements are gone from one call to the next: somebody shares the connection between transactions. */
const POOLED = /^(26000|42P05)$/;
/** A wrong password or role, no such database, a right that is missing. */
const REFUSED = /^(28|3D000$|42501$)/;
export const UNIQUE_VIOLATION = '23505';

/** The code of a Postgres error (SQLSTATE), or of a driver's; undefined when there is none. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' ? code : undefined;
}

/** What a driver threw: one that stumbles over itself has lost its connection in the midst of a call. */
export function ofDriver(error: unknown): unknown {
  if (!(error instanceof TypeError)) return error;
  const message = 'the driver of Postgres failed; whether it was stored is not known, try again';
  return new OrchestratorError('OVERLOADED', message, { cause: error, retryable: true });
}

/** What a method of the storage throws in place of a driver's error; the library's own, and those of its code, stay as they are. */
export function toStorageError(error: unknown): unknown {
  if (isOrchestratorError(error) || error instanceof RangeError || error instanceof TypeError) return error;
  const code = codeOf(error);
  const options = { cause: error, ...(code !== undefined && { details: { postgres: code } }) };
  if (isPassing(error, code)) {
    const message = 'Postgres could not be reached, or gave the call up; whether it was stored is not known, try again';
    return new OrchestratorError('OVERLOADED', message, { ...options, retryable: true });
  }
  if (code !== undefined && (UNSTORABLE.test(code) || /^invalid memory alloc/.test(messageOf(error)))) {
    const message = `Postgres can't hold what is to be stored (${messageOf(error)}); make it smaller`;
    return new OrchestratorError('INVALID_OUTPUT', message, options);
  }
  if (code !== undefined && POOLED.test(code)) {
    const message =
      'postgresStorage: prepared statements do not stay on the connection; behind a pooler that shares connections between transactions, set `sessions: false`';
    return new OrchestratorError('NOT_CONFIGURED', message, options);
  }
  if (code !== undefined && REFUSED.test(code)) {
    const message = `postgresStorage: Postgres refuses the connection, or a right that is needed (${messageOf(error)}); look at the user, the password, the database and its grants`;
    return new OrchestratorError('NOT_CONFIGURED', message, options);
  }
  return new OrchestratorError('INTERNAL', 'Postgres failed; the error that it gave is the cause of this one', options);
}

function isPassing(error: unknown, code: string | undefined): boolean {
  if (code !== undefined) return PASSING.test(code) || UNREACHABLE.test(code);
  return error instanceof Error && LOST.test(error.message);
}
