/** What a run of the durable tables works in, a folder and a database of its own; both are gone at its end, however it ends. */

import { mkdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { openPostgres } from './postgres.mjs';

/**
 * @param needsPostgres - without it no server is looked for
 * @returns `folder`; `postgres`, as `openPostgres` gives it; `close()`
 */
export async function openPlace(needsPostgres) {
  // Beside the packages and not in the system's folder for temporary files, which may be held in memory.
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
