/** Storage suite: documents, their version check, their expiry, and starts that expect a document. */

import type { Document, Storage } from '../../engine/storage/storage.port.ts';
import {
  commitOne,
  EVERY_KIND,
  execution,
  executionId,
  frozen,
  register,
  STRANGER,
  type StorageCase,
  same,
  starting,
  T0,
  WORKER,
} from './context.ts';

const KIND = 'ensemble';
const NAME = 'orders';

function document(tag: string, fields: Partial<Document> = {}): Document {
  return frozen({ value: { of: tag }, tag, updatedAt: T0 + 5, ...fields });
}

async function write(
  storage: Storage,
  expectedVersion: number,
  given: Document | undefined,
  { name = NAME, kind = KIND, now = T0 } = {},
): Promise<boolean> {
  const change = { expectedVersion, now, ...(given && { document: given }) };
  return storage.documents.write(kind, name, frozen(change));
}

const read = async (storage: Storage, name = NAME, now = T0) => storage.documents.read(KIND, name, now);
const namesOf = async (storage: Storage, page: { after?: string; limit?: number; now?: number } = {}, kind = KIND) =>
  (await storage.documents.list(kind, { limit: 100, now: T0, ...page })).map(({ name }) => name);

export function documentCases(it: StorageCase): void {
  it('read: returns undefined for a document that was not written', async (storage) => {
    same(await read(storage), undefined, 'unknown');
    same(await namesOf(storage), [], 'list');
  });

  it('write: creates, replaces and deletes, and each change increments the version', async (storage) => {
    same(await write(storage, 0, document('a', { value: EVERY_KIND })), true, 'created');
    same(
      await read(storage),
      { name: NAME, tag: 'a', value: EVERY_KIND, version: 1, updatedAt: T0 + 5 },
      'the first version',
    );
    same(await write(storage, 1, document('ä "b"', { expiresAt: T0 + 100 })), true, 'replaced');
    const second = { name: NAME, tag: 'ä "b"', value: { of: 'ä "b"' }, version: 2, updatedAt: T0 + 5 };
    same(await read(storage), { ...second, expiresAt: T0 + 100 }, 'the second version');
    same(await write(storage, 2, undefined), true, 'deleted');
    same(await read(storage), undefined, 'after the deletion');
    same(await write(storage, 0, document('c')), true, 'created again');
    same((await read(storage))?.version, 1, 'its version');
  });

  it('write: a change that expects another version changes nothing', async (storage) => {
    same(await write(storage, 1, document('a')), false, 'of a document that does not exist');
    same(await write(storage, 1, undefined), false, 'a deletion of one that does not exist');
    same(await write(storage, 0, undefined), true, 'a deletion that expects none');
    await write(storage, 0, document('a'));
    await write(storage, 1, document('b'));
    for (const version of [0, 1, 3]) {
      same(await write(storage, version, document('c')), false, `a change from ${version}`);
      same(await write(storage, version, undefined), false, `a deletion from ${version}`);
    }
    same((await read(storage))?.tag, 'b', 'tag');
  });

  it('write: of many concurrent changes of one version, exactly one is stored', async (storage) => {
    for (const version of [0, 1]) {
      const made = [...'abcdefgh'].map((tag) => write(storage, version, document(tag)));
      same((await Promise.all(made)).filter(Boolean).length, 1, `stored from ${version}`);
    }
    same((await read(storage))?.version, 2, 'version');
  });

  it('read, list: an expired document counts as deleted, and can be created again', async (storage) => {
    await write(storage, 0, document('a', { expiresAt: T0 + 10 }));
    same((await read(storage, NAME, T0 + 9))?.tag, 'a', '1 ms before');
    same(await read(storage, NAME, T0 + 10), undefined, 'at its expiry');
    same(await namesOf(storage, { now: T0 + 10 }), [], 'list');
    same(await write(storage, 1, document('b'), { now: T0 + 10 }), false, 'a change of the expired one');
    same(await write(storage, 0, document('b'), { now: T0 + 10 }), true, 'created again');
    same(await read(storage, NAME, T0 + 20), { ...document('b'), name: NAME, version: 1 }, 'the new one');
  });

  it('list: the documents of a kind by the bytes of their names, page by page', async (storage) => {
    const names = ['Z', 'a', 'a-b', 'a.b', 'a/b', 'a_b', 'aa', 'b'];
    for (const name of [...names].reverse()) await write(storage, 0, document(name), { name });
    await write(storage, 0, document('other'), { kind: 'agent' });
    const sorted = [...names].sort();
    same(await namesOf(storage), sorted, 'all');
    same(await namesOf(storage, { limit: 3 }), sorted.slice(0, 3), 'the first page');
    same(await namesOf(storage, { limit: 3, after: sorted[2] as string }), sorted.slice(3, 6), 'the next page');
    same(await namesOf(storage, {}, 'agent'), [NAME], 'another kind');
  });

  it('commit: a start is stored only if the document that it expects has the tag', async (storage) => {
    await register(storage);
    await write(storage, 0, document('new'));
    const start = (number: number, tag: string) =>
      commitOne(storage, starting(execution(number), { expects: { kind: KIND, name: NAME, tag } }));
    same(await start(1, 'new'), 'stored', 'the stored tag');
    same(await start(2, 'old'), 'stale', 'an earlier tag');
    same(await storage.executions.get(executionId(2)), undefined, 'the refused execution');
    await write(storage, 1, undefined);
    same(await start(3, 'new'), 'stale', 'the tag of a deleted document');
    same(await start(1, 'new'), 'stored', 'the same start again, after the deletion');
  });

  it('commit: a queued start with an expected document needs no worker, and a held one is fenced without one', async (storage) => {
    await write(storage, 0, document('new', { expiresAt: T0 + 1000 }));
    const start = (number: number, tag: string, isQueued: boolean, createdAt = T0) => {
      const release = { status: 'queued', dueAt: T0 } as const;
      const expects = { kind: KIND, name: NAME, tag };
      const entry = starting(execution(number, { createdAt }), { expects, ...(isQueued && { release }) });
      return commitOne(storage, entry, STRANGER);
    };
    same(await start(1, 'new', true), 'stored', 'queued');
    same(await start(2, 'old', true), 'stale', 'queued, with another tag');
    same(await start(3, 'new', false), 'fenced', 'held');
    same(await start(4, 'old', false), 'fenced', 'held, with another tag');
    same(await start(5, 'new', true, T0 + 1000), 'stale', 'when the document has expired');
  });

  it('commit: in a batch, a start that is stale stores nothing, and the others are stored', async (storage) => {
    await register(storage);
    await write(storage, 0, document('new'));
    const tags = ['new', 'old', undefined, 'new'];
    const batch = tags.map((tag, number) =>
      starting(execution(number), tag === undefined ? {} : { expects: { kind: KIND, name: NAME, tag } }),
    );
    same(await storage.commit(WORKER, batch), ['stored', 'stale', 'stored', 'stored'], 'answers');
  });
}

/** For stores that outlive their handle. */
export function reopenedDocumentCases(it: StorageCase): void {
  it('reopen: documents, their versions and their expiry are unchanged', async (storage, reopen) => {
    await write(storage, 0, document('a', { value: EVERY_KIND, expiresAt: T0 + 10 }));
    await write(storage, 0, document('b'), { name: 'other' });
    await write(storage, 1, document('c'), { name: 'other' });
    const before = await storage.documents.list(KIND, { limit: 10, now: T0 });
    const next = await reopen();
    same(await next.documents.list(KIND, { limit: 10, now: T0 }), before, 'documents');
    same(await write(next, 1, document('d'), { name: 'other' }), false, 'an earlier version');
    same(await write(next, 2, document('d'), { name: 'other' }), true, 'the stored version');
  });
}
