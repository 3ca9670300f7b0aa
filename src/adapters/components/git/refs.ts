/**
 * The refs of a repository, as files and in `packed-refs`. A change holds the lock file of git's own protocol, so the command `git` and other
 * processes can change them at the same time.
 */

import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import pRetry from 'p-retry';
import { OrchestratorError } from '../../../engine/base/errors.ts';

export interface Refs {
  /** The full names under a prefix that ends in `/`, and the object of each. */
  list(prefix: string): Promise<ReadonlyMap<string, string>>;
  read(name: string): Promise<string | undefined>;
  /**
   * @param expected - undefined: there must be none
   * @param next - undefined: it is removed
   * @returns false if the ref is not the expected one
   */
  change(name: string, expected: string | undefined, next: string | undefined): Promise<boolean>;
  /** Does something while no other caller of `locked` with this name does. @param task - gets a path that no other caller writes to */
  locked<T>(name: string, task: (unfinished: string) => Promise<T>): Promise<T>;
}

const OBJECT = /^[0-9a-f]{40}$/;
/** A lock is held for a few ms. */
const LOCK_TRIES = 80;
const LOCK_WAIT_MS = 25;
/** An older lock is taken over in any case: nothing is known of a process on another machine. */
const STALE_MS = 60_000;

export function createRefs(gitDir: string): Refs {
  const packedPath = join(gitDir, 'packed-refs');
  let packed: { readonly stamp: string; readonly refs: ReadonlyMap<string, string> } | undefined;

  const readPacked = async (): Promise<ReadonlyMap<string, string>> => {
    const file = await stat(packedPath, { bigint: true }).catch(ifMissing);
    if (!file) return new Map();
    const stamp = `${file.ino} ${file.mtimeNs} ${file.size}`;
    if (packed?.stamp !== stamp) packed = { stamp, refs: parsePacked(await readFile(packedPath, 'utf8')) };
    return packed.refs;
  };

  const readLoose = async (name: string): Promise<string | undefined> => {
    const text = await readFile(join(gitDir, name), 'utf8').catch(ifMissing);
    if (text === undefined || OBJECT.test(text.trim())) return text?.trim();
    // Not the value in `packed-refs`, which is an older one.
    throw new OrchestratorError(
      'INTERNAL',
      `${join(gitDir, name)} is broken: it does not name an object; set the tag again`,
    );
  };

  // The file first: `git pack-refs` writes `packed-refs` before it removes the file.
  const read = async (name: string) => (await readLoose(name)) ?? (await readPacked()).get(name);

  const locked: Refs['locked'] = async (name, task) => {
    const path = `${join(gitDir, name)}.lock`;
    const file = await pRetry(
      async () => {
        await mkdir(dirname(path), { recursive: true });
        await removeStale(path);
        return open(path, 'wx');
      },
      {
        ...{ retries: LOCK_TRIES, minTimeout: LOCK_WAIT_MS, factor: 1 },
        shouldRetry: ({ error }) => isCode(error, 'EEXIST', 'ENOENT'),
      },
    ).catch((error: unknown) => {
      if (!isCode(error, 'EEXIST')) throw error;
      const message = `${name}.lock exists: another process uses the repository, or one was killed; then remove the file`;
      throw new OrchestratorError('CONFLICT', message, { retryable: true });
    });
    try {
      await file.writeFile(JSON.stringify({ process: process.pid, host: hostname(), at: Date.now() }));
      // No ref has a name that ends in `.lock`.
      return await task(`${path}.lock`);
    } finally {
      await file.close();
      await rm(path, { force: true });
    }
  };

  const unpack = async (name: string) => {
    if (!(await readPacked()).has(name)) return;
    await locked('packed-refs', async (unfinished) =>
      replace(packedPath, withoutRef(await readFile(packedPath, 'utf8'), name), unfinished),
    );
  };

  return {
    read,
    locked,
    async list(prefix) {
      const loose = new Map<string, string>();
      for (const entry of await readdir(join(gitDir, prefix), { withFileTypes: true, recursive: true }).catch(ifNone)) {
        if (!entry.isFile() || entry.name.endsWith('.lock')) continue;
        const name = relative(gitDir, join(entry.parentPath, entry.name)).split(sep).join('/');
        const object = await readLoose(name);
        if (object !== undefined) loose.set(name, object);
      }
      await stat(join(gitDir, 'refs'));
      const listed = [...(await readPacked())].filter(([name]) => name.startsWith(prefix));
      return new Map([...listed, ...loose]);
    },
    change: (name, expected, next) =>
      locked(name, async (unfinished) => {
        if ((await read(name)) !== expected) return false;
        if (next === undefined) {
          // From `packed-refs` first, or its value would come back for a moment.
          await unpack(name);
          await rm(join(gitDir, name), { force: true });
          return true;
        }
        await replace(join(gitDir, name), `${next}\n`, unfinished);
        return true;
      }),
  };
}

async function replace(path: string, text: string, unfinished: string): Promise<void> {
  const file = await open(unfinished, 'w');
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(unfinished, path);
}

/** Removes the lock of a process that was killed. A lock of the command `git`, which names no process, stays. */
async function removeStale(path: string): Promise<void> {
  const text = await readFile(path, 'utf8').catch(ifMissing);
  if (text === undefined || !isLeft(text)) return;
  const aside = `${path}.${randomUUID()}.lock`;
  await rename(path, aside).catch(ifMissing);
  const moved = await readFile(aside, 'utf8').catch(ifMissing);
  // Another process was faster, and has a lock of its own.
  if (moved !== undefined && moved !== text) await link(aside, path).catch(() => undefined);
  await rm(aside, { force: true });
}

/** @param lock - the content of a lock file */
function isLeft(lock: string): boolean {
  const { process: pid, host, at } = readHolder(lock);
  if (!Number.isSafeInteger(pid) || typeof at !== 'number') return false;
  if (Date.now() - at > STALE_MS) return true;
  if (host !== hostname()) return false;
  // A container often has the same process number after a restart.
  if (pid === process.pid) return at < Date.now() - process.uptime() * 1000;
  try {
    process.kill(pid as number, 0);
    return false;
  } catch (error) {
    return isCode(error, 'ESRCH');
  }
}

function readHolder(lock: string): { readonly process?: unknown; readonly host?: unknown; readonly at?: unknown } {
  try {
    return Object(JSON.parse(lock));
  } catch {
    return {};
  }
}

function parsePacked(text: string): ReadonlyMap<string, string> {
  const refs = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [object = '', name] = line.split(' ');
    if (name !== undefined && OBJECT.test(object)) refs.set(name.trimEnd(), object);
  }
  return refs;
}

/** The line `^<commit>` after a ref of a tag belongs to it. */
function withoutRef(text: string, name: string): string {
  const lines = text.split('\n');
  const at = lines.findIndex((line) => line.endsWith(` ${name}`));
  if (at >= 0) lines.splice(at, lines[at + 1]?.startsWith('^') ? 2 : 1);
  return lines.join('\n');
}

function isCode(error: unknown, ...codes: readonly string[]): boolean {
  return codes.includes(String((error as { readonly code?: unknown }).code));
}

function ifMissing(error: unknown): undefined {
  if (!isCode(error, 'ENOENT', 'EISDIR', 'ENOTDIR')) throw error;
}

function ifNone(error: unknown): [] {
  ifMissing(error);
  return [];
}
