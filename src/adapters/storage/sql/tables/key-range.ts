/** The range of keys of one page, as SQL. */

import { isPlainText, type KeyPage } from '../../../../engine/storage/data.port.ts';

export interface KeyRange {
  /** Conditions on the column `key`. @param first - the number of the first parameter */
  where(first: number): string;
  readonly params: readonly string[];
}

/**
 * A prefix is a range, because the database compares text by its UTF-8 bytes. So no wildcard needs escaping.
 * @returns undefined when no key can begin with the prefix
 */
export function keyRange({ prefix = '', after }: Pick<KeyPage, 'prefix' | 'after'>): KeyRange | undefined {
  if (!isPlainText(prefix)) return undefined;
  const end = firstAfter(prefix);
  const bounds: readonly (readonly [is: string, text: string | undefined])[] = [
    ['>=', prefix],
    ['>', after],
    ['<', end],
  ];
  const given = bounds.filter((bound): bound is [string, string] => bound[1] !== undefined);
  return {
    where: (first) => given.map(([is], i) => `key ${is} $${first + i}`).join(' AND '),
    params: given.map(([, text]) => text),
  };
}

const LAST = 0x10ffff;
const LAST_BEFORE_SURROGATES = 0xd7ff;
const FIRST_AFTER_SURROGATES = 0xe000;

/** The first text after all texts that begin with `prefix`; undefined when there is none. */
export function firstAfter(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) as number);
  while (points.at(-1) === LAST) points.pop();
  const last = points.pop();
  if (last === undefined) return undefined;
  return String.fromCodePoint(...points, last === LAST_BEFORE_SURROGATES ? FIRST_AFTER_SURROGATES : last + 1);
}
