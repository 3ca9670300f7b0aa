/** Pseudo-random numbers that are equal for equal seeds, so that a failed run can be repeated. */

import { createHash } from 'node:crypto';

/**
 * @param seed - any text
 * @returns `from(a, b)`: a whole number from `a` to `b`; `one(list)`: an entry of a list
 */
export function seeded(seed) {
  let state = createHash('sha256').update(seed).digest().readUInt32LE(0);
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const from = (a, b) => a + Math.floor(next() * (b - a + 1));
  return { from, one: (list) => list[from(0, list.length - 1)] };
}
