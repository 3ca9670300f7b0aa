/** Turns what SQLite throws into the library's errors: which may pass later, what is damaged, and what to look at. */

import { messageOf, OrchestratorError } from '../../../engine/errors.ts';

const BUSY = 5;
const LOCKED = 6;
const NO_MEMORY = 7;
const IO_ERROR = 10;
export const CORRUPT = 11;
const FULL = 13;
const CANT_OPEN = 14;
const PROTOCOL = 15;
const TOO_BIG = 18;
export const NOT_A_DATABASE = 26;

/** The disk, the memory or the open files of the process: what fails now may pass. */
const PASSING: readonly number[] = [NO_MEMORY, IO_ERROR, CANT_OPEN, PROTOCOL];
/** The file ends in the midst of a page (522), and the file system says itself that it is damaged (8458): extended codes. */
const DAMAGED: readonly number[] = [522, 8458];

/** Deno gives no number where a whole script is run. */
const NUMBERS: ReadonlyMap<string, number> = new Map([
  ['database is locked', BUSY],
  ['database or disk is full', FULL],
  ['string or blob too big', TOO_BIG],
  ['database disk image is malformed', CORRUPT],
  ['file is not a database', NOT_A_DATABASE],
]);

/** libsql has no name for some of the extended codes. */
const UNNAMED = /^UNKNOWN_SQLITE_ERROR_(\d+)$/;

/** SQLite's result code, extended where the driver says so; undefined for errors that are not SQLite's. */
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

/** SQLite's primary result code; undefined for errors that are not SQLite's. */
export function resultCode(error: unknown): number | undefined {
  const code = extendedCode(error);
  return code === undefined ? undefined : code & 0xff;
}

export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === BUSY || code === LOCKED;
}

/** Whether a part of the file can't be read: what needs it fails each time, all else continues. */
export function isCorrupt(error: unknown): boolean {
  return resultCode(error) === CORRUPT || DAMAGED.includes(extendedCode(error) ?? 0);
}

/**
 * What a method of the storage throws in place of a driver's error; any other thrown value stays as it is.
 * @param row - what was to be read, where that is one row: `execution exec_01...`
 */
export function toStorageError(error: unknown, path: string, row?: string): unknown {
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
  if (isCorrupt(error)) {
    const what = row === undefined ? 'what was asked for' : row;
    const message = `the SQLite file ${path} is damaged, and ${what} can't be read or written (${messageOf(error)}); restore the file from a backup, or save what can be read with \`sqlite3 FILE .recover\``;
    return new OrchestratorError('INTERNAL', message, { cause: error, details: { ...details, ...(row && { row }) } });
  }
  if (PASSING.includes(code)) {
    const message = `SQLite could not use the file for now: ${messageOf(error)} (result code ${code}); whether it was stored is not known, try again`;
    return new OrchestratorError('OVERLOADED', message, { cause: error, details, retryable: true });
  }
  return new OrchestratorError('INTERNAL', `SQLite failed: ${messageOf(error)} (result code ${code})`, {
    cause: error,
    details,
  });
}
