/** Pages of the keys of values and objects. */

import { isPlainText, type KeyPage } from '../../../engine/ports/data.ts';

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
