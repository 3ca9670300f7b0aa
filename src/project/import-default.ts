/** Imports the default export of a project's module, or says why it can't be imported. */

import { join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { messageOf } from '../engine/base/errors.ts';

/** The default export (undefined if the module has none), or the problem. */
export type Imported = { readonly value: unknown } | { readonly problem: string };

// Some runtimes write modules as URLs, others as paths.
const STACK_PLACE = /((?:file:\/\/|[A-Za-z]:[\\/]|\/)[^\s()]*?):(\d+)(?::\d+)?\)?$/gm;
const NO_TYPESCRIPT =
  "this runtime can't import `.ts` files: use Node 22.18 or newer, Deno or Bun, or write it as `.mjs`";

/**
 * @param directory - the project folder, absolute
 * @param file - relative to the project folder, with `/`
 * @param query - added to the URL, such as `?reload=2`: a runtime loads each URL once
 */
export async function importDefault(directory: string, file: string, query = ''): Promise<Imported> {
  try {
    const module: { readonly default?: unknown } = await import(pathToFileURL(join(directory, file)).href + query);
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

// The first place of the user's own code in the stack. The stack of a syntax error has none: only a process that ends shows it.
function placeOf(error: unknown, directory: string, file: string): string {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  for (const [, place = '', line] of stack.matchAll(STACK_PLACE)) {
    const path = relative(directory, place.startsWith('file:') ? fileURLToPath(place.replace(/\?.*/, '')) : place);
    if (!path.startsWith('..') && !path.includes('node_modules')) return ` (${path.split(sep).join('/')}:${line})`;
  }
  return error instanceof SyntaxError ? `; to see where, run: node ${file}` : '';
}
