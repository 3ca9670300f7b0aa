/** Keys of values and objects: what a key may be, and pages of them. */

import { OrchestratorError } from '../../../engine/errors.ts';
import { type KeyPage, MAX_KEY_BYTES } from '../../../engine/ports/data.ts';
import { isPlainText } from '../sql/columns.ts';

/** @throws INVALID_REQUEST for a key that is empty, too long, or not text that UTF-8 can hold without NUL */
export function checkKey(key: string): string {
  const long = key.length * 3 > MAX_KEY_BYTES && new TextEncoder().encode(key).length > MAX_KEY_BYTES;
  if (key !== '' && !long && isPlainText(key)) return key;
  const message = `a key must be text of 1 to ${MAX_KEY_BYTES} bytes of UTF-8, without NUL and halves of surrogate pairs`;
  throw new OrchestratorError('INVALID_REQUEST', message);
}

/** Where the page's keys lie; undefined when no key can begin with the prefix. */
export interface KeyRange {
  /** SQL behind `namespace = ?`, in the place of more conditions. */
  readonly where: string;
  readonly params: readonly string[];
}

/** SQLite compares text by its bytes of UTF-8, so a prefix is a range: no wildcard has to be escaped. */
export function keyRange({ prefix = '', after }: Pick<KeyPage, 'prefix' | 'after'>): KeyRange | undefined {
  if (!isPlainText(prefix)) return undefined;
  const end = behindAll(prefix);
  return {
    where: `key >= ?${after === undefined ? '' : ' AND key > ?'}${end === undefined ? '' : ' AND key < ?'}`,
    params: [prefix, ...(after === undefined ? [] : [after]), ...(end === undefined ? [] : [end])],
  };
}

const LAST = 0x10ffff;
const LAST_BEFORE_SURROGATES = 0xd7ff;
const FIRST_BEHIND_SURROGATES = 0xe000;

/** The first text behind all those that begin with `prefix`; undefined when there is none. */
function behindAll(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) as number);
  while (points.at(-1) === LAST) points.pop();
  const last = points.pop();
  if (last === undefined) return undefined;
  return String.fromCodePoint(...points, last === LAST_BEFORE_SURROGATES ? FIRST_BEHIND_SURROGATES : last + 1);
}
