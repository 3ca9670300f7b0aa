/** The published suite for data finds stores that lose, damage or mix up what they keep: each defect fails the case of its rule. */

import { describe, expect, it } from 'vitest';
import { memoryKv, memoryObjects } from '../../src/adapters/storage/memory/data.ts';
import { type DataStores, dataSuite } from '../../src/conformance/data-suite.ts';
import type { KvStore, ObjectStore, StoredObject } from '../../src/engine/storage/data.port.ts';

type Objects = Required<ObjectStore>;

interface Case {
  readonly title: string;
  readonly body: () => Promise<void> | void;
}

/** @returns the titles of the cases that fail, of those whose title fits */
async function failuresOf(
  open: () => DataStores,
  kinds: readonly ('kv' | 'objects')[],
  about: RegExp,
): Promise<readonly string[]> {
  const cases: Case[] = [];
  let data: DataStores = {};
  dataSuite({
    name: 'broken',
    create: () => {
      data = open();
      return data;
    },
    reopen: () => data,
    kinds,
    test: {
      describe: (_name, body) => body(),
      it: (title, body) => {
        cases.push({ title, body });
      },
    },
  });
  const failed: string[] = [];
  for (const { title, body } of cases.filter((one) => about.test(one.title))) {
    try {
      await body();
    } catch {
      failed.push(title);
    }
  }
  return failed;
}

const kvWith = (change: (kv: KvStore) => Partial<KvStore>) => () => {
  const kv = memoryKv();
  return { kv: { ...kv, ...change(kv) } };
};
const objectsWith = (change: (objects: Objects) => Partial<Objects>) => () => {
  const objects = memoryObjects() as Objects;
  return { objects: { ...objects, ...change(objects) } };
};
const changed = (object: StoredObject, content: Uint8Array): StoredObject => ({ ...object, content });
const found = (objects: Objects, key: string) => objects.get(key) as StoredObject | undefined;

describe('a store of values', () => {
  it.each<[string, RegExp, (kv: KvStore) => Partial<KvStore>]>([
    [
      'that forgets the expiry of a key that is replaced',
      /replaces the expiry/,
      (kv) => ({
        put: (key, value, expiresAt) => kv.put(key, value, kv.get(key, 0) === undefined ? expiresAt : undefined),
      }),
    ],
    [
      'that expires a millisecond late',
      /expires at `expiresAt`, not before/,
      (kv) => ({ get: (key, now) => kv.get(key, now - 1) }),
    ],
    [
      'that judges expiry by its own clock',
      /expires at `expiresAt`, not before/,
      (kv) => ({ get: (key) => kv.get(key, Date.now()) }),
    ],
    ['that takes a null for nothing', /also null/, (kv) => ({ get: (key, now) => kv.get(key, now) ?? undefined })],
    [
      'that makes numbers of texts',
      /values come back unchanged/,
      (kv) => ({
        put: (key, value, expiresAt) => kv.put(key, value === '2' ? 2 : value, expiresAt),
      }),
    ],
    [
      'that cuts long values',
      /values come back unchanged/,
      (kv) => ({
        put: (key, value, expiresAt) =>
          kv.put(key, typeof value === 'string' ? value.slice(0, 1_000_000) : value, expiresAt),
      }),
    ],
    [
      'whose keys have no case',
      /keys are literal/,
      (kv) => ({
        put: (key, value, expiresAt) => kv.put(key.toLowerCase(), value, expiresAt),
        get: (key, now) => kv.get(key.toLowerCase(), now),
      }),
    ],
    [
      'that resolves `..` in keys',
      /keys are literal/,
      (kv) => ({
        put: (key, value, expiresAt) => kv.put(key.replace('../', ''), value, expiresAt),
        get: (key, now) => kv.get(key.replace('../', ''), now),
      }),
    ],
    [
      'whose prefix is a pattern',
      /`prefix` is literal/,
      (kv) => ({
        list: ({ prefix = '', ...page }) =>
          (kv.list(page) as string[]).filter((key) =>
            new RegExp(
              `^${prefix
                .replace(/[\\^$.|+(){}[\]]/g, '\\$&')
                .replace(/\*/g, '.*')
                .replace(/\?/g, '.')}`,
            ).test(key),
          ),
      }),
    ],
    [
      'that sorts by UTF-16 units',
      /sorts keys by their UTF-8 bytes/,
      (kv) => ({
        list: (page) => [...(kv.list({ ...page, limit: 1000 }) as string[])].sort().slice(0, page.limit),
      }),
    ],
    [
      'that counts expired keys of a page',
      /take no place in a page/,
      (kv) => ({
        list: (page) => {
          const all = kv.list({ ...page, limit: page.limit, now: 0 }) as string[];
          return all.filter((key) => kv.get(key, page.now) !== undefined);
        },
      }),
    ],
    [
      'that takes any key',
      /refuse a key/,
      (kv) => ({ get: (key, now) => (key === '' ? undefined : kv.get(key, now)) }),
    ],
    [
      'whose delete always says yes',
      /returns whether the key was stored/,
      (kv) => ({
        delete: (key) => {
          kv.delete(key);
          return true;
        },
      }),
    ],
    [
      'that deletes keys with the same beginning',
      /deletes no other key/,
      (kv) => ({
        delete: (key) => {
          for (const other of kv.list({ prefix: `${key}/`, limit: 10, now: 0 }) as string[]) kv.delete(other);
          return kv.delete(key);
        },
      }),
    ],
  ])('%s fails', async (_what, title, change) => {
    const failed = await failuresOf(kvWith(change), ['kv'], title);
    expect(failed).not.toEqual([]);
  });
});

describe('a store of objects', () => {
  it.each<[string, RegExp, (objects: Objects) => Partial<Objects>]>([
    [
      'that reads its bytes as text',
      /content, type and time come back/,
      (objects) => ({
        put: (key, object) =>
          objects.put(key, changed(object, new TextEncoder().encode(new TextDecoder().decode(object.content)))),
      }),
    ],
    [
      'that ends at a zero byte',
      /content, type and time come back/,
      (objects) => ({
        put: (key, object) => objects.put(key, changed(object, object.content.slice(0, object.content.indexOf(0)))),
      }),
    ],
    [
      'that keeps the array that holds a part',
      /Uint8Array of its own length/,
      (objects) => ({
        put: (key, object) => objects.put(key, changed(object, new Uint8Array(object.content.buffer))),
      }),
    ],
    [
      'that stores no empty objects',
      /an empty object is stored/,
      (objects) => ({
        put: (key, object) => (object.content.length > 0 ? objects.put(key, object) : undefined),
      }),
    ],
    [
      'that keeps the first content type',
      /replaces content, type and time/,
      (objects) => ({
        put: (key, object) =>
          objects.put(key, { ...object, contentType: found(objects, key)?.contentType ?? object.contentType }),
      }),
    ],
    [
      'that streams into the object itself',
      /stays as it was when the stream/,
      (objects) => ({
        async putStream(key, { content, ...about }) {
          let size = 0;
          for await (const part of content) {
            const before = size === 0 ? new Uint8Array() : (found(objects, key)?.content ?? new Uint8Array());
            await objects.put(key, {
              ...about,
              content: Uint8Array.from([...before.slice(0, 10), ...part.slice(0, 10)]),
            });
            size += part.length;
          }
          return size;
        },
      }),
    ],
    [
      'that keeps what came of a stream that broke',
      /nothing is stored of a stream that throws/,
      (objects) => ({
        async putStream(key, { content, ...about }) {
          const parts: number[] = [];
          try {
            for await (const part of content) for (const byte of part) parts.push(byte);
          } finally {
            await objects.put(key, { ...about, content: Uint8Array.from(parts) });
          }
          return parts.length;
        },
      }),
    ],
    [
      'that hides the error of a stream',
      /the error is its own/,
      (objects) => ({
        putStream: (key, object) => objects.putStream(key, object).catch(() => 0),
      }),
    ],
    [
      'that keeps the arrays of a stream without a copy',
      /uses its array again/,
      (objects) => ({
        async putStream(key, { content, ...about }) {
          const parts: Uint8Array[] = [];
          for await (const part of content) parts.push(part);
          const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
          parts.reduce((at, part) => {
            all.set(part, at);
            return at + part.length;
          }, 0);
          await objects.put(key, { ...about, content: all });
          return all.length;
        },
      }),
    ],
    [
      'that answers with the number of parts',
      /the answer is the number of bytes/,
      (objects) => ({
        putStream: async (key, object) => (await objects.putStream(key, object)) && 1,
      }),
    ],
    [
      'that loses the type of a stream',
      /putStream: content, type and time/,
      (objects) => ({
        putStream: (key, object) => objects.putStream(key, { ...object, contentType: 'application/octet-stream' }),
      }),
    ],
  ])('%s fails', async (_what, title, change) => {
    const failed = await failuresOf(objectsWith(change), ['objects'], title);
    expect(failed).not.toEqual([]);
  });
});

describe('a store that is opened again', () => {
  const onReopen = (broken: (stores: { kv: KvStore; objects: Objects }) => DataStores) => async () => {
    const failed: string[] = [];
    const cases: Case[] = [];
    let data = { kv: memoryKv(), objects: memoryObjects() as Objects };
    dataSuite({
      name: 'broken',
      create: () => {
        data = { kv: memoryKv(), objects: memoryObjects() as Objects };
        return data;
      },
      reopen: () => broken(data),
      test: {
        describe: (_name, body) => body(),
        it: (title, body) => {
          cases.push({ title, body });
        },
      },
    });
    for (const { title, body } of cases.filter((one) => one.title.startsWith('reopen: '))) {
      await Promise.resolve()
        .then(body)
        .catch(() => failed.push(title));
    }
    return failed;
  };

  it.each<[string, RegExp, (stores: { kv: KvStore; objects: Objects }) => DataStores]>([
    ['and is empty', /reopen/, () => ({ kv: memoryKv(), objects: memoryObjects() })],
    [
      'and has lost one value',
      /values are unchanged/,
      (stores) => {
        stores.kv.delete('key-0');
        return stores;
      },
    ],
    [
      'and has lost the expiries',
      /expires when it did before/,
      ({ kv, objects }) => ({
        kv: { ...kv, get: (key) => kv.get(key, 0), list: (page) => kv.list({ ...page, now: 0 }) },
        objects,
      }),
    ],
    [
      'and has changed a byte',
      /content, type and time are unchanged/,
      ({ kv, objects }) => ({
        kv,
        objects: {
          ...objects,
          get(key) {
            const object = found(objects, key);
            return (
              object &&
              changed(
                object,
                object.content.map((byte, i) => (i === 7 ? byte ^ 1 : byte)),
              )
            );
          },
        },
      }),
    ],
    [
      'and has a deleted key again',
      /deleted keys stay deleted/,
      (stores) => {
        stores.kv.put('deleted', { of: 'deleted' });
        return stores;
      },
    ],
  ])('%s fails', async (_what, title, broken) => {
    const failed = await onReopen(broken)();
    expect(failed.filter((one) => title.test(one))).not.toEqual([]);
  });

  it('and has everything passes', async () => {
    expect(await onReopen((stores) => stores)()).toEqual([]);
  });
});
