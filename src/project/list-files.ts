/** Lists the files of a project folder that the library reads, in a stable order. */

import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * The files of a folder, sorted, as paths relative to it with `/`. Names that begin with `.` or `_`, and `node_modules`, are left
 * out. Links to files are followed, links to folders are not.
 *
 * @param folder - absolute. A folder that does not exist has no files
 * @param accepts - called with the name of a file, without its folder
 * @param deep - whether to list the files of inner folders too. Default false
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

/** Whether a path is a file. */
export async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() ?? false;
}

/** Whether a path is a folder. */
export async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}

/** Whether a file has definitions, by its name: it is YAML, and no test file. */
export function isDefinition(name: string): boolean {
  return /\.ya?ml$/.test(name) && !isTestFile(name);
}

/** Whether a file has tests of an ensemble, by its name. */
export function isTestFile(name: string): boolean {
  return /\.test\.ya?ml$/.test(name);
}
