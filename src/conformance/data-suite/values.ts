/** Data suite: values, their expiry, and objects. */

import type { Json } from '../../engine/base/json/json.ts';
import type { KvStore, ObjectStore, StoredObject } from '../../engine/storage/data.port.ts';
import type { DeclareCase } from '../declare-cases.ts';
import { same } from '../storage-suite/context.ts';
import { T0 } from './keys.ts';

const VALUES: readonly Json[] = [
  [null, true, false, 0, -1, 0.1, 1e21, 5e-324, Number.MAX_SAFE_INTEGER, [], {}, [[]]],
  ['', '2', 'null', '{"a":1}', '\u0000', '\ud83d', '👍\u2028', 'ä漢x'.repeat(340_000)],
  [{ '': { constructor: 1 }, '0': null, a: [{ b: 1.5 }] }],
].flat(1);

export function kvCases(it: DeclareCase<KvStore>): void {
  it('kind: is `kv`', async (kv) => same(kv.kind, 'kv', 'kind'));

  it('get: values come back unchanged, also null', async (kv) => {
    for (const [i, value] of VALUES.entries()) await kv.put(`key-${i}`, value);
    for (const [i, value] of VALUES.entries()) same(await kv.get(`key-${i}`, T0), value, `value ${i}`);
  });

  it('put: replaces a value, also with a value of another type', async (kv) => {
    for (const value of [{ a: 1 }, 'text', null, [1]]) {
      await kv.put('a', value);
      same(await kv.get('a', T0), value, 'value');
    }
    same(await kv.list({ limit: 10, now: T0 }), ['a'], 'keys');
  });

  it('get and list: a key expires at `expiresAt`, not before', async (kv) => {
    await kv.put('a', 1, T0 + 1000);
    await kv.put('b', 2);
    await kv.put('c', 3, T0 + 1000);
    same(await kv.get('a', T0 + 999), 1, '1 ms before');
    same(await kv.list({ limit: 10, now: T0 + 999 }), ['a', 'b', 'c'], 'keys 1 ms before');
    // A store may delete what a call finds expired: the two calls must not depend on each other.
    same(await kv.get('a', T0 + 1000), undefined, 'at the instant');
    same(await kv.list({ limit: 10, now: T0 + 1000 }), ['b'], 'keys at the instant');
    same(await kv.get('b', T0 + 1e12), 2, 'a key without an expiry');
  });

  it('list: expired keys take no place in a page', async (kv) => {
    for (let i = 0; i < 20; i++) await kv.put(`key-${String(i).padStart(2, '0')}`, i, i % 2 === 0 ? T0 : undefined);
    same(await kv.list({ limit: 3, now: T0 }), ['key-01', 'key-03', 'key-05'], 'keys');
  });

  it('put: replaces the expiry, and without one the key does not expire', async (kv) => {
    await kv.put('a', 1, T0 + 1000);
    await kv.put('a', 2, T0 + 5000);
    same(await kv.get('a', T0 + 2000), 2, 'with a later expiry');
    await kv.put('a', 3);
    same(await kv.get('a', T0 + 9000), 3, 'without an expiry');
    await kv.put('a', 4, T0 + 1);
    same(await kv.get('a', T0 + 9000), undefined, 'with an earlier expiry');
  });

  it('put: an expired key can be stored again', async (kv) => {
    await kv.put('a', 1, T0);
    same(await kv.get('a', T0), undefined, 'expired');
    await kv.put('a', 2, T0 + 10);
    same(await kv.get('a', T0), 2, 'stored again');
  });

  it('get: a returned value does not change when the key is replaced', async (kv) => {
    await kv.put('a', { list: [1] });
    const before = await kv.get('a', T0);
    await kv.put('a', { list: [1, 2] });
    same(before, { list: [1] }, 'value');
  });
}

/** For stores that outlive their handle. */
export function reopenedKvCases(it: DeclareCase<KvStore>): void {
  it('reopen: values are unchanged, also null, and replaced values do not come back', async (kv, reopen) => {
    for (const i of VALUES.keys()) await kv.put(`key-${i}`, { replaced: i });
    for (const [i, value] of VALUES.entries()) await kv.put(`key-${i}`, value);
    const next = await reopen();
    for (const [i, value] of VALUES.entries()) same(await next.get(`key-${i}`, T0), value, `value ${i}`);
  });

  it('reopen: a key expires when it did before, and a key without an expiry never does', async (kv, reopen) => {
    await kv.put('a', 1, T0 + 1000);
    await kv.put('b', null, T0 + 1000);
    await kv.put('b', null);
    const next = await reopen();
    same(await next.get('a', T0 + 999), 1, '1 ms before');
    same(await next.list({ limit: 10, now: T0 + 999 }), ['a', 'b'], 'keys 1 ms before');
    same(await next.get('a', T0 + 1000), undefined, 'at the instant');
    same([await next.get('b', T0 + 1e12)], [null], 'a key whose expiry was removed');
  });
}

const EVERY_BYTE = Uint8Array.from({ length: 256 }, (_, i) => i);

function object(text: string, contentType = 'text/plain', updatedAt = T0): StoredObject {
  return { content: new TextEncoder().encode(text), contentType, updatedAt };
}

const bytes = (found: StoredObject | undefined) => found && Array.from(found.content);

export function objectCases(it: DeclareCase<ObjectStore>): void {
  it('kind: is `objects`', async (objects) => same(objects.kind, 'objects', 'kind'));

  it('get: content, type and time come back unchanged', async (objects) => {
    const contentType = 'application/x-ä; charset="utf-8"';
    await objects.put('a', { content: EVERY_BYTE.slice(), contentType, updatedAt: T0 + 7 });
    const found = await objects.get('a');
    same(bytes(found), [...EVERY_BYTE], 'content');
    same([found?.contentType, found?.updatedAt], [contentType, T0 + 7], 'type and time');
  });

  it('get: the content is a Uint8Array of its own length', async (objects) => {
    await objects.put('a', { ...object(''), content: new Uint8Array([9, 1, 2, 9]).subarray(1, 3) });
    const found = await objects.get('a');
    same([found?.content instanceof Uint8Array, found?.content.byteLength, bytes(found)], [true, 2, [1, 2]], 'content');
  });

  it('put: an empty object is stored', async (objects) => {
    await objects.put('a', object(''));
    same(bytes(await objects.get('a')), [], 'content');
  });

  it('put: an object of 8 MiB is stored', async (objects) => {
    const content = new Uint8Array(8 * 1024 * 1024);
    for (let i = 0; i < content.length; i += 4093) content[i] = i % 251;
    await objects.put('a', { ...object(''), content: content.slice() });
    const found = (await objects.get('a'))?.content;
    same([found?.length, found?.every((byte, i) => byte === content[i])], [content.length, true], 'content');
  });

  it('put: replaces content, type and time', async (objects) => {
    await objects.put('a', object('a long first text', 'text/plain', T0));
    await objects.put('a', object('{}', 'application/json', T0 + 1));
    const found = await objects.get('a');
    same(
      [new TextDecoder().decode(found?.content), found?.contentType, found?.updatedAt],
      ['{}', 'application/json', T0 + 1],
      'object',
    );
    same(await objects.list({ limit: 10, now: T0 }), ['a'], 'keys');
  });

  it('list: objects do not expire, whatever `now` is', async (objects) => {
    await objects.put('a', object('a', 'text/plain', T0));
    same(await objects.list({ limit: 10, now: T0 + 1e12 }), ['a'], 'keys');
  });
}

/** For stores that outlive their handle. */
export function reopenedObjectCases(it: DeclareCase<ObjectStore>): void {
  it('reopen: content, type and time are unchanged, and replaced contents do not come back', async (objects, reopen) => {
    const stored: Readonly<Record<string, StoredObject>> = {
      bytes: { ...object('', 'application/x-ä; charset="utf-8"', T0 + 7), content: EVERY_BYTE.slice() },
      part: { ...object(''), content: new Uint8Array([9, 1, 2, 9]).subarray(1, 3) },
      empty: object(''),
      text: object('ä漢👍\u0000', 'text/plain', T0 + 1e12),
    };
    const contents = Object.values(stored).map(bytes);
    for (const key of Object.keys(stored)) await objects.put(key, object('replaced', 'text/html', T0 - 1));
    for (const [key, one] of Object.entries(stored)) await objects.put(key, one);
    const next = await reopen();
    for (const [i, [key, { contentType, updatedAt }]] of Object.entries(stored).entries()) {
      const found = await next.get(key);
      same(bytes(found), contents[i], `content of ${key}`);
      same([found?.contentType, found?.updatedAt], [contentType, updatedAt], `type and time of ${key}`);
      same(found?.content instanceof Uint8Array, true, `${key} is a Uint8Array`);
    }
  });
}
