/** Decides whether the value of a guard counts as true. */

import type { Json } from '../base/json/json.ts';

/** Truth as in JavaScript: null, false, 0, NaN and '' are false; every array and object is true. */
export function isTruthy(value: Json): boolean {
  return Boolean(value);
}
