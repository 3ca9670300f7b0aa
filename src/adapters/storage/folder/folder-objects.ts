/** Objects as files of a folder. */

import { randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, rmdir, stat, unlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { isOrchestratorError, messageOf, OrchestratorError } from '../../../engine/base/errors.ts';
import { checkKey, type ObjectStore } from '../../../engine/storage/data.port.ts';
import { objectTooLarge } from '../bounded-reads.ts';
import { pathOf } from './file-names.ts';
import { listFolder } from './list-folder.ts';
import { readObject, writeObject } from './object-file.ts';

/** The most bytes of a file besides the content of its object. */
const MAX_HEADER_BYTES = 64 * 1024;

/** Objects are written here first. No key has this name, because a dot at the beginning is escaped. */
const UNFINISHED = '.unfinished';
/** Files here that nothing was written to for a day were left by a process that died. */
const ABANDONED_MS = 86_400_000;
/** How often a file is moved to a folder that a `delete` has just removed. */
const MAX_MOVES = 20;

/**
 * Objects as files of a folder, for bindings of `operation: storage`. Processes may share the folder. An object is complete on the disk
 * before it replaces the earlier one, so that the end of a process leaves the old object or the new one.
 *
 * @param folder - created when the first object is stored. The store writes nothing outside of it
 * @throws TypeError if `folder` is not a path
 * @example
 * ```ts no-run
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { folderObjects } from 'ensemble-orchestrator/node';
 *
 * createOrchestrator({ bindings: { reports: folderObjects('./data/reports') } });
 * ```
 */
export function folderObjects(folder: string): Required<Omit<ObjectStore, 'ready'>> {
  if (typeof folder !== 'string' || folder === '' || folder.includes('\u0000')) {
    throw new TypeError('folderObjects: `folder` must be the path of a folder');
  }
  const root = resolve(folder);
  let opened: Promise<void> | undefined;
  const openOnce = () => {
    opened ??= prepare(root).catch((thrown: unknown) => {
      opened = undefined;
      throw thrown;
    });
    return opened;
  };
  const fileOf = (key: string) => join(root, ...pathOf(checkKey(key)));

  const store = async (key: string, write: (file: FileHandle) => Promise<number>) => {
    const target = fileOf(key);
    await openOnce();
    const unfinished = join(root, UNFINISHED, randomUUID());
    try {
      const size = await writeFile(unfinished, write);
      await moveTo(target, unfinished);
      return size;
    } catch (thrown) {
      await rm(unfinished, { force: true }).catch(() => undefined);
      throw thrown;
    }
  };

  return {
    kind: 'objects',
    get: (key, { maxBytes = Number.POSITIVE_INFINITY } = {}) =>
      withFolderErrors(async () => {
        const found = await stat(fileOf(key)).catch(unlessMissing);
        if (found && found.size - MAX_HEADER_BYTES > maxBytes) throw objectTooLarge(maxBytes);
        const bytes = await readFile(fileOf(key)).catch(unlessMissing);
        return bytes && readObject(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength), key);
      }),
    put: (key, object) =>
      withFolderErrors(async () => {
        await store(key, (file) => writeObject(file, object, [object.content]));
      }),
    async putStream(key, object) {
      const source = rememberThrown(object.content);
      try {
        return await withFolderErrors(() => store(key, (file) => writeObject(file, object, source.parts)));
      } catch (thrown) {
        // What the content threw is the caller's own error.
        throw source.failed() ? source.error() : thrown;
      }
    },
    delete: (key) => withFolderErrors(() => remove(fileOf(key), root)),
    list: (page) => withFolderErrors(() => listFolder(root, page)),
  };
}

/** Remembers what an iteration threw. */
function rememberThrown(content: AsyncIterable<Uint8Array>) {
  let thrown: { readonly error: unknown } | undefined;
  async function* parts() {
    try {
      yield* content;
    } catch (error) {
      thrown = { error };
      throw error;
    }
  }
  return { parts: parts(), failed: () => thrown !== undefined, error: () => thrown?.error };
}

/** Creates the folder, and deletes what processes that died have left. */
async function prepare(root: string): Promise<void> {
  const unfinished = join(root, UNFINISHED);
  const first = await mkdir(unfinished, { recursive: true });
  if (first !== undefined) await syncFolders(root, dirname(first));
  const old = Date.now() - ABANDONED_MS;
  for (const name of await readdir(unfinished)) {
    const file = join(unfinished, name);
    const written = await stat(file).catch(() => undefined);
    if (written && written.mtimeMs < old) await rm(file, { force: true });
  }
}

async function writeFile(path: string, write: (file: FileHandle) => Promise<number>): Promise<number> {
  const file = await open(path, 'wx');
  try {
    return await write(file);
  } finally {
    await file.close();
  }
}

/** Puts a finished file in its place, in one step, and has the disk keep its name. */
async function moveTo(target: string, unfinished: string): Promise<void> {
  for (let moves = 1; ; moves++) {
    const first = await mkdir(dirname(target), { recursive: true });
    try {
      await rename(unfinished, target);
    } catch (error) {
      if (codeOf(error) === 'ENOENT' && moves < MAX_MOVES) continue;
      throw error;
    }
    await syncFolders(dirname(target), dirname(first ?? target));
    return;
  }
}

async function remove(file: string, root: string): Promise<boolean> {
  const removed = await unlink(file).then(() => true, unlessMissing);
  if (removed === undefined) return false;
  await syncFolder(dirname(file));
  for (let folder = dirname(file); folder.length > root.length; folder = dirname(folder)) {
    const isRemoved = await rmdir(folder).then(
      () => true,
      () => false,
    );
    if (!isRemoved) break;
  }
  return true;
}

/** Has the disk keep the names in a folder, and in those above it up to `last`. */
async function syncFolders(first: string, last: string): Promise<void> {
  for (let folder = first; ; folder = dirname(folder)) {
    await syncFolder(folder);
    if (folder === last || folder === dirname(folder)) return;
  }
}

// Windows and some network file systems can't do this for folders. A folder that is gone has no names to keep.
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined);
  if (handle === undefined) return;
  await handle.sync().catch(() => undefined);
  await handle.close();
}

/** Calls in which the system fails end with the library's error. */
async function withFolderErrors<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (thrown) {
    throw toFailure(thrown);
  }
}

const FULL = ['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'EIO', 'ENOMEM', 'EBUSY', 'EAGAIN'];

function toFailure(thrown: unknown): unknown {
  const code = codeOf(thrown);
  if (isOrchestratorError(thrown) || code === undefined) return thrown;
  if (FULL.includes(code)) {
    const message = `folderObjects: the disk does not take or give the object (${code})`;
    return new OrchestratorError('OVERLOADED', message, { cause: thrown, retryable: true });
  }
  const remedy =
    code === 'ENAMETOOLONG'
      ? 'the path is too long for this system; use a folder with a shorter path'
      : 'check that the folder is there, and that this user may read and write it';
  const message = `folderObjects: ${messageOf(thrown)}; ${remedy}`;
  return new OrchestratorError('NOT_CONFIGURED', message, { cause: thrown });
}

// An object under a key has a folder of its own name at most, never a file, so ENOTDIR means that nothing is there.
function unlessMissing(error: unknown): undefined {
  if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
  throw error;
}

function codeOf(error: unknown): string | undefined {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return error instanceof Error && !isOrchestratorError(error) && typeof code === 'string' ? code : undefined;
}
