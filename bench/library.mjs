/** The built library that is measured: this checkout's `dist`, or another build that LIBRARY names. */

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Path of the built main entry. */
export const entry = process.env.LIBRARY ? resolve(process.env.LIBRARY) : join(root, 'dist', 'index.js');

export function importLibrary() {
  return import(pathToFileURL(entry).href);
}

/** @param name - of another entry, such as `sqlite`. @returns undefined if the build has no such entry */
export async function importEntry(name) {
  const path = join(dirname(entry), `${name}.js`);
  return existsSync(path) ? import(pathToFileURL(path).href) : undefined;
}

/** Builds the library if there is no `dist`, or if a source file is newer. */
export function buildLibrary() {
  if (process.env.LIBRARY) return;
  const built = existsSync(entry) ? statSync(entry).mtimeMs : 0;
  if (newestChange(join(root, 'src')) <= built) return;
  if (!existsSync(join(root, 'node_modules'))) npm(['ci', '--no-audit', '--no-fund']);
  npm(['run', '--silent', 'build']);
}

function newestChange(folder) {
  return Math.max(...readdirSync(folder, { recursive: true }).map((file) => statSync(join(folder, file)).mtimeMs));
}

function npm(args) {
  console.error(`npm ${args.join(' ')} ...`);
  const ran = spawnSync('npm', args, {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (ran.status !== 0)
    throw new Error(`\`npm ${args.join(' ')}\` failed in the folder of the library; see its output above`);
}
