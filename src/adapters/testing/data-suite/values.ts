/** The data suite's cases of values, their expiry, and objects. */

import type { Json } from '../../../engine/json.ts';
import type { KvStore, ObjectStore, StoredObject } from '../../../engine/ports/data.ts';
import { same } from '../storage-suite/context.ts';
import { type DeclareCase, T0 } from './keys.ts';

const VALUES: readonly Json[] = [
  [null, true, false, 0, -1, 0.1, 1e21, 5e-324, Number.MAX_SAFE_INTEGER, [], {}, [[]]],
  ['', '2', 'null', '{"a":1}', '\u0000', '\ud83d', '👍\u2028', 'ä漢x'.repeat(350_000)],
  [{ '': { constructor: 1 }, '0': null, a: [{ b: 1.5 }] }],
].flat(1);

export function kvCases(it: DeclareCase<KvStore>): void {
  it('says what it is', async (kv) => same(kv.kind, 'kv', 'kind'));

  it('get: values come back as they were handed in; a stored null is null', async (kv) => {
    for (const [i, value] of VALUES.entries()) await kv.put(`key-${i}`, value);
    for (const [i, value] of VALUES.entries()) same(await kv.get(`key-${i}`, T0), value, `value ${i}`);
  });

  it('put: replaces, also by a value of another type', async (kv) => {
    for (const value of [{ a: 1 }, 'text', null, [1]]) {
      await kv.put('a', value);
      same(await kv.get('a', T0), value, 'value');
    }
    same(await kv.list({ limit: 10, now: T0 }), ['a'], 'keys');
  });

  it('get and list: a key is there until the ms before `expiresAt`, and not from it on', async (kv) => {
    await kv.put('a', 1, T0 + 1000);
    await kv.put('b', 2);
    same(await kv.get('a', T0 + 999), 1, 'the ms before');
    same(await kv.list({ limit: 10, now: T0 + 999 }), ['a', 'b'], 'keys of the ms before');
    same(await kv.list({ limit: 10, now: T0 + 1000 }), ['b'], 'keys at that ms');
    same(await kv.get('a', T0 + 1000), undefined, 'at that ms');
    same(await kv.get('b', T0 + 1e12), 2, 'a key without an expiry');
  });

  it('list: keys that expired take no place in a page', async (kv) => {
    for (let i = 0; i < 20; i++) await kv.put(`key-${String(i).padStart(2, '0')}`, i, i % 2 === 0 ? T0 : undefined);
    same(await kv.list({ limit: 3, now: T0 }), ['key-01', 'key-03', 'key-05'], 'keys');
  });

  it('put: replaces the expiry too, and without one the key stays', async (kv) => {
    await kv.put('a', 1, T0 + 1000);
    await kv.put('a', 2, T0 + 5000);
    same(await kv.get('a', T0 + 2000), 2, 'with a later expiry');
    await kv.put('a', 3);
    same(await kv.get('a', T0 + 9000), 3, 'without one');
    await kv.put('a', 4, T0 + 1);
    same(await kv.get('a', T0 + 9000), undefined, 'with an earlier one');
  });

  it('put: a key that expired can be stored again', async (kv) => {
    await kv.put('a', 1, T0);
    same(await kv.get('a', T0), undefined, 'expired');
    await kv.put('a', 2, T0 + 10);
    same(await kv.get('a', T0), 2, 'stored again');
  });

  it('get: what was handed out stays as it was when the key is replaced', async (kv) => {
    await kv.put('a', { list: [1] });
    const before = await kv.get('a', T0);
    await kv.put('a', { list: [1, 2] });
    same(before, { list: [1] }, 'value');
  });
}

function object(text: string, contentType = 'text/plain', updatedAt = T0): StoredObject {
  return { content: new TextEncoder().encode(text), contentType, updatedAt };
}

export function objectCases(it: DeclareCase<ObjectStore>): void {
  const bytes = (found: StoredObject | undefined) => found && Array.from(found.content);

  it('says what it is', async (objects) => same(objects.kind, 'objects', 'kind'));

  it('get: content, type and time come back as they were handed in', async (objects) => {
    const content = Uint8Array.from({ length: 256 }, (_, i) => i);
    const contentType = 'application/x-ä; charset="utf-8"';
    await objects.put('a', { content, contentType, updatedAt: T0 + 7 });
    const found = await objects.get('a');
    same(bytes(found), [...content], 'content');
    same([found?.contentType, found?.updatedAt], [contentType, T0 + 7], 'type and time');
  });

  it('get: the content is a Uint8Array of its own length', async (objects) => {
    await objects.put('a', { ...object(''), content: new Uint8Array([9, 1, 2, 9]).subarray(1, 3) });
    const found = await objects.get('a');
    same([found?.content instanceof Uint8Array, found?.content.byteLength, bytes(found)], [true, 2, [1, 2]], 'content');
  });

  it('an empty object is there', async (objects) => {
    await objects.put('a', object(''));
    same(bytes(await objects.get('a')), [], 'content');
  });

  it('an object of 8 MiB', async (objects) => {
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
