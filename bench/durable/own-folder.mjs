/** A folder of this process on a real disk, gone when the process ends. */

import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** @returns the folder's path */
export function ownFolder() {
  // Beside the packages and not in the system's folder for temporary files, which may be held in memory.
  const root = process.env.BENCH_FOLDER ?? fileURLToPath(new URL('../node_modules/', import.meta.url));
  const folder = mkdtempSync(join(root, '.bench-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
