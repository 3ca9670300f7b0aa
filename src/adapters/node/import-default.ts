/** Imports the default export of a project's module, and says in the user's words why it can't be. */

import { join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { messageOf } from '../../engine/errors.ts';

/** The default export (undefined when the module has none), or what is wrong. */
export type Imported = { readonly value: unknown } | { readonly problem: string };

// Runtimes write modules as URLs or as paths.
const STACK_PLACE = /((?:file:\/\/|[A-Za-z]:[\\/]|\/)[^\s()]*?):(\d+)(?::\d+)?\)?$/gm;
const NO_TYPESCRIPT =
  'this runtime imports no `.ts` files: use Node 22.18 or newer, Deno or Bun, or write it as `.mjs`';

/**
 * @param directory - the project folder, absolute
 * @param file - relative to it, with `/`
 */
export async function importDefault(directory: string, file: string): Promise<Imported> {
  try {
    const module: { readonly default?: unknown } = await import(pathToFileURL(join(directory, file)).href);
    return { value: module.default };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_UNKNOWN_FILE_EXTENSION') return { problem: NO_TYPESCRIPT };
    return { problem: `can't be imported: ${describe(error)}${placeOf(error, directory, file)}` };
  }
}

function describe(error: unknown): string {
  const name = error instanceof Error && error.name !== 'Error' ? `${error.name}: ` : '';
  return name + messageOf(error);
}

// The first line of the user's own code in the stack. A syntax error has none there, and only shows it when it ends a process.
function placeOf(error: unknown, directory: string, file: string): string {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  for (const [, place = '', line] of stack.matchAll(STACK_PLACE)) {
    const path = relative(directory, place.startsWith('file:') ? fileURLToPath(place.replace(/\?.*/, '')) : place);
    if (!path.startsWith('..') && !path.includes('node_modules')) return ` (${path.split(sep).join('/')}:${line})`;
  }
  return error instanceof SyntaxError ? `; to see where, run: node ${file}` : '';
}
