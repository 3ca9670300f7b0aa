/** Builds the program of a separate process from TypeScript. Its packages are not in it. */

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../', import.meta.url));

/** @param source - from the root of the repository @param outfile - in a folder from which the packages can be resolved */
export async function buildChild(source: string, outfile: string): Promise<void> {
  await build({
    entryPoints: [join(ROOT, source)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    external: ['#dashboard'],
    logLevel: 'error',
  });
}
