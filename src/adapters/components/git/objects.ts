/** The objects of a repository: commits, tags and files, through `isomorphic-git`. */

import { randomUUID } from 'node:crypto';
import fs, { open, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { constants, inflateSync } from 'node:zlib';
import { OrchestratorError } from '../../../engine/base/errors.ts';
import { once } from '../../../engine/base/once.ts';
import { packageFailure } from '../../../engine/base/package-failure.ts';

/** A person or a program at an instant. */
export interface Signature {
  readonly name: string;
  readonly email: string;
  /** Unix ms. Git keeps whole seconds. */
  readonly at: number;
}

/** What a tag leads to. */
export interface Tagged {
  readonly commit: string;
  /** When the commit was made, Unix ms. */
  readonly committedAt: number;
  /** The tag objects between the ref and the commit, if there are several. */
  readonly through?: readonly string[];
  /** Of the tag itself. Absent: it is a light one. */
  readonly note?: { readonly message: string; readonly by: string; readonly at: number };
}

export interface GitObjects {
  /** @returns undefined for a tag of something that is not a commit */
  readTag(object: string): Promise<Tagged | undefined>;
  /** @returns undefined if the commit has no such file. @throws for a link, and for a file that is too large */
  readText(commit: string, path: string): Promise<string | undefined>;
  /** Commits texts on top of a commit. @returns the new commit */
  commit(
    parent: string | undefined,
    texts: ReadonlyMap<string, string>,
    by: Signature,
    message: string,
  ): Promise<string>;
  /** @returns the new tag, to which a ref must be set */
  writeTag(name: string, commit: string, by: Signature, message: string): Promise<string>;
}

const FILE_MODES = ['100644', '100755'];
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_TAGS = 50_000;
/** Enough for the type and the size of an object. */
const HEAD_BYTES = 64;

interface TreeEntry {
  readonly mode: string;
  readonly path: string;
  readonly oid: string;
  readonly type: 'blob' | 'tree' | 'commit';
}

/** Writes files as a whole, because a half object would stay for ever. */
const files = {
  promises: {
    ...fs,
    async writeFile(path: string, data: Uint8Array | string, options?: object) {
      const unfinished = join(dirname(path), `tmp_obj_${randomUUID()}`);
      const file = await open(unfinished, 'wx', 0o444);
      try {
        await file.writeFile(data, options as never);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(unfinished, path);
    },
  },
};

export function createObjects(gitDir: string): GitObjects {
  const load = once(() => loadGit());
  const tags = new Map<string, Tagged>();
  /** The cache has whole packs, so it lives for one read only. */
  const place = () => ({ fs: files, gitdir: gitDir, cache: {} });

  const read = async (git: Git, oid: string, at: ReturnType<typeof place>) => {
    const { type, object } = await git.readObject({ ...at, oid, format: 'parsed' }).catch((cause: unknown) => {
      const message = `${gitDir} lacks the object ${oid}, or it can't be read; fetch it again`;
      throw new OrchestratorError('INTERNAL', message, { cause });
    });
    return { type, object } as { readonly type: string; readonly object: unknown };
  };

  /** The errors of the package say nothing about the repository, and ask for a report to its authors. */
  const done = <T>(answer: Promise<T>): Promise<T> =>
    answer.catch((cause: unknown) => {
      const { code } = Object(cause) as { readonly code?: unknown };
      const message = `${gitDir} can't be read or written (${String(code)}); \`git fsck\` checks it`;
      throw new OrchestratorError('INTERNAL', message, { cause });
    });

  const entriesOf = async (git: Git, tree: string | undefined, at: ReturnType<typeof place>) =>
    tree === undefined ? [] : ((await read(git, tree, at)).object as readonly TreeEntry[]);

  const treeOf = async (git: Git, commit: string, at: ReturnType<typeof place>) =>
    ((await read(git, commit, at)).object as { readonly tree: string }).tree;

  /** @returns the tree in which the file is replaced or added */
  const withFile = async (
    git: Git,
    tree: string | undefined,
    [name = '', ...rest]: readonly string[],
    blob: string,
  ): Promise<string> => {
    const entries = await entriesOf(git, tree, place());
    const isFolder = rest.length > 0;
    const folder = entries.find((entry) => entry.path === name && entry.type === 'tree')?.oid;
    const made: TreeEntry = isFolder
      ? { mode: '040000', path: name, oid: await withFile(git, folder, rest, blob), type: 'tree' }
      : { mode: '100644', path: name, oid: blob, type: 'blob' };
    return done(git.writeTree({ ...place(), tree: [...entries.filter(({ path }) => path !== name), made] }));
  };

  const follow = async (object: string): Promise<Tagged | undefined> => {
    const git = await load();
    const at = place();
    let note: Tagged['note'];
    const through: string[] = [];
    for (let oid = object; ; ) {
      const { type, object: found } = await read(git, oid, at);
      if (type === 'commit') {
        const { committer } = found as { readonly committer: { readonly timestamp: number } };
        const more = { ...(note && { note }), ...(through.length > 1 && { through }) };
        return { commit: oid, committedAt: committer.timestamp * 1000, ...more };
      }
      if (type !== 'tag') return undefined;
      through.push(oid);
      const tag = found as { object: string; message: string; tagger?: { name: string; timestamp: number } };
      const { name = '', timestamp = 0 } = tag.tagger ?? {};
      note ??= { message: tag.message, by: name, at: timestamp * 1000 };
      oid = tag.object;
    }
  };

  return {
    async readTag(object) {
      const known = tags.get(object);
      if (known) return known;
      const tagged = await follow(object);
      if (tags.size >= MAX_TAGS) tags.clear();
      if (tagged) tags.set(object, tagged);
      return tagged;
    },
    async readText(commit, path) {
      const git = await load();
      const at = place();
      let tree: string | undefined = await treeOf(git, commit, at);
      const parts = path.split('/');
      const name = parts.pop();
      for (const part of parts) {
        const entries = await entriesOf(git, tree, at);
        tree = entries.find((entry) => entry.path === part && entry.type === 'tree')?.oid;
        if (tree === undefined) return undefined;
      }
      const entry = (await entriesOf(git, tree, at)).find((one) => one.path === name);
      if (!entry) return undefined;
      if (!FILE_MODES.includes(entry.mode)) throw unreadable(`\`${path}\` in commit ${commit} is not a file`);
      const tooLarge = (bytes: number) =>
        unreadable(`\`${path}\` in commit ${commit} has ${bytes} bytes, and at most ${MAX_BYTES} are read`);
      const bytes = await looseBytes(gitDir, entry.oid);
      if (bytes > MAX_BYTES) throw tooLarge(bytes);
      const { blob } = await done(git.readBlob({ ...at, oid: entry.oid }));
      if (blob.length > MAX_BYTES) throw tooLarge(blob.length);
      try {
        return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(blob);
      } catch {
        throw unreadable(`\`${path}\` in commit ${commit} is not text in UTF-8`);
      }
    },
    async commit(parent, texts, by, message) {
      const git = await load();
      let tree = parent === undefined ? undefined : await treeOf(git, parent, place());
      for (const [path, text] of texts) {
        const blob = await done(git.writeBlob({ ...place(), blob: new TextEncoder().encode(text) }));
        tree = await withFile(git, tree, path.split('/'), blob);
      }
      const signature = signatureOf(by);
      const commit = {
        ...{ tree: tree as string, parent: parent === undefined ? [] : [parent] },
        ...{ author: signature, committer: signature, message: `${message}\n` },
      };
      return done(git.writeCommit({ ...place(), commit }));
    },
    async writeTag(name, commit, by, message) {
      const git = await load();
      const tag = { object: commit, type: 'commit' as const, tag: name, tagger: signatureOf(by), message };
      return done(git.writeTag({ ...place(), tag }));
    },
  };
}

/** The size of an object that is in no pack, by its first bytes: the package unpacks it whole. @returns 0 if it is in a pack */
async function looseBytes(gitDir: string, oid: string): Promise<number> {
  const file = await open(join(gitDir, 'objects', oid.slice(0, 2), oid.slice(2))).catch(() => undefined);
  if (!file) return 0;
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    const head = inflateSync(buffer.subarray(0, bytesRead), { finishFlush: constants.Z_SYNC_FLUSH });
    return Number(/^blob (\d+)\0/.exec(head.toString('latin1'))?.[1] ?? 0);
  } catch {
    // The package says what is wrong with it.
    return 0;
  } finally {
    await file.close();
  }
}

function unreadable(message: string): OrchestratorError {
  return new OrchestratorError('INVALID_REQUEST', message);
}

/** Git has no line ends and no angle brackets in the name of a person. */
function signatureOf({ name, email, at }: Signature) {
  const clean = (text: string) => text.replace(/[<>\p{Cc}]+/gu, ' ').trim();
  return { name: clean(name), email: clean(email), timestamp: Math.floor(at / 1000), timezoneOffset: 0 };
}

type Git = typeof import('isomorphic-git');

/** @throws NOT_CONFIGURED when the package can't be loaded */
export async function loadGit(load: () => Promise<Git> = () => import('isomorphic-git')): Promise<Git> {
  try {
    return await load();
  } catch (cause) {
    throw packageFailure(cause, { who: 'gitComponents', name: 'isomorphic-git', version: 'version 1.44 or later' });
  }
}
