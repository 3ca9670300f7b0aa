/** Finds and opens the store that a command uses: the store of `--storage`, of the config, or the project's own file. */

import { mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { messageOf } from '../../engine/base/errors.ts';
import { requireProject } from '../project/find-target.ts';
import * as start from '../start.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';

export type StoreChoice =
  | { readonly kind: 'memory' }
  | {
      readonly kind: 'sqlite';
      /** Absolute. */
      readonly path: string;
      /** It is the project's own store, whose folder is created too. */
      readonly own?: true;
    }
  | {
      readonly kind: 'postgres';
      /** May hold a password. */
      readonly url: string;
    };

/**
 * @param given - the value of `option`; a file is relative to `cwd`
 * @throws CliError when it does not name a store
 */
export function readStorage(given: string, cwd: string, option = '--storage'): StoreChoice {
  if (given === 'memory' || given === 'sqlite::memory:') return { kind: 'memory' };
  if (/^postgres(ql)?:\/\/./.test(given)) return { kind: 'postgres', url: given };
  const file = /^sqlite:(?!\/\/[^/])(.+)$/s.exec(given)?.[1];
  if (file !== undefined) return { kind: 'sqlite', path: resolve(cwd, file) };
  const shown = JSON.stringify(given.replace(/:[^:@]*@/, ':...@'));
  throw wrongUsage(
    `${option} must be memory, sqlite:FILE (such as sqlite:data.sqlite) or postgres://USER@HOST/DATABASE, not ${shown}`,
  );
}

/** The name of a store for a user, without a password. */
export function nameOfStore(choice: StoreChoice, cwd: string): string {
  if (choice.kind === 'memory') return 'memory; its content ends with this process';
  if (choice.kind === 'sqlite') return start.showPath(cwd, choice.path);
  const { host, pathname } = URL.canParse(choice.url) ? new URL(choice.url) : { host: '', pathname: '' };
  return `postgres://${host}${pathname}`;
}

/** The store of a project whose config names none. @param directory - the project, absolute */
export function ownStore(directory: string): StoreChoice {
  return { kind: 'sqlite', path: join(directory, '.ensemble', 'data.sqlite'), own: true };
}

/** Creates the storage. It opens nothing before its first use; only the folder of a project's own store is created now. */
export async function openStore(choice: StoreChoice): Promise<start.Storage> {
  if (choice.kind === 'memory') return start.memoryStorage();
  if (choice.kind === 'postgres') return start.postgresStorage(choice.url);
  if (choice.own) await makeFolder(dirname(choice.path));
  await loadQuietly('node:sqlite');
  return start.sqliteStorage({ path: choice.path });
}

// Node.js prints a warning when its SQLite module is first loaded. Users of this command can do nothing about it.
async function loadQuietly(name: string): Promise<void> {
  const { emitWarning } = process;
  const quiet = (warning: string | Error, ...rest: []) => {
    if (!/SQLite is an experimental feature/.test(String(warning))) emitWarning.call(process, warning, ...rest);
  };
  process.emitWarning = quiet as typeof emitWarning;
  try {
    await import(name);
  } catch {
    // This runtime has no such module; the storage finds another driver.
  } finally {
    process.emitWarning = emitWarning;
  }
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    // The data of a service does not belong in a repository.
    await writeFile(join(folder, '.gitignore'), '*\n', { flag: 'wx' }).catch(ignoreExisting);
  } catch (error) {
    throw new CliError(`the folder ${folder} can't be created: ${messageOf(error)}; name another store with --storage`);
  }
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

export interface ClientOptions {
  readonly storage?: string | undefined;
  readonly dir?: string | undefined;
}

/** What a command needs in addition to the store. */
export interface ClientNeeds {
  /** Creates a store that does not exist. */
  readonly create?: boolean;
  /** Loads what stored definitions need to run: the project's scripts, operations and variables. */
  readonly scripts?: boolean;
  /** Also loads the definitions of the project. */
  readonly ensembles?: boolean;
  /** The components, which may be in a repository. `add`: a repository without any will have them. */
  readonly components?: 'add' | 'use';
}

function partsOf({ ensembles, scripts }: ClientNeeds): 'store' | 'all' | 'ensembles' {
  if (ensembles) return 'ensembles';
  return scripts ? 'all' : 'store';
}

/** An orchestrator that works on a store without running executions. Another process may serve the store. */
export interface Client {
  readonly orchestrator: start.Orchestrator;
  /** The folder of the project, or this folder. Undefined: the place is a bare repository. */
  readonly folder?: string | undefined;
  /** The repository that has the components. */
  readonly repository?: start.GitComponents | undefined;
}

/**
 * Opens a store as a client: it runs no execution and takes none over.
 *
 * @throws CliError when the store or the project does not exist, or when the store is in the memory of another process
 */
export async function openClient(options: ClientOptions, cwd: string, needs: ClientNeeds): Promise<Client> {
  const choice = options.storage === undefined ? undefined : readStorage(options.storage, cwd);
  if (choice?.kind === 'memory') {
    throw wrongUsage('--storage memory is inside the process that serves it; name that server with --url');
  }
  if (needs.components !== undefined && choice === undefined) {
    const found = await openRepository(resolve(cwd, options.dir ?? '.'), cwd, needs.components);
    if (found) return found;
  }
  const directory = await findProject(cwd, options.dir, choice === undefined);
  // The config has the brand, with which tokens begin, and may have a storage.
  const config = directory === undefined ? {} : await readConfig(directory, cwd, partsOf(needs));
  const storage = choice === undefined ? config.storage : undefined;
  const folder = directory ?? cwd;
  if (storage) return { ...clientOf({ ...config, storage }), folder };
  const found = choice ?? ownStore(directory as string);
  if (found.kind === 'sqlite' && !needs.create) await requireStore(found.path, cwd);
  return { ...clientOf({ ...config, storage: await openStore(found) }), folder };
}

/** The components of a project whose config names a source, and of a repository that has a `components.yaml` or gets one. */
async function openRepository(folder: string, cwd: string, use: 'add' | 'use'): Promise<Client | undefined> {
  const directory = await requireProject(cwd, folder).catch(() => undefined);
  const config = directory === undefined ? {} : await readConfig(directory, cwd, 'store');
  const { components = await start.findComponents(folder, use === 'add') } = config;
  if (!components) return undefined;
  const repository = 'readCommitted' in components ? (components as start.GitComponents) : undefined;
  const client = clientOf({ ...config, components, storage: config.storage ?? start.memoryStorage() });
  return { ...client, repository, folder: repository ? await repository.folder() : folder };
}

/** The brand of the project in a folder: the word with which its tokens begin. Undefined without a project, and for the default brand. */
export async function brandOf(cwd: string, dir: string | undefined): Promise<string | undefined> {
  const directory = await findProject(cwd, dir, false);
  return directory === undefined ? undefined : (await readConfig(directory, cwd, 'store')).brand;
}

function clientOf(options: start.ProjectOptions & { readonly storage: start.Storage }): Client {
  return { orchestrator: start.startClient(options) };
}

async function findProject(cwd: string, dir: string | undefined, needed: boolean): Promise<string | undefined> {
  try {
    return await requireProject(cwd, dir);
  } catch (error) {
    if (needed || dir !== undefined || !(error instanceof CliError)) throw error;
    return undefined;
  }
}

async function readConfig(
  directory: string,
  cwd: string,
  parts: ReturnType<typeof partsOf>,
): Promise<start.ProjectOptions> {
  const { options, problem } = await start.openAsClient(directory, parts);
  if (problem) throw new CliError(`${start.showPath(cwd, resolve(directory, problem.file))} ${problem.message}`);
  return options;
}

async function requireStore(path: string, cwd: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found && found.size > 0) return;
  throw new CliError(
    `there is no store ${start.showPath(cwd, path)} yet; \`ensemble serve\` and \`ensemble token create\` create it. Name another store with --storage, or a running server with --url`,
  );
}
