/** Refuses options that this version does not know: of `createOrchestrator`, its methods and every factory. */

import { suggestName } from './suggest-name.ts';

/** Words of other libraries, and the word for the same option here. */
const WORDS: Readonly<Record<string, string>> = {
  ...{ connectionString: 'url', endpoint: 'url', uri: 'url', address: 'url' },
  ...{ file: 'path', filename: 'path', prefix: 'namespace', timeoutMs: 'timeout' },
};

/** @throws TypeError for a value that is not an object, and for an unknown key, with the nearest known one */
export function refuseUnknownKeys(options: object, known: readonly string[], what: string): void {
  if (typeof options !== 'object' || options === null) throw new TypeError(`${what}: options must be an object`);
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    const word = Object.hasOwn(WORDS, key) ? WORDS[key] : undefined;
    const near = word !== undefined && known.includes(word) ? word : suggestName(key, known);
    const help = near ? `did you mean \`${near}\`?` : `the options are ${known.join(', ')}`;
    throw new TypeError(`${what}: \`${key}\` is not an option of this version; ${help}`);
  }
}
