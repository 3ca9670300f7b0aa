/** Finds and opens the store that a command works on: the one it names, the config's, or the project's own file. */

import { mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { messageOf } from '../engine/errors.ts';
import { CliError, wrongUsage } from './cli-error.ts';
import { requireProject } from './find-target.ts';
import * as start from './start.ts';

export type StoreChoice =
  | { readonly kind: 'memory' }
  | {
      readonly kind: 'sqlite';
      /** Absolute. */
      readonly path: string;
      /** Its folder is made with it: the project's own. */
      readonly own?: true;
    }
  | {
      readonly kind: 'postgres';
      /** May hold a password. */
      readonly url: string;
    };

/**
 * @param given - the value of `--storage`; a file is relative to `cwd`
 * @throws CliError for what is no store
 */
export function readStorage(given: string, cwd: string): StoreChoice {
  if (given === 'memory' || given === 'sqlite::memory:') return { kind: 'memory' };
  if (/^postgres(ql)?:\/\/./.test(given)) return { kind: 'postgres', url: given };
  const file = /^sqlite:(?!\/\/[^/])(.+)$/s.exec(given)?.[1];
  if (file !== undefined) return { kind: 'sqlite', path: resolve(cwd, file) };
  const shown = JSON.stringify(given.replace(/:[^:@]*@/, ':...@'));
  throw wrongUsage(
    `--storage must be memory, sqlite:FILE (such as sqlite:data.sqlite) or postgres://USER@HOST/DATABASE, not ${shown}`,
  );
}

/** The store as its user knows it; without a password. */
export function nameOfStore(choice: StoreChoice, cwd: string): string {
  if (choice.kind === 'memory') return 'memory; it ends with this process';
  if (choice.kind === 'sqlite') return start.showPath(cwd, choice.path);
  const { host, pathname } = URL.canParse(choice.url) ? new URL(choice.url) : { host: '', pathname: '' };
  return `postgres://${host}${pathname}`;
}

/** The store of a project that names none. @param directory - the project, absolute */
export function ownStore(directory: string): StoreChoice {
  return { kind: 'sqlite', path: join(directory, '.ensemble', 'data.sqlite'), own: true };
}

/** Gives the store; nothing is opened before its first use, but for the folder of a project's own one, which is made. */
export async function openStore(choice: StoreChoice): Promise<start.Storage> {
  if (choice.kind === 'memory') return start.memoryStorage();
  if (choice.kind === 'postgres') return start.postgresStorage(choice.url);
  if (choice.own) await makeFolder(dirname(choice.path));
  await loadQuietly('node:sqlite');
  return start.sqliteStorage({ path: choice.path });
}

// Node.js warns of its own SQLite when it is loaded first. Who uses this command has not chosen it, and can't unchoose it.
async function loadQuietly(name: string): Promise<void> {
  const { emitWarning } = process;
  const quiet = (warning: string | Error, ...rest: []) => {
    if (!/SQLite is an experimental feature/.test(String(warning))) emitWarning.call(process, warning, ...rest);
  };
  process.emitWarning = quiet as typeof emitWarning;
  try {
    await import(name);
  } catch {
    // This runtime has none; the storage finds another one.
  } finally {
    process.emitWarning = emitWarning;
  }
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    // What a service stores belongs into no repository.
    await writeFile(join(folder, '.gitignore'), '*\n', { flag: 'wx' }).catch(ignoreExisting);
  } catch (error) {
    throw new CliError(`the folder ${folder} can't be made: ${messageOf(error)}; name another store with --storage`);
  }
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

export interface GuestOptions {
  readonly storage?: string | undefined;
  readonly dir?: string | undefined;
}

/** What a command needs beside the store. */
export interface GuestNeeds {
  /** A store that is not there is made. */
  readonly create?: boolean;
  /** What stored definitions are run with: the project's scripts, operations and variables. */
  readonly scripts?: boolean;
}

/** An orchestrator over a store that may be another process's, and that store. */
export interface Guest {
  readonly orchestrator: start.Orchestrator;
  readonly storage: start.Storage;
}

/**
 * Opens a store as a guest, who runs nothing, and takes nothing over.
 *
 * @throws CliError when there is no such store or project, or when it is in the memory of another process
 */
export async function openGuest(options: GuestOptions, cwd: string, needs: GuestNeeds): Promise<Guest> {
  const choice = options.storage === undefined ? undefined : readStorage(options.storage, cwd);
  if (choice?.kind === 'memory') {
    throw wrongUsage('--storage memory is in the process that serves it; name that one with --url');
  }
  const directory = await findProject(cwd, options.dir, choice === undefined);
  // The config says what word tokens begin with, and may hold a store of its own.
  const config = directory === undefined ? {} : await readConfig(directory, cwd, needs.scripts ? 'all' : 'store');
  const storage = choice === undefined ? config.storage : undefined;
  if (storage) return guestOf({ ...config, storage });
  const found = choice ?? ownStore(directory as string);
  if (found.kind === 'sqlite' && !needs.create) await requireStore(found.path, cwd);
  return guestOf({ ...config, storage: await openStore(found) });
}

function guestOf(options: start.ProjectOptions & { readonly storage: start.Storage }): Guest {
  return { orchestrator: start.startGuest(options), storage: options.storage };
}

async function findProject(cwd: string, dir: string | undefined, needed: boolean): Promise<string | undefined> {
  try {
    return await requireProject(cwd, dir);
  } catch (error) {
    if (needed || dir !== undefined || !(error instanceof CliError)) throw error;
    return undefined;
  }
}

async function readConfig(directory: string, cwd: string, parts: 'store' | 'all'): Promise<start.ProjectOptions> {
  const { options, problem } = await start.openAsGuest(directory, parts);
  if (problem) throw new CliError(`${start.showPath(cwd, resolve(directory, problem.file))} ${problem.message}`);
  return options;
}

async function requireStore(path: string, cwd: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found) return;
  throw new CliError(
    `there is no store ${start.showPath(cwd, path)} yet; \`ensemble serve\` and \`ensemble token create\` make it. A running server is named with --url`,
  );
}
