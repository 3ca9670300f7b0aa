/** Imports the default export of a project's module, or says why it can't be imported. */

import { join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { messageOf } from '../engine/base/errors.ts';
import { withTimeout } from '../engine/base/time/with-timeout.ts';

/** The default export (undefined if the module has none), or the problem. */
export type Imported = { readonly value: unknown } | { readonly problem: string };

// Some runtimes write modules as URLs, others as paths.
const STACK_PLACE = /((?:file:\/\/|[A-Za-z]:[\\/]|\/)[^\s()]*?):(\d+)(?::\d+)?\)?$/gm;
const NO_TYPESCRIPT =
  "this runtime can't import `.ts` files: install the package jiti (`npm install jiti`), use Node 22.18 or newer, Deno or Bun, or write it as `.mjs`";
// Node.js without TypeScript, and TypeScript that Node.js can't strip, such as an enum.
const NEEDS_TRANSLATION = ['ERR_UNKNOWN_FILE_EXTENSION', 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX'];

/** The longest time of an import. */
const IMPORT_MS = 10_000;

const setTimer = (ms: number, callback: () => void) => {
  const timer = setTimeout(callback, ms);
  return () => clearTimeout(timer);
};

function neverEnds(ms: number): string {
  return `can't be imported: its import did not end within ${ms / 1000} s. A top-level \`await\` of it, or of a module that it imports, may never settle`;
}

type Exports = { readonly default?: unknown; readonly [name: string]: unknown };
type ImportModule = (url: string) => Promise<Exports>;

/**
 * @param directory - the project folder, absolute
 * @param file - relative to the project folder, with `/`
 * @param query - added to the URL, such as `?reload=2`: a runtime loads each URL once
 */
export async function importDefault(...given: Parameters<typeof importModule>): Promise<Imported> {
  const imported = await importModule(...given);
  return 'problem' in imported ? imported : { value: imported.value.default };
}

/** Imports a module like {@link importDefault}, with all of its exports. */
export async function importModule(
  directory: string,
  file: string,
  query = '',
  own: ImportModule = (url) => import(url),
  loadJiti = () => import('jiti'),
  limitMs = IMPORT_MS,
): Promise<{ readonly value: Exports } | { readonly problem: string }> {
  const { href } = pathToFileURL(join(directory, file));
  try {
    const importing = own(href + query).catch((error: unknown) => importTypeScript(error, href, loadJiti));
    // A module may wait for ever at its top level. What it throws later is ignored.
    const found = await withTimeout(
      importing.then((module) => ({ module })),
      limitMs,
      setTimer,
    );
    if (!found) return { problem: neverEnds(limitMs) };
    const { module } = found;
    return module === undefined ? { problem: NO_TYPESCRIPT } : { value: module };
  } catch (error) {
    return { problem: `can't be imported: ${describeImportError(error)}${placeOf(error, directory, file)}` };
  }
}

/**
 * Imports a file with jiti, if the runtime failed because it can't read TypeScript.
 *
 * @returns undefined if jiti is not installed and the runtime knows no TypeScript
 * @throws `error`, if jiti can't help
 */
async function importTypeScript(
  error: unknown,
  url: string,
  loadJiti: () => Promise<typeof import('jiti')>,
): Promise<Exports | undefined> {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined || !NEEDS_TRANSLATION.includes(code)) throw error;
  const jiti = await loadJiti().catch(() => undefined);
  if (jiti !== undefined) {
    // Without caches, a changed file is read again.
    return jiti.createJiti(url, { fsCache: false, moduleCache: false, interopDefault: false }).import<Exports>(url);
  }
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION') return undefined;
  throw error;
}

function describeImportError(error: unknown): string {
  const name = error instanceof Error && error.name !== 'Error' ? `${error.name}: ` : '';
  // jiti adds absolute paths in further lines.
  return name + messageOf(error).split('\n', 1)[0]?.trim();
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
