/** Reads the file of a component. */

import { readFile, realpath, stat } from 'node:fs/promises';
import { relative, resolve, sep } from 'node:path';
import { CliError } from '../terminal/cli-error.ts';

const MAX_BYTES = 4 * 1024 * 1024;

export interface ComponentFile {
  /** Relative to the folder, with `/`. */
  readonly path: string;
  readonly text: string;
}

/**
 * @param file - relative to `cwd`
 * @param folder - the project, in which the file must be. Undefined: it may be anywhere
 * @throws CliError for a file that can't be read, and for one out of the project, also through a link
 */
export async function readComponentFile(file: string, cwd: string, folder: string | undefined): Promise<ComponentFile> {
  const absolute = resolve(cwd, file);
  const found = await stat(absolute).catch(() => undefined);
  if (!found?.isFile()) throw new CliError(`there is no file ${file}`);
  if (found.size > MAX_BYTES)
    throw new CliError(`${file} has ${found.size} bytes, and a component at most ${MAX_BYTES}`);
  const root = folder ?? cwd;
  const path = relative(await realpath(root), await realpath(absolute))
    .split(sep)
    .join('/');
  const isInside = path !== '..' && !path.startsWith('../') && !/^[A-Za-z]:/.test(path);
  if (folder !== undefined && !isInside) throw new CliError(`${file} is not in the project ${root}`);
  const bytes = await readFile(absolute);
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return { path: isInside ? path : file, text };
  } catch {
    throw new CliError(`${file} is not text in UTF-8`);
  }
}
