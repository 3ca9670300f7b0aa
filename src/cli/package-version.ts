/** The version of this package, from the manifest that it is installed with. */

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Looks upwards, since the built file stands nearer to the manifest than the source does. */
export function packageVersion(): string {
  for (const up of ['../', '../../']) {
    const path = fileURLToPath(new URL(`${up}package.json`, import.meta.url));
    if (existsSync(path)) return (JSON.parse(readFileSync(path, 'utf8')) as { readonly version: string }).version;
  }
  throw new Error('the package.json of ensemble-orchestrator is missing; install the package again');
}
