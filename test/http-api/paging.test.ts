/** Listings: pages, cursors and filters of the query. */

import { beforeEach, describe, expect, it } from 'vitest';
import { type Ask, HOSTS } from './hosts.ts';
import { createService, ENSEMBLES, readResponse, type Service } from './service.ts';

const LIST = '/api/v1/executions';

describe.each(HOSTS)('listings by $host', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let headers: { authorization: string };
  beforeEach(async () => {
    const trigger = ['1', '2', '3'].map((hour) => ({ type: 'schedule' as const, cron: `0 ${hour} * * *` }));
    service = createService({}, { ensembles: [...ENSEMBLES, { name: 'timed', trigger, flow: [] }] });
    ask = await open(service.handler);
    headers = await service.bearer('admin');
  });
  const list = (query: string) => readResponse(ask(`${LIST}?${query}`, { headers }));
  const run = async (times: number) => {
    for (let i = 0; i < times; i++) {
      await service.orchestrator.execute('echo', { i });
      await service.clock.advance(1);
    }
  };

  it.each([
    'limit=0',
    'limit=-1',
    'limit=1.5',
    'limit=abc',
    'limit=',
    'limit=0x10',
    'limit=%201',
    'limit=1&limit=2',
    'limit=NaN',
    'limit=1e',
    `limit=${'9'.repeat(400)}`,
  ])('the query `%s` is 400', async (query) => {
    expect(await list(query)).toMatchObject({ status: 400, body: { error: { code: 'INVALID_REQUEST' } } });
  });

  it('a limit above 250 is read as 250; without a limit a page has 100', async () => {
    await run(251);
    for (const query of ['limit=251', 'limit=999999999999999', 'limit=1000000000']) {
      const { body } = await list(query);
      expect([query, body.executions.length, typeof body.nextCursor]).toEqual([query, 250, 'string']);
    }
    expect((await list('')).body.executions).toHaveLength(100);
  });

  it('pages hold every execution once, whatever is added in the meantime', async () => {
    await run(5);
    const before = (await list('')).body.executions.map(({ id }: { id: string }) => id);
    const seen: string[] = [];
    for (let cursor = ''; ; ) {
      const { body } = await list(`limit=2${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
      seen.push(...body.executions.map(({ id }: { id: string }) => id));
      await run(1);
      if (!body.nextCursor) break;
      cursor = body.nextCursor;
    }
    expect(seen).toEqual(before);
  });

  it.each(['tokens', 'jobs', 'schedules', 'versions'])(
    '%s are listed in pages, also when the last one of a page is gone',
    async (what) => {
      const path = what === 'versions' ? '/api/v1/components/hi/versions' : `/api/v1/${what}`;
      const { orchestrator } = service;
      if (what === 'versions') {
        await orchestrator.components.register({ name: 'hi', kind: 'prompt' });
        for (const version of ['v1.9.0', 'v1.10.0', 'v2.0.0'])
          await orchestrator.components.createVersion('hi', { version, content: 'Hi' });
      }
      for (let i = 0; i < 3; i++) {
        if (what === 'jobs') await orchestrator.jobs.create({ action: 'cancel', filter: { ensemble: 'echo' } });
        if (what === 'tokens') await service.bearer('read:state');
        await service.clock.advance(1);
      }
      const read = async (query: string) => (await readResponse(ask(`${path}${query}`, { headers }))).body;
      const all: { id: string }[] = (await read(''))[what];
      const pages: { id: string }[] = [];
      for (let cursor = ''; ; ) {
        const page = await read(`?limit=1${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
        pages.push(...page[what]);
        if (what === 'tokens' && pages.length === 2) await orchestrator.tokens.revoke(pages[1]?.id ?? '');
        if (!page.nextCursor) break;
        expect((await ask(`/api/v1/ensembles?cursor=${encodeURIComponent(page.nextCursor)}`, { headers })).status).toBe(
          400,
        );
        cursor = page.nextCursor;
      }
      expect(pages).toEqual(all);
      expect((await read('?limit=0')).error.code).toBe('INVALID_REQUEST');
    },
  );

  it('a change that takes no `If-Match` refuses it', async () => {
    const { orchestrator } = service;
    const init = { method: 'DELETE', headers: { ...headers, 'if-match': '"1"' } };
    const { id } = await orchestrator.execute('echo');
    expect((await readResponse(ask(`/api/v1/executions/${id}`, init))).body.error.code).toBe('INVALID_REQUEST');
    expect((await orchestrator.executions.status(id)).status).toBe('completed');
  });

  it('`parentId` selects the executions that an execution started, with every other filter and in pages', async () => {
    await run(1);
    const parent = await service.orchestrator.execute('parent', {});
    const names = async (query: string, id = parent.id) =>
      (await list(`parentId=${id}${query}`)).body.executions.map(
        ({ ensemble, parentId }: { ensemble: string; parentId: string }) => [ensemble, parentId === id],
      );
    expect((await names('')).sort()).toEqual([
      ['echo', true],
      ['failing', true],
    ]);
    expect(await names('&status=failed')).toEqual([['failing', true]]);
    expect(await names('&ensemble=echo', parent.id.replace('exec_', 'exec-'))).toEqual([['echo', false]]);
    expect(await names('', 'exec_00000000000000000000000000')).toEqual([]);
    const first = (await list(`parentId=${parent.id}&limit=1`)).body;
    const cursor = encodeURIComponent(first.nextCursor);
    const second = (await list(`parentId=${parent.id}&limit=1&cursor=${cursor}`)).body;
    expect([first.executions.length, second.executions.length, second.nextCursor]).toEqual([1, 1, undefined]);
    expect((await list(`limit=1&cursor=${cursor}`)).body.error?.code).toBe('INVALID_CURSOR');
  });

  it('a cursor that was changed, belongs to another listing or filter, or is malformed, is 400 INVALID_CURSOR', async () => {
    await run(3);
    const { nextCursor } = (await list('limit=2&ensemble=echo')).body;
    const cursors = [
      ['limit=2', nextCursor],
      ['limit=2&ensemble=greet', nextCursor],
      ['ensemble=echo&status=failed', nextCursor],
      ['ensemble=echo', nextCursor.slice(1)],
      ['ensemble=echo', `${nextCursor}AAAA`],
      ['ensemble=echo', "1' OR '1'='1"],
      ['ensemble=echo', 'A'.repeat(10_000)],
      ['ensemble=echo', '\u0000'],
    ];
    for (const [query, cursor] of cursors) {
      const response = await list(`${query}&cursor=${encodeURIComponent(cursor as string)}`);
      expect([cursor?.slice(0, 40), response.status, response.body.error?.code]).toEqual([
        cursor?.slice(0, 40),
        400,
        'INVALID_CURSOR',
      ]);
    }
    for (let i = 0; i < nextCursor.length; i++) {
      const changed = `${nextCursor.slice(0, i)}${nextCursor[i] === 'A' ? 'B' : 'A'}${nextCursor.slice(i + 1)}`;
      expect([i, (await list(`ensemble=echo&cursor=${encodeURIComponent(changed)}`)).status]).toEqual([i, 400]);
    }
    expect((await list(`ensemble=echo&cursor=${encodeURIComponent(nextCursor)}`)).body.executions).toHaveLength(1);
    const elsewhere = await readResponse(
      ask(`/api/v1/ensembles?cursor=${encodeURIComponent(nextCursor)}`, { headers }),
    );
    expect(elsewhere).toMatchObject({ status: 400, body: { error: { code: 'INVALID_CURSOR' } } });
  });

  it('a well-formed cursor with a position that no listing returned is 400, and does not reach the storage', async () => {
    const { id } = await service.orchestrator.execute('echo');
    const forged = (place: unknown, filter: string) =>
      encodeURIComponent(btoa(encodeURIComponent(JSON.stringify([place, filter]))));
    for (const place of ['abc', 'NaN', '-5', '1.5', '1e3', '9'.repeat(20), '', null, 3])
      expect([
        place,
        (await readResponse(ask(`${LIST}/${id}/agents?cursor=${forged(place, id)}`, { headers }))).status,
      ]).toEqual([place, 400]);
    for (const place of ["exec_' OR 1=1", '', `${id}0`, '\u0000'])
      expect([place, (await list(`cursor=${forged(place, '[null,null,null]')}`)).body.error?.code]).toEqual([
        place,
        'INVALID_CURSOR',
      ]);
    const names = await readResponse(ask(`/api/v1/ensembles?cursor=${forged('a b', 'ensembles')}`, { headers }));
    expect(names.body.error?.code).toBe('INVALID_CURSOR');
  });

  it('agents that ran alone are listed by the name in their records', async () => {
    const { ensemble } = await service.orchestrator.executeAgent('double', { n: 2 });
    await run(1);
    expect((await list(`ensemble=${ensemble}`)).body.executions).toMatchObject([{ ensemble: 'agent:double' }]);
  });

  it.each([
    'ensemble=agent:',
    'ensemble=agent:a:b',
    'parentId=',
    'parentId=exec_1',
    "parentId=' OR 1=1",
    'parentId=exec_1',
    'status=done',
    'status=COMPLETED',
    'status=__proto__',
    'ensemble=a%20b',
    'ensemble=',
    'staus=failed',
    'tenant=x',
    'status=failed&status=completed',
  ])('the query `%s` is 400', async (query) => {
    expect(await list(query)).toMatchObject({ status: 400, body: { error: { code: 'INVALID_REQUEST' } } });
  });
});
