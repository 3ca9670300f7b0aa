/** `ensemble init`: writes a project that validates, runs and has a test. */

import { mkdir, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { CliError } from './cli-error.ts';
import type { Output } from './output.ts';
import { showPath } from './start.ts';
import { starterFiles } from './starter-files.ts';

/**
 * @param version - of this package; the project asks for it or a newer one that is compatible
 * @returns the exit code
 * @throws CliError, with nothing written, when a file that it would write is there already
 */
export async function init(
  directory: string | undefined,
  version: string,
  output: Output,
  cwd: string,
): Promise<number> {
  const root = resolve(cwd, directory ?? '.');
  const files = starterFiles(packageName(basename(root)), version);
  const taken: string[] = [];
  for (const { path } of files) if (await stat(join(root, path)).catch(() => undefined)) taken.push(path);
  if (taken.length > 0) {
    const shown = showPath(cwd, root);
    throw new CliError(
      `${taken.join(', ')} ${taken.length === 1 ? 'is' : 'are'} in ${shown} already; nothing was written. Name an empty folder: ensemble init my-project`,
    );
  }
  for (const { path, text } of files) {
    const target = join(root, path);
    await mkdir(dirname(target), { recursive: true });
    // `wx`: a file that came to be in the meantime is not lost either.
    await writeFile(target, text, { flag: 'wx' });
    output.print(`  ${showPath(cwd, target)}\n`);
  }
  const enter = root === resolve(cwd) ? '' : `  cd ${showPath(cwd, root)}\n`;
  output.print(`\nNext:\n${enter}  npm install\n  npm start\n  npm test\n`);
  return 0;
}

function packageName(folder: string): string {
  const name = folder
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .replace(/^-+|-+$/g, '');
  return name === '' ? 'my-project' : name;
}
