/** Creates the folder and the database for one run of the durable tables. Both are removed at its end, even after a failure. */

import { mkdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { openPostgres } from './postgres.mjs';

/**
 * @param needsPostgres - if false, no server is used
 * @returns `folder`; `postgres`, as `openPostgres` returns it; `close()`
 */
export async function openPlace(needsPostgres) {
  // In `node_modules`, because the system's folder for temporary files may be in memory.
  const folder = fileURLToPath(new URL(`../node_modules/.bench-${process.pid}/`, import.meta.url));
  mkdirSync(folder, { recursive: true });
  const postgres = needsPostgres ? await openPostgres(`ensemble_bench_${process.pid}`) : undefined;
  let closed = false;
  const close = async () => {
    if (closed) return;
    closed = true;
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
    rmSync(folder, { recursive: true, force: true });
    await postgres?.drop?.();
  };
  const interrupted = async () => {
    await close();
    process.exit(130);
  };
  process.on('SIGINT', interrupted).on('SIGTERM', interrupted);
  return { folder, postgres, close };
}
