/** The conformance suite of the data ports: what each `KvStore` and `ObjectStore` must do, for any runner with `describe` and `it`. */

import type { Json } from '../../engine/json.ts';
import type { KeyPage, KvStore, ObjectStore, StoredObject } from '../../engine/ports/data.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { SuiteRunner } from './http-suite.ts';
import { same } from './storage-suite/context.ts';

/** Stores under test; a whole `Storage` is one too. */
export interface DataStores {
  readonly kv?: KvStore;
  readonly objects?: ObjectStore;
  close?(): MaybePromise<void>;
}

export interface DataSuiteOptions {
  readonly name: string;
  /** Stores that are fresh and empty; called once a test, and closed behind it. */
  readonly create: () => MaybePromise<DataStores>;
  /** Which of the two `create` gives. Default both. */
  readonly kinds?: readonly ('kv' | 'objects')[];
  readonly test: SuiteRunner;
}

/** What keys and pages need: the same cases run on both kinds. */
interface Keyed {
  put(key: string): MaybePromise<void>;
  has(key: string): Promise<boolean>;
  delete(key: string): MaybePromise<boolean>;
  list(page: KeyPage): MaybePromise<readonly string[]>;
}

type Declare<S> = (name: string, body: (store: S) => Promise<void>) => void;

/** Unix ms at which everything in the suite happens. */
const T0 = Date.UTC(2026, 0, 1);
const ODD_KEYS: readonly string[] = [
  ...['a', 'A', 'a/b', 'a:b', 'a.b', 'a\\b', '/a', 'a/', 'a//b', '../a', '.', '..', ' ', 'a ', '?x', 'a?x=1#y', '%', '_', '*'],
  ...['constructor', '__proto__', 'toString', '"', "'", '"a"', ';--', 'null', '2', '02', 'ä', 'a\u0308', '漢', '👍', '\n', '\u2028', '\ufeff'],
  'x'.repeat(512),
  '漢'.repeat(170),
];

/**
 * Declares the suite's tests: one for each promise of the ports. They take answers at once and promises alike.
 *
 * @param options - see {@link DataSuiteOptions}
 * @example
 * ```ts
 * import { describe, it } from 'vitest';
 * import { dataSuite } from 'ensemble-orchestrator/testing';
 *
 * dataSuite({ name: 'myKv', kinds: ['kv'], create: () => ({ kv: myKv() }), test: { describe, it } });
 * ```
 */
export function dataSuite({ name, create, kinds = ['kv', 'objects'], test }: DataSuiteOptions): void {
  const declare =
    <S>(pick: (stores: DataStores) => S | undefined): Declare<S> =>
    (title, body) => {
      test.it(title, async () => {
        const stores = await create();
        try {
          const store = pick(stores);
          if (store === undefined) throw new Error('create gave no store of this kind; say which it gives in `kinds`');
          await body(store);
        } finally {
          await stores.close?.();
        }
      });
    };
  if (kinds.includes('kv')) {
    test.describe(`${name} as a KvStore`, () => {
      keyCases(declare(({ kv }) => kv && keyedValues(kv)));
      kvCases(declare(({ kv }) => kv));
    });
  }
  if (kinds.includes('objects')) {
    test.describe(`${name} as an ObjectStore`, () => {
      keyCases(declare(({ objects }) => objects && keyedObjects(objects)));
      objectCases(declare(({ objects }) => objects));
    });
  }
}

function keyedValues(kv: KvStore): Keyed {
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

function keyedObjects(objects: ObjectStore): Keyed {
  return {
    put: (key) => objects.put(key, object(key)),
    async has(key) {
      const found = await objects.get(key);
      if (found) same(new TextDecoder('utf-8', { ignoreBOM: true }).decode(found.content), key, `content of ${JSON.stringify(key)}`);
      return found !== undefined;
    },
    delete: (key) => objects.delete(key),
    list: (page) => objects.list(page),
  };
}

function object(text: string, contentType = 'text/plain', updatedAt = T0): StoredObject {
  return { content: new TextEncoder().encode(text), contentType, updatedAt };
}

function keyCases(it: Declare<Keyed>): void {
  it('get: an unknown key is not there', async (store) => {
    for (const key of ['a', 'constructor', '__proto__']) same(await store.has(key), false, key);
  });

  it('A39: keys are taken as they are: no character has a meaning, and no two keys are one', async (store) => {
    for (const key of ODD_KEYS) await store.put(key);
    for (const key of ODD_KEYS) same(await store.has(key), true, JSON.stringify(key));
    same([...(await store.list({ limit: 1000, now: T0 }))].sort(), [...ODD_KEYS].sort(), 'keys');
  });

  it('delete: says whether the key was there, and takes that one alone', async (store) => {
    for (const key of ['a', 'a/b', 'A']) await store.put(key);
    same([await store.delete('a'), await store.delete('a'), await store.delete('b')], [true, false, false], 'answers');
    same([await store.has('a'), await store.has('a/b'), await store.has('A')], [false, true, true], 'what is there');
    await store.put('a');
    same(await store.has('a'), true, 'a key that was deleted and stored again');
  });

  it('list: an empty store gives none', async (store) => {
    same(await store.list({ limit: 10, now: T0 }), [], 'keys');
  });

  it('list: in the order of their bytes of UTF-8', async (store) => {
    const sorted = ['\n', '0', '10', '9', 'A', 'Z', 'a', 'a/b', 'ab', 'z', 'ä', 'я', '漢', '\ufeff', '\uffee', '😀', '\u{10ffff}'];
    for (const key of [...sorted].reverse()) await store.put(key);
    same(await store.list({ limit: 1000, now: T0 }), sorted, 'keys');
  });

  it('A39: list: `prefix` is literal', async (store) => {
    const keys = ['%', '%a', '*', '_a', 'a', 'a%', 'a%b', 'aa', 'ab', 'a_b', 'b', 'ä', 'a\ud7ff', 'a\ue000', '\u{10ffff}', '\u{10ffff}x'];
    for (const key of keys) await store.put(key);
    for (const prefix of ['', '%', '_', '*', 'a', 'A', 'a%', 'a_', 'a\ud7ff', '\u{10ffff}', 'zz', '%%', 'a\u0000', "'"]) {
      const found = [...(await store.list({ prefix, limit: 1000, now: T0 }))].sort();
      same(found, keys.filter((key) => key.startsWith(prefix)).sort(), `prefix ${JSON.stringify(prefix)}`);
    }
  });

  it('list: `after` leaves out that key and all before it, also when it is not there', async (store) => {
    for (const key of ['a', 'b', 'd', 'e']) await store.put(key);
    const after = (key: string) => store.list({ after: key, limit: 10, now: T0 });
    same(await after('b'), ['d', 'e'], 'behind one that is there');
    same(await after('c'), ['d', 'e'], 'behind one that is not');
    same(await after('e'), [], 'behind the last');
    same(await after('a\u0000'), ['b', 'd', 'e'], 'behind what no key can be');
  });

  it('A111: list: prefix, after and limit together page through all, each once, while keys come and go', async (store) => {
    const keys = Array.from({ length: 30 }, (_, i) => `in/${String(i).padStart(2, '0')}`);
    for (const key of [...keys, 'before', 'out/1']) await store.put(key);
    const seen: string[] = [];
    for (let pages = 0; pages < 30; pages++) {
      const after = seen.at(-1);
      const page = await store.list({ prefix: 'in/', limit: 7, now: T0, ...(after !== undefined && { after }) });
      if (page.length === 0) break;
      same(page.length <= 7, true, 'no more than `limit`');
      seen.push(...page);
      await store.delete(page[0] as string);
      await store.put('in/00a');
    }
    same(seen, keys, 'keys');
  });

  it('many at the same time are all there', async (store) => {
    const keys = Array.from({ length: 100 }, (_, i) => `key-${i}`);
    await Promise.all(keys.map(async (key) => store.put(key)));
    same([...(await store.list({ limit: 1000, now: T0 }))].sort(), keys.sort(), 'keys');
  });
}

const VALUES: readonly Json[] = [
  ...[null, true, false, 0, -1, 0.1, 1e21, 5e-324, Number.MAX_SAFE_INTEGER, '', '2', 'null', '{"a":1}', '\u0000', '\ud83d', '👍\u2028'],
  ...[[], {}, [[]], { '': { constructor: 1 }, '0': null, a: [{ b: 1.5 }] }],
  'ä漢x'.repeat(350_000),
];

function kvCases(it: Declare<KvStore>): void {
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

function objectCases(it: Declare<ObjectStore>): void {
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
    same([new TextDecoder().decode(found?.content), found?.contentType, found?.updatedAt], ['{}', 'application/json', T0 + 1], 'object');
    same(await objects.list({ limit: 10, now: T0 }), ['a'], 'keys');
  });

  it('list: objects do not expire, whatever `now` is', async (objects) => {
    await objects.put('a', object('a', 'text/plain', T0));
    same(await objects.list({ limit: 10, now: T0 + 1e12 }), ['a'], 'keys');
  });
}
