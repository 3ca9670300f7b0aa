/** Opens the module of `--app`. */

import { resolve } from 'node:path';
import { type ProjectOptions, readApp } from '../start.ts';
import { CliError } from '../terminal/cli-error.ts';

/** @param path - relative to `cwd` @throws CliError if the module can't be used */
export async function openApp(path: string, cwd: string, directory: string): Promise<ProjectOptions> {
  const found = await readApp(resolve(cwd, path), directory);
  if ('problem' in found) throw new CliError(`--app: ${path} ${found.problem}`);
  return found.options;
}
