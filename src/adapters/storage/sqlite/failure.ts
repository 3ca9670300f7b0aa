/** Turns what SQLite throws into the library's errors: which may pass later, and what to look at. */

import { messageOf, OrchestratorError } from '../../../engine/errors.ts';

const BUSY = 5;
const LOCKED = 6;
const CORRUPT = 11;
const FULL = 13;
const TOO_BIG = 18;
export const NOT_A_DATABASE = 26;

/** Deno gives no number where a whole script is run. */
const NUMBERS: ReadonlyMap<string, number> = new Map([
  ['database is locked', BUSY],
  ['database or disk is full', FULL],
  ['string or blob too big', TOO_BIG],
  ['database disk image is malformed', CORRUPT],
  ['file is not a database', NOT_A_DATABASE],
]);

/** SQLite's primary result code; undefined for errors that are not SQLite's. */
export function resultCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, errcode, rawCode, errno, message } = error as Record<string, unknown>;
  if (typeof code !== 'string' || !/^(ERR_SQLITE_ERROR$|SQLITE_)/.test(code)) return undefined;
  const number = errcode ?? rawCode ?? errno ?? NUMBERS.get(String(message));
  return typeof number === 'number' ? number & 0xff : undefined;
}

export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === BUSY || code === LOCKED;
}

/** What a method of the storage throws in place of a driver's error; any other thrown value stays as it is. */
export function toStorageError(error: unknown): unknown {
  const code = resultCode(error);
  if (code === undefined) return error;
  const details = { sqlite: code };
  if (isBusy(error)) {
    const message =
      'the SQLite file is locked by another process for longer than busyTimeoutMs; nothing was stored, try again';
    return new OrchestratorError('OVERLOADED', message, { cause: error, details, retryable: true });
  }
  if (code === FULL) {
    const message = "the SQLite file's disk is full; nothing was stored, make room and try again";
    return new OrchestratorError('OVERLOADED', message, { cause: error, details, retryable: true });
  }
  if (code === TOO_BIG) {
    const message = "SQLite can't hold what is to be stored, because it is too large; make it smaller";
    return new OrchestratorError('INVALID_OUTPUT', message, { cause: error, details });
  }
  if (code === CORRUPT) {
    const message = 'the SQLite file is damaged; restore it from a copy, or name another file';
    return new OrchestratorError('INTERNAL', message, { cause: error, details });
  }
  return new OrchestratorError('INTERNAL', `SQLite failed: ${messageOf(error)} (result code ${code})`, {
    cause: error,
    details,
  });
}
