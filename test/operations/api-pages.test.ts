/** `api` with `paginate`: the pages of a list. */

import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../src/engine/base/json/json.ts';
import { createTestOrchestrator, type StubHttp, type StubReply, stubHttp } from '../../src/entries/testing.ts';
import { apiOperation } from '../../src/operations/api/api-operation.ts';
import type { ApiConfig } from '../../src/operations/api/config.ts';
import { nextLink, type PagedOutput } from '../../src/operations/api/paginate.ts';
import { operationContext } from './operation-context.ts';

const url = 'https://shop.example/items';

async function read(http: StubHttp, paginate: object, config: object = {}): Promise<PagedOutput> {
  const given = { url, paginate, ...config } as ApiConfig;
  return (await apiOperation({ http }).run(operationContext({ config: given }))) as PagedOutput;
}

/** A shop that answers each request with what `page` makes of the parameters. */
const shop = (page: (query: URLSearchParams, request: URL) => StubReply) =>
  stubHttp({ [`GET ${url}*`]: (request) => page(new URL(request.url).searchParams, new URL(request.url)) });

const linked = (next: string | undefined, json: Json): StubReply => ({
  json,
  headers: next === undefined ? {} : { link: `<${url}?page=1>; rel="first", ${next}` },
});

describe('paginate by link', () => {
  const pages = shop((query) => {
    const page = Number(query.get('page') ?? '1');
    return linked(page < 3 ? `<?page=${page + 1}&size=2>; rel=next` : undefined, [page * 2 - 1, page * 2]);
  });

  it('joins the lists of all pages; the links say where the next one is, and the credentials go with each', async () => {
    const http = shop((query) => {
      const page = Number(query.get('page') ?? '1');
      return linked(page < 3 ? `<?page=${page + 1}>; rel=next` : undefined, [page]);
    });
    const auth = { type: 'bearer', token: 'token-of-the-shop' };
    expect(await read(http, { by: 'link' }, { auth, query: { size: 2 } })).toEqual({
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: [1, 2, 3],
      pages: 3,
      next: null,
    });
    expect(http.calls.map((call) => call.url)).toEqual([`${url}?size=2`, `${url}?page=2`, `${url}?page=3`]);
    // A service that honours the key would otherwise answer each page with the first one.
    expect(http.calls.map(({ headers }) => [headers?.Authorization, headers?.['Idempotency-Key']])).toEqual([
      ['Bearer token-of-the-shop', 'key-1'],
      ['Bearer token-of-the-shop', 'key-1-2'],
      ['Bearer token-of-the-shop', 'key-1-3'],
    ]);
  });

  it('ends after `maxPages`, and says where it would continue', async () => {
    const { body, pages: count, next } = await read(pages, { by: 'link', maxPages: 2 });
    expect([body, count, next]).toEqual([[1, 2, 3, 4], 2, `${url}?page=3&size=2`]);
  });

  it('reads 10 pages by default', async () => {
    const http = shop((query) => linked(`<?n=${Number(query.get('n')) + 1}>; rel=next`, []));
    expect((await read(http, { by: 'link' })).pages).toBe(10);
  });

  it.each([
    'https://evil.example/items?page=2',
    'http://shop.example/items?page=2',
    'https://shop.example:8443/items?page=2',
    '//evil.example/items',
    'https://shop.example.evil.example/',
    'file:///etc/passwd',
  ])('never asks another origin, which would get the credentials: %s', async (next) => {
    const http = shop(() => linked(`<${next}>; rel="next"`, [1])).on('*evil*', { json: [] });
    await expect(read(http, { by: 'link' })).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: false,
      details: { reason: 'pagination' },
      message: `GET ${url} answered page 1 with a next link to another origin, which must not get the headers of https://shop.example`,
    });
    expect(http.calls).toHaveLength(1);
  });

  it('a page that was read already is an error, not an endless list', async () => {
    const http = shop((query) => linked(`<?page=${query.get('page') === '2' ? 3 : 2}>; rel=next`, [1]));
    await expect(read(http, { by: 'link' })).rejects.toMatchObject({
      retryable: false,
      message: `GET ${url} answered page 3 with a next page that was read already; the pages would never end`,
    });
    expect(http.calls).toHaveLength(3);
  });

  it.each<[string, string | undefined]>([
    ['<a>; rel="next"', 'a'],
    ['<a>; rel=NEXT', 'a'],
    ['<a>;rel="prev next"', 'a'],
    ['<a,b;c>; title="x, <y>; rel=next"; rel=next', 'a,b;c'],
    ['<a>; rel="last", <b>; type="text/html"; rel="next"; x', 'b'],
    ['<a>; rel=nextpage', undefined],
    ['<a>; title="; rel=next"', undefined],
    ['<a>', undefined],
    ['a; rel=next', undefined],
    ['', undefined],
  ])('the header %j has the next link %j', (header, expected) => {
    expect(nextLink(header)).toBe(expected);
  });

  it('reads the longest header that a client accepts at once, whatever is in it', () => {
    const began = performance.now();
    for (const text of ['<a>;', '<a>; a=', '<a>; a="', '<a> ', '<', '<a>; rel', '<a>; rel=next,', ' ', '<a>;a ;a'])
      nextLink(`${text.repeat(65_536 / text.length)}!`);
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});

describe('paginate by cursor, page and offset', () => {
  it('a cursor from the body becomes the query parameter; other parameters keep their spelling', async () => {
    const next: Record<string, Json> = { '': 'a/b=', 'a/b=': 7, 7: null };
    const http = shop((query) => ({
      json: { data: { items: [query.get('after')] }, meta: { next: next[query.get('after') ?? ''] ?? null } },
    }));
    const how = { by: 'cursor', cursor: 'meta.next', param: 'after', items: 'data.items' };
    expect(await read(http, how, { url: `${url}?q=%7e+x` })).toMatchObject({
      body: [null, 'a/b=', '7'],
      pages: 3,
      next: null,
    });
    expect(http.calls.map((call) => call.url.slice(url.length))).toEqual([
      '?q=%7e+x',
      '?q=%7e+x&after=a%2Fb%3D',
      '?q=%7e+x&after=7',
    ]);
  });

  it('begins with the cursor of the config, and returns the next one', async () => {
    const http = shop((query) => ({ json: { list: [query.get('c')], c: `${query.get('c')}+` } }));
    const how = { by: 'cursor', cursor: 'c', param: 'c', items: 'list', maxPages: 2 };
    expect(await read(http, how, { query: { c: 'x' } })).toMatchObject({ body: ['x', 'x+'], next: 'x++' });
  });

  it.each([[null], [''], [false], [undefined]])('the cursor %j ends the list', async (cursor) => {
    const http = shop(() => ({ json: { list: [1], ...(cursor === undefined ? {} : { cursor }) } }));
    const how = { by: 'cursor', cursor: 'cursor', param: 'c', items: 'list' };
    expect(await read(http, how)).toMatchObject({ pages: 1, next: null });
  });

  it('the same cursor again is an error', async () => {
    const http = shop(() => ({ json: { list: [1], cursor: 'c' } }));
    const how = { by: 'cursor', cursor: 'cursor', param: 'c', items: 'list' };
    await expect(read(http, how)).rejects.toThrow('answered page 2 with a next page that was read already');
  });

  it('a page number grows by one, and an offset by the items of each page, until a page is empty', async () => {
    const list = [1, 2, 3, 4, 5];
    const byPage = shop((query) => ({ json: list.slice(2 * Number(query.get('p') ?? 1) - 2).slice(0, 2) }));
    expect(await read(byPage, { by: 'page', param: 'p' })).toMatchObject({ body: list, pages: 4, next: null });
    expect(byPage.calls.map((call) => call.url.slice(url.length))).toEqual(['', '?p=2', '?p=3', '?p=4']);
    const byOffset = shop((query) => ({ json: list.slice(Number(query.get('skip'))).slice(0, 2) }));
    const config = { query: { limit: 2, skip: 1 } };
    expect(await read(byOffset, { by: 'offset', param: 'skip' }, config)).toMatchObject({
      body: [2, 3, 4, 5],
      pages: 3,
    });
    expect((await read(byOffset, { by: 'offset', param: 'skip', maxPages: 2 })).next).toBe(4);
  });

  it('a parameter that is not a number is refused before anything is sent', async () => {
    const http = shop(() => ({ json: [] }));
    await expect(read(http, { by: 'page', param: 'p' }, { query: { p: 'one' } })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
    expect(http.calls).toEqual([]);
  });
});

describe('paginate: what can go wrong', () => {
  it.each<[string, Json, object, string]>([
    ['no list', { a: 1 }, {}, "page 1 without a list in its body; say where it is with 'paginate.items'"],
    ['a wrong path', { data: [] }, { items: 'data.items' }, 'page 1 without a list in `data.items`'],
    ['a path through the prototype', {}, { items: 'constructor' }, 'page 1 without a list in `constructor`'],
    [
      'an object as cursor',
      { list: [], c: {} },
      { by: 'cursor', cursor: 'c', param: 'c', items: 'list' },
      'page 1 with something in `c` that is no cursor',
    ],
  ])('%s fails the agent, not retryable', async (_what, json, how, message) => {
    await expect(
      read(
        shop(() => ({ json })),
        { by: 'link', ...how },
      ),
    ).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: false,
      message: expect.stringContaining(`GET ${url} answered ${message}`),
    });
  });

  it('a list that is null, and an empty body, have no items', async () => {
    expect(
      await read(
        shop(() => ({ json: { list: null } })),
        { by: 'link', items: 'list' },
      ),
    ).toMatchObject({ body: [] });
    expect(
      await read(
        shop(() => ({ status: 204 })),
        { by: 'page', param: 'p' },
      ),
    ).toMatchObject({ status: 204, body: [] });
  });

  it('pages that together exceed the output of a step end there, and not after all of them', async () => {
    const http = shop((query) => linked(`<?n=${Number(query.get('n')) + 1}>; rel=next`, ['x'.repeat(1_500_000)]));
    await expect(read(http, { by: 'link', maxPages: 100 })).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: false,
      details: { reason: 'too-large' },
      message: `GET ${url} answered 3 pages with more than 4 MiB of items together; set a smaller 'paginate.maxPages', or ask for fewer fields`,
    });
    expect(http.calls).toHaveLength(3);
  });

  it('a page with an error status fails the agent as a single call does, and a retry begins with the first page', async () => {
    let broken = true;
    const http = shop((query) => {
      if (query.get('page') !== '2') return linked('<?page=2>; rel=next', [1]);
      if (!broken) return linked(undefined, [2]);
      broken = false;
      return { status: 503, headers: { 'retry-after': '1' } };
    });
    const orchestrator = createTestOrchestrator({
      http,
      ensembles: [
        {
          name: 'e',
          flow: [
            { agent: 'list', operation: 'api', retry: { maxAttempts: 2 }, config: { url, paginate: { by: 'link' } } },
          ],
          outputs: { list: '${list.output.body}', pages: '${list.output.pages}' },
        },
      ],
    });
    const { output } = await orchestrator.execute('e');
    expect(output).toEqual({ list: [1, 2], pages: 2 });
    expect(http.calls.map((call) => call.url.slice(url.length))).toEqual(['', '?page=2', '', '?page=2']);
  });

  it('the end of the attempt ends the pages', async () => {
    const controller = new AbortController();
    const why = new Error('no longer needed');
    const http = shop((query) => {
      if (query.get('p') === '3') controller.abort(why);
      return { json: [1] };
    });
    const config = { url, paginate: { by: 'page', param: 'p', maxPages: 100 } } as ApiConfig;
    const running = apiOperation({ http }).run(operationContext({ config, signal: controller.signal }));
    await expect(running).rejects.toBe(why);
    expect(http.calls).toHaveLength(3);
  });

  const operation = apiOperation({ http: stubHttp() });

  it.each<[string, object, RegExp]>([
    ['no `by`', {}, /^paginate(\.by)?: expected \{ by: 'link' \}/],
    ['an unknown `by`', { by: 'token' }, /^paginate(\.by)?: expected \{ by: 'link' \}/],
    ['a cursor without its parameter', { by: 'cursor', cursor: 'c' }, /^paginate\.param: /],
    ['a link with a parameter', { by: 'link', param: 'p' }, /^paginate: has keys that do not belong there: param/],
    ['an empty path', { by: 'link', items: '' }, /^paginate\.items: expected a path such as 'data\.items'/],
    ['more than 100 pages', { by: 'link', maxPages: 101 }, /^paginate\.maxPages: must be a whole number from 1 to 100/],
    ['no page', { by: 'link', maxPages: 0 }, /^paginate\.maxPages: must be a whole number from 1 to 100/],
  ])('the schema refuses %s', async (_what, paginate, message) => {
    const result = await operation.config?.['~standard'].validate({ url, paginate });
    const issues = (result?.issues ?? []).map((issue) => `${issue.path?.join('.')}: ${issue.message}`);
    expect(issues).toEqual([expect.stringMatching(message)]);
  });

  it('only GET has pages', () => {
    const check = (config: JsonObject) => operation.check?.(config).map(({ message }) => message);
    const paginate = { by: 'link' };
    expect(check({ url, method: 'post', paginate })).toEqual(['works with GET alone, not with POST']);
    expect(check({ url, method: 'get', paginate })).toEqual([]);
  });
});
