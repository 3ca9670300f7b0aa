/** Git repositories for tests, made by the command `git`. */

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Runs `git` in a folder, without the settings of this machine. */
export function git(folder: string, ...args: readonly string[]): string {
  const env = {
    ...{ PATH: process.env.PATH ?? '', HOME: folder, GIT_CONFIG_NOSYSTEM: '1' },
    ...{ GIT_AUTHOR_NAME: 'ada', GIT_AUTHOR_EMAIL: 'ada@example.com' },
    ...{ GIT_COMMITTER_NAME: 'ada', GIT_COMMITTER_EMAIL: 'ada@example.com' },
  };
  return execFileSync('git', args, { cwd: folder, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** An empty repository that is removed after the test. */
export function newRepository({ bare = false } = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'components-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  git(folder, 'init', '-q', '-b', 'main', ...(bare ? ['--bare'] : []), '.');
  return folder;
}

/** Writes files of a checkout. */
export function writeFiles(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

/** Writes files, and commits them. */
export function commitFiles(folder: string, files: Readonly<Record<string, string>>): void {
  writeFiles(folder, files);
  git(folder, 'add', '.');
  git(folder, 'commit', '-q', '-m', 'files');
}

/** Without the command `git`, its tests are skipped. CI has it. */
export const hasGit = findGit();

function findGit(): boolean {
  try {
    execFileSync('git', ['--version'], { stdio: 'ignore' });
    return true;
  } catch (error) {
    if (process.env.CI) throw error;
    console.warn('the command git is not there: the tests of components in a repository are skipped');
    return false;
  }
}
