/**
 * The published suite on Workers KV, R2 and D1, as a Worker: `/cases` lists the cases, and `/run?from=0&to=10` runs some of them, each in an
 * empty store.
 */

import { d1Database, kvNamespace, r2Bucket } from 'ensemble-orchestrator/cloudflare';
import { dataSuite } from 'ensemble-orchestrator/conformance';

const T0 = Date.UTC(2026, 0, 1);
const MIB = 1024 * 1024;

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const cases = allCases(env);
    if (pathname === '/cases') return Response.json(cases.map(({ suite, title }) => ({ suite, title })));
    const outcomes = [];
    for (let number = Number(searchParams.get('from')); number < Number(searchParams.get('to')); number += 1) {
      outcomes.push(await outcomeOf(cases[number]));
    }
    return Response.json(outcomes);
  },
};

function allCases(env) {
  const cases = [];
  const suite = (name) => ({
    describe: (_title, body) => body(),
    it: (title, body) => cases.push({ suite: name, title, body }),
  });
  const openKv = () => ({ kv: kvNamespace(env.KV) });
  const openR2 = () => ({ objects: r2Bucket(env.BUCKET) });
  const openD1 = () => ({ sql: d1Database(env.DB) });
  const emptyD1 = async () => {
    const { results } = await env.DB.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
    for (const { name } of results) {
      if (!/^(sqlite|_cf)_/i.test(name)) await env.DB.exec(`DROP TABLE "${name}"`);
    }
    return openD1();
  };
  const emptyKv = async () => {
    await empty(env.KV, (page) => page.keys.map(({ name }) => name));
    return openKv();
  };
  const emptyR2 = async () => {
    await empty(env.BUCKET, (page) => page.objects.map(({ key }) => key));
    return openR2();
  };
  dataSuite({ name: 'kvNamespace', create: emptyKv, reopen: openKv, kinds: ['kv'], test: suite('kvNamespace') });
  dataSuite({ name: 'r2Bucket', create: emptyR2, reopen: openR2, kinds: ['objects'], test: suite('r2Bucket') });
  dataSuite({ name: 'd1Database', create: emptyD1, reopen: openD1, kinds: ['sql'], test: suite('d1Database') });
  kvCases(env, emptyKv, suite('kvNamespace').it);
  r2Cases(env, emptyR2, suite('r2Bucket').it);
  d1Cases(emptyD1, suite('d1Database').it);
  return cases;
}

async function empty(store, namesOf) {
  for (;;) {
    const names = namesOf(await store.list());
    if (names.length === 0) return;
    await Promise.all(names.map((name) => store.delete(name)));
  }
}

function kvCases(env, create, it) {
  it('values outlive their expiry by an hour in KV, so that only the clock of the caller decides', async () => {
    const { kv } = await create();
    const now = Date.now();
    await kv.put('a', 1, now + 1000);
    const { keys } = await env.KV.list();
    const seconds = keys[0].expiration - now / 1000;
    equal([seconds > 3595, seconds < 3605], [true, true], `expiration in ${seconds} s`);
    equal([await kv.get('a', now + 999), await kv.get('a', now + 1000)], [1, undefined], 'values');
  });

  it('pages of 2,500 keys list each key once, in one order of reading or another', async () => {
    const { kv } = await create();
    const keys = Array.from({ length: 2500 }, (_, i) => `k${10_000 + i}`);
    for (let i = 0; i < keys.length; i += 100) await Promise.all(keys.slice(i, i + 100).map((key) => kv.put(key, 1)));
    const listed = [];
    for (let page = [undefined]; page.length > 0; listed.push(...page)) {
      const after = listed.at(-1);
      page = await kv.list({ limit: 400, now: T0, ...(after && { after }) });
    }
    equal(listed, keys, 'keys');
    equal(await kv.list({ limit: 2, now: T0, after: 'k12400' }), ['k12401', 'k12402'], 'keys after one');
    equal((await kv.list({ limit: 2000, now: T0 })).length, 2000, 'a long page');
  });

  it('a value of another program that is not JSON is reported with its key', async () => {
    const { kv } = await create();
    await env.KV.put('a', 'plain text');
    equal(await codeOf(kv.get('a', T0)), 'INTERNAL', 'code');
  });

  it('keys of dots and U+0001 are kept apart, in their order', async () => {
    const { kv } = await create();
    const keys = ['.', '.\u0001', '.\u0001\u0001', '.\u0001.', '.\u0001a', '..', '..\u0001', '...', '.a', '\u0001'];
    for (const key of keys) await kv.put(key, key);
    for (const key of keys) equal(await kv.get(key, T0), key, 'value');
    equal(await kv.list({ limit: 100, now: T0 }), [...keys].sort(), 'keys');
    equal(await kv.list({ limit: 100, now: T0, prefix: '.\u0001' }), [...keys].sort().slice(2, 6), 'keys of a prefix');
    equal(await codeOf(Promise.resolve().then(() => kv.put(`.${'\u0001'.repeat(511)}`, 1))), 'INVALID_REQUEST', 'code');
  });

  it('a value that is too large is refused, and not retryable', async () => {
    const { kv } = await create();
    const thrown = await kv.put('a', 'x'.repeat(26 * MIB)).catch((error) => error);
    equal([thrown.code, thrown.retryable], ['INVALID_REQUEST', false], 'error');
  });
}

function r2Cases(env, create, it) {
  async function* stream(parts, failAt) {
    for (let part = 0; part < parts; part += 1) {
      if (part === failAt) throw new RangeError('the source broke');
      yield new Uint8Array(MIB).fill(part);
    }
  }

  it('a stream of several parts is one object with its type', async () => {
    const { objects } = await create();
    const about = { contentType: 'video/mp4', updatedAt: 7 };
    equal(await objects.putStream('big', { ...about, content: stream(17) }), 17 * MIB, 'size');
    const found = await objects.get('big');
    equal([found.content.length, found.content[16 * MIB], found.contentType], [17 * MIB, 16, 'video/mp4'], 'object');
    equal((await env.BUCKET.head('big')).httpMetadata.contentType, 'video/mp4', 'type in R2');
  });

  it('a stream that breaks after some parts leaves nothing', async () => {
    const { objects } = await create();
    const content = stream(17, 12);
    const thrown = await objects
      .putStream('big', { contentType: 'a/b', updatedAt: 7, content })
      .catch((error) => error);
    equal([thrown.name, await objects.get('big')], ['RangeError', undefined], 'outcome');
  });

  it('an object of another program has the type and the time of R2', async () => {
    const { objects } = await create();
    const { uploaded } = await env.BUCKET.put('a', 'x', { httpMetadata: { contentType: 'text/html' } });
    const found = await objects.get('a');
    equal([found.contentType, found.updatedAt], ['text/html', uploaded.getTime()], 'object');
  });

  it('what is no binding is a TypeError', async () => {
    for (const create of [() => kvNamespace(undefined), () => kvNamespace(env.BUCKET), () => r2Bucket(env.KV)]) {
      const thrown = await Promise.resolve()
        .then(create)
        .catch((error) => error);
      equal(thrown instanceof TypeError, true, String(thrown));
    }
  });
}

function d1Cases(create, it) {
  const signal = new AbortController().signal;
  const page = { limit: 10, offset: 0, signal };
  const text = (sql) => ({ strings: [sql], values: [] });

  it('whole numbers are bound as whole numbers, and others as they are', async () => {
    const { sql } = await create();
    const halves = { strings: ['SELECT ', ' / ', ' AS whole, ', ' / ', ' AS half'], values: [7, 2, 7.5, 2] };
    equal((await sql.query(halves, page)).rows, [{ whole: 3, half: 3.75 }], 'rows');
    equal((await sql.query({ strings: ['SELECT ', ' AS yes'], values: [true] }, page)).rows, [{ yes: 1 }], 'a boolean');
  });

  it('bytes are base64, and a comment at the end of a query is none of its page', async () => {
    const { sql } = await create();
    equal((await sql.query(text("SELECT x'00ff' AS bytes -- all of them"), page)).rows, [{ bytes: 'AP8=' }], 'rows');
    equal((await sql.query(text('VALUES (1), (2)'), { ...page, limit: 1 })).hasMore, true, 'VALUES');
  });

  it('an order stays, and so does a limit of the query', async () => {
    const { sql } = await create();
    const numbers = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) SELECT i FROM n';
    const { rows, hasMore } = await sql.query(text(`${numbers} ORDER BY i DESC LIMIT 12`), { ...page, offset: 9 });
    equal([rows.map(({ i }) => i), hasMore], [[91, 90, 89], false], 'rows');
  });

  it('an export of more rows than D1 gives as of one moment is refused before its first row', async () => {
    const { sql } = await create();
    const rows = (count) =>
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) SELECT i FROM n`;
    const count = async (statement) => {
      let found = 0;
      for await (const part of sql.stream(text(statement), { signal })) found += part.length;
      return found;
    };
    equal(await count(rows(10_000)), 10_000, 'rows');
    equal(await codeOf(count(rows(10_001))), 'INVALID_INPUT', 'code');
  });

  it('the tables of D1 itself are refused', async () => {
    const { sql } = await create();
    equal(await codeOf(Promise.resolve(sql.query(text('SELECT * FROM _cf_KV'), page))), 'AGENT_FAILED', 'code');
  });
}

function equal(found, expected, what) {
  const [left, right] = [JSON.stringify(found), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${what}: ${left} instead of ${right}`);
}

async function codeOf(promise) {
  return promise.then(
    () => undefined,
    (error) => error.code,
  );
}

/** @returns null for a case that passes, otherwise its error */
async function outcomeOf({ body }) {
  try {
    await body();
    return null;
  } catch (error) {
    return `${error?.stack ?? error}${error?.cause ? `\ncaused by ${error.cause}` : ''}`;
  }
}
