/** The built package, as a user's program imports it: in a separate process, by its name. */

import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
export const DIST = join(ROOT, 'dist');

if (!existsSync(join(DIST, 'index.js'))) throw new Error('dist/ is empty: run `npm run build` first (`npm test` does)');

interface Manifest {
  readonly version: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

export const manifest: Manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

/** Every JavaScript file of the build, with its text. */
export function builtFiles(): readonly { readonly name: string; readonly text: string }[] {
  const names = readdirSync(DIST).filter((name) => name.endsWith('.js'));
  return names.map((name) => ({ name, text: readFileSync(join(DIST, name), 'utf8') }));
}

/**
 * Runs a program in a separate Node.js process. The program may import the package by name.
 *
 * @param flags - of `node`
 * @returns its output, read as JSON
 */
export async function runNode(program: string, flags: readonly string[] = ['--input-type=module']): Promise<unknown> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--no-warnings', ...flags, '--eval', program], {
    cwd: ROOT,
  });
  return JSON.parse(stdout);
}
