/** Data suite: keys and pages. The rules are the same for values and objects. */

import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { KeyPage, KvStore, ObjectStore } from '../../engine/storage/data.port.ts';
import type { DeclareCase } from '../declare-cases.ts';
import { same } from '../storage-suite/context.ts';

/** The instant of the suite's calls, Unix ms. */
export const T0 = Date.UTC(2026, 0, 1);

/** The calls that the cases of keys and pages make, for both kinds of stores. */
export interface Keyed {
  put(key: string): MaybePromise<void>;
  has(key: string): Promise<boolean>;
  delete(key: string): MaybePromise<boolean>;
  list(page: KeyPage): MaybePromise<readonly string[]>;
}

async function refusalOf(call: () => unknown): Promise<unknown> {
  try {
    await call();
  } catch (thrown) {
    return (thrown as { code?: unknown }).code;
  }
  return undefined;
}

/** Odd keys, separated by spaces. */
const ODD_WORDS = `a A a/b a:b a.b a\\b /a a/ a//b ../a . .. ?x a?x=1#y % _ * constructor __proto__ toString " ' "a" ;-- null 2 02 ä a\u0308 漢 👍`;
const ODD_KEYS: readonly string[] = [
  ...ODD_WORDS.split(' '),
  ' ',
  'a ',
  '\n',
  '\u2028',
  '\ufeff',
  'x'.repeat(512),
  '漢'.repeat(170),
];

function compareBytes(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => new TextEncoder().encode(text)) as [Uint8Array, Uint8Array];
  const at = left.findIndex((byte, i) => byte !== right[i]);
  return at < 0 ? left.length - right.length : (left[at] ?? 0) - (right[at] ?? -1);
}

export function keyedValues(kv: KvStore): Keyed {
  return {
    put: (key) => kv.put(key, { of: key }),
    async has(key) {
      const value = await kv.get(key, T0);
      if (value !== undefined) same(value, { of: key }, `value of ${JSON.stringify(key)}`);
      return value !== undefined;
    },
    delete: (key) => kv.delete(key),
    list: (page) => kv.list(page),
  };
}

export function keyedObjects(objects: ObjectStore): Keyed {
  return {
    put: (key) =>
      objects.put(key, { content: new TextEncoder().encode(key), contentType: 'text/plain', updatedAt: T0 }),
    async has(key) {
      const found = await objects.get(key);
      if (found)
        same(
          new TextDecoder('utf-8', { ignoreBOM: true }).decode(found.content),
          key,
          `content of ${JSON.stringify(key)}`,
        );
      return found !== undefined;
    },
    delete: (key) => objects.delete(key),
    list: (page) => objects.list(page),
  };
}

export function keyCases(it: DeclareCase<Keyed>): void {
  it('get: an unknown key is not found', async (store) => {
    for (const key of ['a', 'constructor', '__proto__']) same(await store.has(key), false, key);
  });

  it('put: keys are literal: no character has a special meaning, and different keys never collide', async (store) => {
    for (const key of ODD_KEYS) await store.put(key);
    for (const key of ODD_KEYS) same(await store.has(key), true, JSON.stringify(key));
    same([...(await store.list({ limit: 1000, now: T0 }))].sort(), [...ODD_KEYS].sort(), 'keys');
  });

  it('put, get and delete: refuse a key that not every store can hold', async (store) => {
    await store.put('a😀');
    for (const key of ['', 'x'.repeat(513), '漢'.repeat(171), 'a\u0000b', 'a\ud83d', '\ude00']) {
      for (const call of [() => store.put(key), () => store.has(key), () => store.delete(key)]) {
        same(await refusalOf(call), 'INVALID_REQUEST', JSON.stringify(key.slice(0, 10)));
      }
    }
    same(await store.list({ prefix: 'a\ud83d', limit: 10, now: T0 }), [], 'keys with half a character as prefix');
    same(await store.list({ limit: 10, now: T0 }), ['a😀'], 'stored keys');
  });

  it('delete: returns whether the key was stored, and deletes no other key', async (store) => {
    for (const key of ['a', 'a/b', 'A']) await store.put(key);
    same([await store.delete('a'), await store.delete('a'), await store.delete('b')], [true, false, false], 'answers');
    same([await store.has('a'), await store.has('a/b'), await store.has('A')], [false, true, true], 'stored keys');
    await store.put('a');
    same(await store.has('a'), true, 'a key that was deleted and stored again');
  });

  it('list: an empty store has no keys', async (store) => {
    same(await store.list({ limit: 10, now: T0 }), [], 'keys');
  });

  it('list: sorts keys by their UTF-8 bytes', async (store) => {
    const sorted = [...`0 10 9 A Z a a/b ab z ä я 漢 \ufeff \uffee 😀 \u{10ffff}`.split(' ')];
    for (const key of [...sorted].reverse()) await store.put(key);
    same(await store.list({ limit: 1000, now: T0 }), sorted, 'keys');
  });

  it('list: `prefix` is literal', async (store) => {
    const keys = `% %a * _a a a% a%b aa ab a_b b ä a\ud7ff a\ue000 \u{10ffff} \u{10ffff}x`.split(' ');
    for (const key of keys) await store.put(key);
    for (const key of ['[a]', '[', ']', 'a[b', 'a\\b', '\\', '../x', './x', 'a/../x', '?', 'a?', '{', '^a', 'a$']) {
      await store.put(key);
      keys.push(key);
    }
    for (const prefix of [
      ...[
        '[',
        '[a',
        '[a-z]',
        ']',
        'a[',
        '\\',
        'a\\',
        '../',
        '..',
        '.',
        './',
        'a/..',
        'a/../',
        '?',
        'a?',
        '{',
        '^',
        'a$',
        '/',
      ],
      '',
      '%',
      '_',
      '*',
      'a',
      'A',
      'a%',
      'a_',
      'a\ud7ff',
      '\u{10ffff}',
      'zz',
      '%%',
      'a\u0000',
      "'",
    ]) {
      const found = [...(await store.list({ prefix, limit: 1000, now: T0 }))].sort();
      same(found, keys.filter((key) => key.startsWith(prefix)).sort(), `prefix ${JSON.stringify(prefix)}`);
    }
  });

  it('list: `after` leaves out that key and all keys before it, also if the key is not stored', async (store) => {
    for (const key of ['a', 'b', 'd', 'e']) await store.put(key);
    const after = (key: string) => store.list({ after: key, limit: 10, now: T0 });
    same(await after('b'), ['d', 'e'], 'after a stored key');
    same(await after('c'), ['d', 'e'], 'after a key that is not stored');
    same(await after('e'), [], 'after the last key');
    same(await after('a\u0000'), ['b', 'd', 'e'], 'after a text that cannot be a key');
  });

  it('list: pages by `prefix`, `after` and `limit` list each key once, while keys are added and deleted', async (store) => {
    const keys = Array.from({ length: 30 }, (_, i) => `in/${String(i).padStart(2, '0')}`);
    for (const key of [...keys, 'before', 'out/1']) await store.put(key);
    const seen: string[] = [];
    for (let pages = 0; pages < 30; pages++) {
      const after = seen.at(-1);
      const page = await store.list({ prefix: 'in/', limit: 7, now: T0, ...(after !== undefined && { after }) });
      if (page.length === 0) break;
      same(page.length <= 7, true, 'at most `limit` keys');
      seen.push(...page);
      await store.delete(page[0] as string);
      await store.put('in/00a');
    }
    same(seen, keys, 'keys');
  });

  it('list: pages of one key list all odd keys, in the order of their bytes', async (store) => {
    for (const key of ODD_KEYS) await store.put(key);
    const listed: string[] = [];
    for (let page = await store.list({ limit: 1, now: T0 }); page.length > 0; ) {
      same(page.length, 1, 'keys of a page');
      listed.push(...page);
      if (listed.length > ODD_KEYS.length) break;
      page = await store.list({ limit: 1, now: T0, after: listed.at(-1) as string });
    }
    same(listed, [...ODD_KEYS].sort(compareBytes), 'keys');
  });

  it('put and delete: concurrent calls on one key leave it whole, stored or deleted', async (store) => {
    const calls = Array.from({ length: 20 }, async (_, i) => (i % 3 === 1 ? store.delete('a') : store.put('a')));
    await Promise.all(calls);
    const isStored = await store.has('a');
    same(await store.list({ limit: 10, now: T0 }), isStored ? ['a'] : [], 'keys');
    same(await store.delete('a'), isStored, 'delete');
  });

  it('put: many concurrent calls are all stored', async (store) => {
    const keys = Array.from({ length: 100 }, (_, i) => `key-${i}`);
    await Promise.all(keys.map(async (key) => store.put(key)));
    same([...(await store.list({ limit: 1000, now: T0 }))].sort(), keys.sort(), 'keys');
  });
}

/** For stores that outlive their handle. */
export function reopenedKeyCases(it: DeclareCase<Keyed>): void {
  it('reopen: odd keys keep their values and their order, and deleted keys stay deleted', async (store, reopen) => {
    for (const key of [...ODD_KEYS, 'deleted', 'again']) await store.put(key);
    for (const key of ['deleted', 'again']) await store.delete(key);
    await store.put('again');
    const before = await store.list({ limit: 1000, now: T0 });
    const next = await reopen();
    same(await next.list({ limit: 1000, now: T0 }), before, 'keys');
    for (const key of [...ODD_KEYS, 'again']) same(await next.has(key), true, JSON.stringify(key));
    same([await next.has('deleted'), await next.delete('deleted')], [false, false], 'a deleted key');
  });
}
