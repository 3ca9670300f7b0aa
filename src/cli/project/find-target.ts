/** Resolves a path or a name on the command line to a project, to a file of a project, or to a file outside projects. */

import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { isDefinition, isTestFile, showPath } from '../start.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';

export type Target =
  /** A project folder. */
  { readonly kind: 'project'; readonly directory: string } | FileTarget;

export type FileTarget =
  /** A definition in a project's `ensembles` or `agents`. */
  | { readonly kind: 'member'; readonly directory: string; readonly file: string }
  /** A definition outside projects. */
  | { readonly kind: 'file'; readonly path: string };

const MEMBER_FOLDERS = ['ensembles', 'agents'];

/**
 * @param path - of a file or folder, relative to `cwd`
 * @returns one target; for a folder of definitions, one for each file
 * @throws CliError when the path does not exist, or when the folder has no definitions
 */
export async function findTargets(cwd: string, path: string): Promise<Target[]> {
  const absolute = resolve(cwd, path);
  if (!(await isFolder(cwd, absolute))) return [fileTarget(absolute)];
  if (await isProject(absolute)) return [{ kind: 'project', directory: absolute }];
  const files = (await readdir(absolute)).filter(isDefinition).sort();
  if (files.length === 0)
    throw new CliError(
      `${showPath(cwd, absolute)} is not a project: it has no folder \`ensembles\`, and no .yaml files`,
    );
  return files.map((name) => fileTarget(join(absolute, name)));
}

/** @throws CliError when the path is not a file */
export async function findFile(cwd: string, path: string): Promise<FileTarget> {
  const absolute = resolve(cwd, path);
  if (!(await isFolder(cwd, absolute))) return fileTarget(absolute);
  throw wrongUsage(`${path} is a folder; name one of its files, or the name of an ensemble with the project as --dir`);
}

async function isFolder(cwd: string, absolute: string): Promise<boolean> {
  const found = await stat(absolute).catch(() => undefined);
  if (!found) throw new CliError(`there is no file or folder ${showPath(cwd, absolute)}`);
  return found.isDirectory();
}

/** The project in `directory`, or in `cwd` without one. @throws CliError when the folder is not a project */
export async function requireProject(cwd: string, directory: string | undefined): Promise<string> {
  const absolute = resolve(cwd, directory ?? '.');
  if (await isProject(absolute)) return absolute;
  if (directory !== undefined)
    throw new CliError(`${showPath(cwd, absolute)} is not a project: it has no folder \`ensembles\``);
  throw new CliError(
    'there is no project here: this folder has no folder `ensembles`. Name a project with --dir, or create one with: npx ensemble-orchestrator init my-project',
  );
}

/** Whether a folder looks like a project. */
async function isProject(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch(() => [] as string[]);
  return names.some((name) => name === 'ensembles' || /^ensemble\.config\.(?:js|mjs|ts)$/.test(name));
}

/** Whether an argument is a path, and not the name of an ensemble. */
export function isPath(argument: string): boolean {
  return /[/\\]|\.ya?ml$/.test(argument);
}

function fileTarget(path: string): FileTarget {
  if (isTestFile(path))
    throw wrongUsage(`${basename(path)} has tests, and no definition: run them with \`ensemble test\``);
  const folder = dirname(path);
  if (!MEMBER_FOLDERS.includes(basename(folder))) return { kind: 'file', path };
  return { kind: 'member', directory: dirname(folder), file: `${basename(folder)}/${basename(path)}` };
}
