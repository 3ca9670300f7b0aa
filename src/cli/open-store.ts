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
    };

/**
 * @param given - the value of `--storage`; a file is relative to `cwd`
 * @throws CliError for what is no store, and for one that this version has not
 */
export function readStorage(given: string, cwd: string): StoreChoice {
  if (given === 'memory' || given === 'sqlite::memory:') return { kind: 'memory' };
  if (/^postgres(ql)?:/.test(given)) {
    throw new CliError('--storage postgres://... comes in a later version; use sqlite:FILE or memory');
  }
  const file = /^sqlite:(?!\/\/[^/])(.+)$/s.exec(given)?.[1];
  if (file !== undefined) return { kind: 'sqlite', path: resolve(cwd, file) };
  throw wrongUsage(`--storage must be memory or sqlite:FILE, such as sqlite:data.sqlite, not ${JSON.stringify(given)}`);
}

/** The store of a project that names none. @param directory - the project, absolute */
export function ownStore(directory: string): StoreChoice {
  return { kind: 'sqlite', path: join(directory, '.ensemble', 'data.sqlite'), own: true };
}

/** Gives the store; nothing is opened before its first use, but for the folder of a project's own one, which is made. */
export async function openStore(choice: StoreChoice): Promise<start.Storage> {
  if (choice.kind === 'memory') return start.memoryStorage();
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

/**
 * An orchestrator over a store that may be another process's: it knows no ensembles, so that it runs nothing.
 *
 * @param create - whether a store that is not there is made
 * @throws CliError when there is no such store or project, or when it is in the memory of another process
 */
export async function openGuest(options: GuestOptions, cwd: string, create: boolean): Promise<start.Orchestrator> {
  const choice = options.storage === undefined ? undefined : readStorage(options.storage, cwd);
  if (choice?.kind === 'memory') {
    throw wrongUsage('--storage memory is in the process that serves it; name that one with --url');
  }
  const directory = await findProject(cwd, options.dir, choice === undefined);
  // The config says what word tokens begin with, and may hold a store of its own.
  const config = directory === undefined ? {} : await readConfig(directory, cwd);
  const storage = choice === undefined ? config.storage : undefined;
  if (storage) return start.startOrchestrator({ ...config, storage });
  const found = choice ?? ownStore(directory as string);
  if (found.kind === 'sqlite' && !create) await requireStore(found.path, cwd);
  return start.startOrchestrator({ ...config, storage: await openStore(found) });
}

async function findProject(cwd: string, dir: string | undefined, needed: boolean): Promise<string | undefined> {
  try {
    return await requireProject(cwd, dir);
  } catch (error) {
    if (needed || dir !== undefined || !(error instanceof CliError)) throw error;
    return undefined;
  }
}

async function readConfig(directory: string, cwd: string): Promise<Pick<start.ProjectOptions, 'brand' | 'storage'>> {
  const { options, problem } = await start.openAsGuest(directory);
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
