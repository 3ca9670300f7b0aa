/** Finds the git repository of a folder: of a checkout, of a worktree, or a bare one. */

import { readFile, realpath, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { OrchestratorError } from '../../../engine/base/errors.ts';

export interface Repository {
  /** The folder with `HEAD` of this checkout. */
  readonly headDir: string;
  /** The folder with objects and refs, which all checkouts share. */
  readonly gitDir: string;
  /** The folder of the project in its checkout. Undefined: the repository is bare. */
  readonly project: string | undefined;
  /** Where the project is in its tree, with `/` at the end. Empty: at its top. */
  readonly prefix: string;
}

/** @throws NOT_CONFIGURED if there is no repository, or one in a form that can't be read */
export async function findRepository(path: string): Promise<Repository> {
  const start = await realpath(path).catch(() => refuseRepository(`there is no folder ${resolve(path)}`));
  if (await isGitDir(start))
    return checkedRepository({ headDir: start, gitDir: start, project: undefined, prefix: '' });
  for (let folder = start; ; folder = dirname(folder)) {
    const headDir = await gitDirOf(join(folder, '.git'));
    if (headDir !== undefined) {
      const inside = relative(folder, start).split(sep).join('/');
      const shared = await readFile(join(headDir, 'commondir'), 'utf8').catch(() => '.');
      const gitDir = resolve(headDir, shared.trim());
      return checkedRepository({ headDir, gitDir, project: start, prefix: inside === '' ? '' : `${inside}/` });
    }
    if (dirname(folder) === folder)
      return refuseRepository(`${start} is not in a git repository; run \`git init\` there`);
  }
}

/** A `.git` is a folder, or a file that names one. */
async function gitDirOf(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (!found) return undefined;
  if (found.isDirectory()) return (await isGitDir(path)) ? path : undefined;
  const named = /^gitdir: (.+)$/m.exec(await readFile(path, 'utf8'))?.[1];
  return named === undefined ? undefined : resolve(dirname(path), named.trim());
}

async function isGitDir(path: string): Promise<boolean> {
  const isThere = (name: string) =>
    stat(join(path, name)).then(
      () => true,
      () => false,
    );
  return (await isThere('HEAD')) && (await isThere('objects')) && (await isThere('refs'));
}

async function checkedRepository(repository: Repository): Promise<Repository> {
  const config = await readFile(join(repository.gitDir, 'config'), 'utf8').catch(() => '');
  const form = /^\s*(?:refstorage\s*=\s*reftable|objectformat\s*=\s*sha256)\s*$/im.exec(config)?.[0].trim();
  if (await readFile(join(repository.gitDir, 'objects/info/alternates'), 'utf8').catch(() => ''))
    return refuseRepository(
      `${repository.gitDir} borrows objects from another repository, which can't be read; clone it whole`,
    );
  if (form === undefined) return repository;
  return refuseRepository(
    `${repository.gitDir} has \`${form}\`, which can't be read; it must have files as refs, and SHA-1`,
  );
}

function refuseRepository(message: string): never {
  throw new OrchestratorError('NOT_CONFIGURED', `gitComponents: ${message}`);
}
