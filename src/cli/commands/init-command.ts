/** `ensemble init`: writes a project that validates, runs and has a test. */

import { mkdir, stat, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { starterFiles } from '../project/starter-files.ts';
import { editorSchema, showPath } from '../start.ts';
import { CliError } from '../terminal/cli-error.ts';
import type { Output } from '../terminal/output.ts';
import { printJson } from '../terminal/text.ts';

/**
 * @param version - of this package; the project requires it or a newer, compatible version
 * @returns the exit code
 * @throws CliError, before anything is written, when one of the files exists already
 */
export async function init(
  directory: string | undefined,
  version: string,
  output: Output,
  cwd: string,
): Promise<number> {
  const root = resolve(cwd, directory ?? '.');
  const files = starterFiles({
    name: packageName(basename(root)),
    version,
    schema: `${printJson(editorSchema({ agents: [], scripts: ['greet'], ensembles: ['hello'] }))}\n`,
    needsLibsql: !isBuiltin('node:sqlite'),
  });
  const taken: string[] = [];
  for (const { path } of files) if (await stat(join(root, path)).catch(() => undefined)) taken.push(path);
  if (taken.length > 0) {
    const shown = showPath(cwd, root);
    throw new CliError(
      `${taken.join(', ')} already ${taken.length === 1 ? 'exists' : 'exist'} in ${shown}; nothing was written. Name an empty folder: npx ensemble-orchestrator init my-project`,
    );
  }
  for (const { path, text } of files) {
    const target = join(root, path);
    await mkdir(dirname(target), { recursive: true });
    // `wx` fails for a file that was created since the check above.
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
