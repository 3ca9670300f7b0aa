/** Refuses options that this version does not know. */

import { suggestName } from '../engine/base/suggest-name.ts';

/** @throws TypeError for a value that is not an object, and for an unknown key, with the nearest known one */
export function refuseUnknownKeys(options: object, known: readonly string[], what: string): void {
  if (typeof options !== 'object' || options === null) throw new TypeError(`${what}: options must be an object`);
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    const near = suggestName(key, known);
    throw new TypeError(
      `${what}: \`${key}\` is not an option of this version${near ? `; did you mean \`${near}\`?` : ''}`,
    );
  }
}
