/** Checks JSON text before it is parsed: some parsers recurse as deep as the text nests, or take seconds for many brackets. */

import { MAX_DEPTH } from './json.ts';

/** Whether the text nests deeper than {@link MAX_DEPTH}. The text need not be valid JSON. */
export function nestsTooDeep(text: string): boolean {
  return countValues(text) === undefined;
}

/** @returns an upper bound of the values in a JSON text, without keys; undefined when it nests deeper than {@link MAX_DEPTH} */
export function countValues(text: string): number | undefined {
  let values = 1;
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === 0x5c) i++;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > MAX_DEPTH) return undefined;
      values++;
    } else if (code === 0x5d || code === 0x7d) depth--;
    else if (code === 0x2c) values++;
  }
  return values;
}
