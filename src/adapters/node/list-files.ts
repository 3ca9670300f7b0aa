/** Lists the files of a project folder that are meant for the library, in a stable order. */

import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Files below a folder, as paths with `/` relative to it, sorted. What begins with `.` or `_` is left out, and so is
 * `node_modules`; links to files are followed, links to folders are not.
 *
 * @param folder - absolute; one that isn't there has no files
 * @param accepts - judges a file's own name
 * @param deep - whether to look into folders below; default false
 */
export async function listFiles(folder: string, accepts: (name: string) => boolean, deep = false): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const found: string[] = [];
  for (const entry of entries) {
    const { name } = entry;
    if (/^[._]/.test(name) || name === 'node_modules') continue;
    if (entry.isDirectory()) {
      if (deep) found.push(...(await listFiles(join(folder, name), accepts, true)).map((file) => `${name}/${file}`));
    } else if (accepts(name) && (entry.isFile() || (await isFile(join(folder, name))))) {
      found.push(name);
    }
  }
  return found.sort();
}

/** Whether a path leads to a file. */
export async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() ?? false;
}

/** Whether a path leads to a folder. */
export async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}

/** Whether a name is that of a YAML file. */
export function isYaml(name: string): boolean {
  return /\.ya?ml$/.test(name);
}
