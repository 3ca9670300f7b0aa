/** Turns SQLite's errors into the library's errors: transient failures, damaged files, and what the user must fix. */

import { messageOf, OrchestratorError } from '../../../../engine/base/errors.ts';

const BUSY = 5;
const LOCKED = 6;
const NO_MEMORY = 7;
export const READ_ONLY = 8;
const IO_ERROR = 10;
export const CORRUPT = 11;
const FULL = 13;
const CANT_OPEN = 14;
const PROTOCOL = 15;
const TOO_BIG = 18;
export const NOT_A_DATABASE = 26;

/** Trouble with the disk, the memory or the open files of the process, which may succeed later. */
const TRANSIENT: readonly number[] = [NO_MEMORY, IO_ERROR, CANT_OPEN, PROTOCOL];
/** Extended codes: the file ends in the middle of a page (522); the file system reports damage (8458). */
const DAMAGED: readonly number[] = [522, 8458];

/** Deno gives no code for an error of a whole script. */
const NUMBERS: ReadonlyMap<string, number> = new Map([
  ['database is locked', BUSY],
  ['database or disk is full', FULL],
  ['string or blob too big', TOO_BIG],
  ['database disk image is malformed', CORRUPT],
  ['file is not a database', NOT_A_DATABASE],
]);

/** libsql has no name for some extended codes. */
const UNNAMED = /^UNKNOWN_SQLITE_ERROR_(\d+)$/;

/** SQLite's result code, extended if the driver gives the extended code; undefined for other errors. */
function extendedCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, errcode, rawCode, errno, message } = error as Record<string, unknown>;
  if (typeof code !== 'string') return undefined;
  const [, unnamed] = UNNAMED.exec(code) ?? [];
  if (unnamed !== undefined) return Number(unnamed);
  if (!/^(ERR_SQLITE_ERROR$|SQLITE_)/.test(code)) return undefined;
  const number = errcode ?? rawCode ?? errno ?? NUMBERS.get(String(message));
  return typeof number === 'number' ? number : undefined;
}

/** SQLite's primary result code; undefined for other errors. */
export function resultCode(error: unknown): number | undefined {
  const code = extendedCode(error);
  return code === undefined ? undefined : code & 0xff;
}

export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === BUSY || code === LOCKED;
}

/** Whether the call may succeed later: the file is locked, its disk is full, or the process lacks memory or files. */
export function isTransient(error: unknown): boolean {
  const code = resultCode(error);
  return isBusy(error) || code === FULL || (code !== undefined && TRANSIENT.includes(code));
}

/** Whether a part of the file is damaged. Calls that need this part always fail; other calls continue to work. */
export function isCorrupt(error: unknown): boolean {
  return resultCode(error) === CORRUPT || DAMAGED.includes(extendedCode(error) ?? 0);
}

/**
 * Turns a driver's error into the error that a storage method throws. Any other thrown value stays as it is.
 * @param row - the one row that was to be read, in words: `execution exec_01...`
 */
export function toStorageError(error: unknown, path: string, row?: string): unknown {
  const code = resultCode(error);
  if (code === undefined) return error;
  const details = { sqlite: code };
  if (isBusy(error)) {
    const message =
      'another process has locked the SQLite file for longer than `timeout`; nothing was stored, try again';
    return new OrchestratorError('OVERLOADED', message, { cause: error, details, retryable: true });
  }
  if (code === FULL) {
    const message = "the SQLite file's disk is full; nothing was stored, free some space and try again";
    return new OrchestratorError('OVERLOADED', message, { cause: error, details, retryable: true });
  }
  if (code === TOO_BIG) {
    const message = "SQLite can't store the value, because it is too large; make it smaller";
    return new OrchestratorError('INVALID_OUTPUT', message, { cause: error, details });
  }
  if (isCorrupt(error)) {
    const what = row === undefined ? 'the requested data' : row;
    const message = `the SQLite file ${path} is damaged, and ${what} can't be read or written (${messageOf(error)}); restore the file from a backup, or save what can be read with \`sqlite3 FILE .recover\``;
    return new OrchestratorError('INTERNAL', message, { cause: error, details: { ...details, ...(row && { row }) } });
  }
  if (TRANSIENT.includes(code)) {
    const message = `SQLite could not use the file for now: ${messageOf(error)} (result code ${code}); whether it was stored is not known, try again`;
    return new OrchestratorError('OVERLOADED', message, { cause: error, details, retryable: true });
  }
  return new OrchestratorError('INTERNAL', `SQLite failed: ${messageOf(error)} (result code ${code})`, {
    cause: error,
    details,
  });
}
