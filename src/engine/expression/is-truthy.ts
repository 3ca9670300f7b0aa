/** What a guard's value decides. */

import type { Json } from '../json.ts';

/** Truth as in JavaScript: null, false, 0, NaN and '' are false; every array and object is true. */
export function isTruthy(value: Json): boolean {
  return Boolean(value);
}
