/**
 * The seed of an execution: 32 hexadecimal characters, from which its random values are derived. A `.` and further characters may
 * follow: then the `Idempotency-Key` of its calls is derived from those. So a peer sees the same key from every execution of a chain
 * of retries, although a child that a retry starts has random values of its own.
 */

import { hashText } from '../base/bytes/hash.ts';

const LENGTH = 32;

/** What random values are derived from. */
export function drawSeedOf(seed: string): string {
  return seed.length <= LENGTH ? seed : seed.slice(0, LENGTH);
}

/** What the keys of calls are derived from. */
export function keySeedOf(seed: string): string {
  return seed.length <= LENGTH ? seed : seed.slice(LENGTH + 1);
}

/** The same random values with other keys. */
export function withKeySeed(seed: string, keySeed: string): string {
  return `${drawSeedOf(seed)}.${keySeed}`;
}

/** 32 hexadecimal characters for a place of an execution: equal on every attempt, after every crash and in every retry. @param key - of the step, with its item */
export function keyAt(seed: string, key: string): string {
  return hashText(`${keySeedOf(seed)}|${key}`);
}
