/** The data suite's cases of keys and pages, which hold for values and objects alike. */

import type { KeyPage, KvStore, ObjectStore } from '../../../engine/ports/data.ts';
import type { MaybePromise } from '../../../engine/ports/operation.ts';
import { same } from '../storage-suite/context.ts';

/** Declares one case: it gets a store that is fresh, empty, and closed behind it. */
export type DeclareCase<S> = (name: string, body: (store: S) => Promise<void>) => void;

/** Unix ms at which everything in the suite happens. */
export const T0 = Date.UTC(2026, 0, 1);

/** What keys and pages need: the same cases run on both kinds. */
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

/** One odd key a word. */
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
  it('get: an unknown key is not there', async (store) => {
    for (const key of ['a', 'constructor', '__proto__']) same(await store.has(key), false, key);
  });

  it('A39: keys are taken as they are: no character has a meaning, and no two keys are one', async (store) => {
    for (const key of ODD_KEYS) await store.put(key);
    for (const key of ODD_KEYS) same(await store.has(key), true, JSON.stringify(key));
    same([...(await store.list({ limit: 1000, now: T0 }))].sort(), [...ODD_KEYS].sort(), 'keys');
  });

  it('what no store could hold is refused as a key by each call, and begins no key', async (store) => {
    await store.put('a😀');
    for (const key of ['', 'x'.repeat(513), '漢'.repeat(171), 'a\u0000b', 'a\ud83d', '\ude00']) {
      for (const call of [() => store.put(key), () => store.has(key), () => store.delete(key)]) {
        same(await refusalOf(call), 'INVALID_REQUEST', JSON.stringify(key.slice(0, 10)));
      }
    }
    same(await store.list({ prefix: 'a\ud83d', limit: 10, now: T0 }), [], 'half a character');
    same(await store.list({ limit: 10, now: T0 }), ['a😀'], 'what is there');
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
    const sorted = [...`0 10 9 A Z a a/b ab z ä я 漢 \ufeff \uffee 😀 \u{10ffff}`.split(' ')];
    for (const key of [...sorted].reverse()) await store.put(key);
    same(await store.list({ limit: 1000, now: T0 }), sorted, 'keys');
  });

  it('A39: list: `prefix` is literal', async (store) => {
    const keys = `% %a * _a a a% a%b aa ab a_b b ä a\ud7ff a\ue000 \u{10ffff} \u{10ffff}x`.split(' ');
    for (const key of keys) await store.put(key);
    for (const prefix of [
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
