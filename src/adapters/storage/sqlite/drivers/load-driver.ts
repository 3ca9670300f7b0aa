/** Chooses the SQLite driver of this runtime, and loads it when the first file is opened. */

import { messageOf, OrchestratorError } from '../../../../engine/base/errors.ts';
import { type BunSqlite, bunDriver } from './bun-driver.ts';
import type { SqlDriver } from './driver.ts';
import { type Libsql, libsqlDriver } from './libsql-driver.ts';
import { type NodeSqlite, nodeDriver } from './node-driver.ts';

export const DRIVERS = ['node:sqlite', 'bun:sqlite', 'libsql'] as const;
export type SqliteDriverName = (typeof DRIVERS)[number];

export type ImportModule = (name: string) => Promise<unknown>;

// The module's name is a variable, so that no bundler includes a runtime's own module or a native package.
const importModule: ImportModule = (name) => import(/* @vite-ignore */ /* webpackIgnore: true */ name);

const LOADERS: Readonly<Record<SqliteDriverName, (module: unknown) => SqlDriver>> = {
  'node:sqlite': (module) => nodeDriver(module as NodeSqlite),
  'bun:sqlite': (module) => bunDriver(module as BunSqlite),
  libsql: (module) => libsqlDriver(module as Libsql),
};

/**
 * @param wanted - the only driver to try; by default the runtime's own driver, otherwise `libsql`
 * @throws NOT_CONFIGURED when no driver can be loaded; the message says what to install
 */
export async function loadDriver(
  wanted: SqliteDriverName | undefined,
  load: ImportModule = importModule,
  onBun = 'Bun' in globalThis,
): Promise<SqlDriver> {
  const { name, module } = await loadSqlite(wanted, 'sqliteStorage', load, onBun);
  return LOADERS[name](module);
}

/** Loads the module of a driver. @param who - the function that the app called, for the message of an error */
export async function loadSqlite(
  wanted: SqliteDriverName | undefined,
  who: string,
  load: ImportModule = importModule,
  onBun = 'Bun' in globalThis,
): Promise<{ readonly name: SqliteDriverName; readonly module: unknown }> {
  const loadOrSay = async (name: SqliteDriverName) => {
    try {
      return { name, module: await load(name) };
    } catch (cause) {
      const message = `${who}: ${describeMissingDriver(name, cause)}`;
      throw new OrchestratorError('NOT_CONFIGURED', message, { cause, details: { driver: name } });
    }
  };
  if (wanted !== undefined) return loadOrSay(wanted);
  if (onBun) return loadOrSay('bun:sqlite');
  const own = await load('node:sqlite').catch(() => undefined);
  return own === undefined ? loadOrSay('libsql') : { name: 'node:sqlite', module: own };
}

function describeMissingDriver(name: SqliteDriverName, cause: unknown): string {
  if (name !== 'libsql') return `this runtime has no ${name}; leave out \`driver\`, or install the package libsql`;
  if (isMissing(cause)) {
    return 'this runtime has no SQLite of its own; install the package libsql (`npm install libsql`), or use Node.js 22.13 or newer, Deno or Bun';
  }
  return `the package libsql is there but can't be loaded (${messageOf(cause)}); install it again on this platform`;
}

// A missing native part of libsql has a scope in its name: `@libsql/linux-x64-gnu`.
function isMissing(cause: unknown): boolean {
  return /Cannot find (package|module) '?"?libsql\b/.test(messageOf(cause));
}
