/** Watches the files of a project by looking at them again and again: that works with every editor, file system and container. */

import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const LOOK_MS = 200;
/** Definitions and modules. A service may write other files, such as JSON, into its own folder. */
const SOURCE = /\.(?:ya?ml|[cm]?[jt]s)$/;

/**
 * Calls `onChange` after files have changed, and two looks in a row have found the same: an editor writes a file in several steps.
 *
 * @param directory - the project folder, absolute
 * @returns a function that ends the watch, and resolves when `onChange` is no longer running
 */
export async function watchFiles(directory: string, onChange: () => Promise<void>): Promise<() => Promise<void>> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const look = () => fingerprint(directory, '');
  let known = await look();
  const run = async () => {
    let last = known;
    for (;;) {
      await wait(LOOK_MS, undefined, { signal });
      const now = await look();
      if (now !== known && now === last) {
        known = now;
        await onChange();
      }
      last = now;
    }
  };
  const running = run().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  return () => {
    stopping.abort();
    return running;
  };
}

/** The name, time and size of every source file. @param folder - relative to the project, with `/` at its end; empty for the project */
async function fingerprint(directory: string, folder: string): Promise<string> {
  const entries = await readdir(join(directory, folder), { withFileTypes: true }).catch(() => []);
  const found = await Promise.all(
    entries.map(async (entry) => {
      const path = folder + entry.name;
      if (entry.isDirectory()) return isIgnored(entry.name) ? '' : fingerprint(directory, `${path}/`);
      if (path !== '.env' && !SOURCE.test(path) && !path.startsWith('scripts/')) return '';
      // A file that is gone at this moment is a change too.
      const about = await stat(join(directory, path)).catch(() => undefined);
      return about ? `${path} ${about.mtimeMs} ${about.size} ${about.ino}\n` : '';
    }),
  );
  return found.join('');
}

function isIgnored(name: string): boolean {
  return name.startsWith('.') || name === 'node_modules';
}
