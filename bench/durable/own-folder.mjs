/** Creates a folder for this process on a real disk, and removes it when the process ends. */

import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** @returns the path of the folder */
export function ownFolder() {
  // In `node_modules`, because the system's folder for temporary files may be in memory.
  const root = process.env.BENCH_FOLDER ?? fileURLToPath(new URL('../node_modules/', import.meta.url));
  const folder = mkdtempSync(join(root, '.bench-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
