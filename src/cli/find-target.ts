/** Tells what a path or a name on the command line means: a project, a file of one, or a file alone. */

import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { CliError, wrongUsage } from './cli-error.ts';
import { showPath } from './start.ts';

export type Target =
  /** A project folder. */
  { readonly kind: 'project'; readonly directory: string } | FileTarget;

export type FileTarget =
  /** A definition in a project's `ensembles` or `agents`. */
  | { readonly kind: 'member'; readonly directory: string; readonly file: string }
  /** A definition that stands in no project. */
  | { readonly kind: 'file'; readonly path: string };

const MEMBER_FOLDERS = ['ensembles', 'agents'];

/**
 * @param path - of a file or folder, relative to `cwd`
 * @returns one target, or for a folder of definitions one for each of its files
 * @throws CliError when there is nothing at the path, or nothing in it
 */
export async function findTargets(cwd: string, path: string): Promise<Target[]> {
  const absolute = resolve(cwd, path);
  if (!(await isFolder(cwd, absolute))) return [fileTarget(absolute)];
  if (await isProject(absolute)) return [{ kind: 'project', directory: absolute }];
  const files = (await readdir(absolute)).filter((name) => /\.ya?ml$/.test(name)).sort();
  if (files.length === 0)
    throw new CliError(`${showPath(cwd, absolute)} is no project: it has no folder \`ensembles\`, and no .yaml files`);
  return files.map((name) => fileTarget(join(absolute, name)));
}

/** @throws CliError when there is no file at the path */
export async function findFile(cwd: string, path: string): Promise<FileTarget> {
  const absolute = resolve(cwd, path);
  if (!(await isFolder(cwd, absolute))) return fileTarget(absolute);
  throw wrongUsage(`${path} is a folder; run one file of it, or give its project as --dir and the name of an ensemble`);
}

async function isFolder(cwd: string, absolute: string): Promise<boolean> {
  const found = await stat(absolute).catch(() => undefined);
  if (!found) throw new CliError(`there is no file or folder ${showPath(cwd, absolute)}`);
  return found.isDirectory();
}

/** The project that commands work on when they name none. @throws CliError when `directory` is no project */
export async function requireProject(cwd: string, directory: string | undefined): Promise<string> {
  const absolute = resolve(cwd, directory ?? '.');
  if (await isProject(absolute)) return absolute;
  if (directory !== undefined)
    throw new CliError(`${showPath(cwd, absolute)} is no project: it has no folder \`ensembles\``);
  throw new CliError(
    'there is no project here: this folder has no folder `ensembles`. Name one with --dir, or write one with: ensemble init my-project',
  );
}

/** Whether a folder looks like a project. */
async function isProject(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch(() => [] as string[]);
  return names.some((name) => name === 'ensembles' || /^ensemble\.config\.(?:js|mjs|ts)$/.test(name));
}

/** Whether an argument of `run` is meant as a path rather than as the name of an ensemble. */
export function isPath(argument: string): boolean {
  return /[/\\]|\.ya?ml$/.test(argument);
}

function fileTarget(path: string): FileTarget {
  const folder = dirname(path);
  if (!MEMBER_FOLDERS.includes(basename(folder))) return { kind: 'file', path };
  return { kind: 'member', directory: dirname(folder), file: `${basename(folder)}/${basename(path)}` };
}
