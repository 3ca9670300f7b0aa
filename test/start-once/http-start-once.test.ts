/** Starting once and finding again over HTTP: the header `Idempotency-Key`, own ids, tags, and the filters of the list. */

import { beforeEach, describe, expect, it } from 'vitest';
import { type Ask, HOSTS } from '../http-api/hosts.ts';
import { createService, post, readResponse, type Service } from '../http-api/service.ts';

const GREET = '/api/v1/execute/ensemble/greet';
const LIST = '/api/v1/executions';

describe.each(HOSTS)('by $host', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let headers: { authorization: string };
  beforeEach(async () => {
    service = createService();
    ask = await open(service.handler);
    headers = await service.bearer('execute:ensembles', 'execute:agents', 'read:executions');
  });
  const start = (body: object, more: object = {}, path = GREET) =>
    readResponse(ask(path, post({ input: { who: 'Ada' }, ...body }, { ...headers, ...more })));
  const listed = async (query: string) => {
    const { status, body } = await readResponse(ask(`${LIST}?${query}`, { headers }));
    return status === 200 ? body.executions.map(({ id }: { id: string }) => id) : body.error;
  };

  it('a second request with the same `Idempotency-Key` gets the response of the first execution', async () => {
    const key = { 'idempotency-key': 'a key of 2' };
    const first = await start({}, key);
    expect(first).toMatchObject({ status: 200, body: { output: { text: 'Hello Ada' } } });
    expect(await start({}, key)).toMatchObject({ status: 200, body: first.body });
    const later = await start({ async: true }, key);
    expect(later).toMatchObject({ status: 202, body: { executionId: first.body.executionId } });
    expect(await listed('')).toEqual([first.body.executionId]);
  });

  it('another input under the key is 422 with the id of the first execution', async () => {
    const key = { 'idempotency-key': 'k' };
    const { executionId } = (await start({}, key)).body;
    const refused = { status: 422, body: { error: { code: 'IDEMPOTENCY_KEY_REUSED', executionId } } };
    expect(await start({ input: { who: 'Bob' } }, key)).toMatchObject(refused);
    expect(await start({}, key, '/api/v1/execute/ensemble/echo')).toMatchObject(refused);
  });

  it('two tokens with equal keys start two executions, and neither sees the other one', async () => {
    const key = { 'idempotency-key': 'k' };
    const first = (await start({}, key)).body.executionId;
    const other = await service.bearer('execute:ensembles');
    const second = await start({ input: { who: 'Bob' } }, { ...key, ...other });
    expect(second).toMatchObject({ status: 200, body: { output: { text: 'Hello Bob' } } });
    expect(second.body.executionId).not.toBe(first);
    const own = await service.orchestrator.start('greet', { who: 'Eve' }, { idempotencyKey: 'k' });
    expect([first, second.body.executionId]).not.toContain(own.id);
  });

  it('an agent that runs alone has a key, too', async () => {
    const ask2 = () => start({ input: { n: 2 } }, { 'idempotency-key': 'k' }, '/api/v1/execute/agent/double');
    const first = await ask2();
    expect(first).toMatchObject({ status: 200, body: { output: 4 } });
    expect((await ask2()).body).toEqual(first.body);
  });

  it('an own id is the id in every path', async () => {
    const id = 'order:7.b-_';
    const accepted = await start({ id, async: true, tags: ['customer=7', 'vip', 'vip'] });
    expect(accepted).toMatchObject({ status: 202, body: { executionId: id } });
    expect(accepted.headers.get('location')).toBe(`${LIST}/${id}`);
    expect(await start({ id })).toMatchObject({ status: 200, body: { executionId: id } });
    const record = await readResponse(ask(`${LIST}/${id}`, { headers }));
    expect(record).toMatchObject({ status: 200, body: { id, tags: ['customer=7', 'vip'] } });
    for (const path of [`${LIST}/${encodeURIComponent(id)}`, `${LIST}/${id}/agents`, `${LIST}?parentId=${id}`])
      expect((await readResponse(ask(path, { headers }))).status).toBe(200);
    expect((await readResponse(ask(`${LIST}/${id}/cancel`, post({}, headers)))).body.error).toMatchObject({
      code: 'CONFLICT',
      executionId: id,
    });
    expect((await readResponse(ask(`${LIST}/order:8`, { headers }))).status).toBe(404);
  });

  it.each([
    [{ id: 'exec_7' }, {}, '`id` must be 1 to 128'],
    [{ id: 7 }, {}, '`id` must be 1 to 128'],
    [{ id: 'a/b' }, {}, '`id` must be 1 to 128'],
    [{ tags: 'vip' }, {}, '`tags` must be a list'],
    [{ tags: ['a\u0007'] }, {}, '`tags` must be a list'],
    [{}, { 'idempotency-key': 'a'.repeat(256) }, '`Idempotency-Key` must have 1 to 255 characters'],
  ])('%j with the headers %j is 400', async (body, more, message) => {
    const refused = await start(body, more);
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'INVALID_REQUEST' } } });
    expect(JSON.stringify(refused.body)).toContain(message);
    expect(await listed('')).toEqual([]);
  });

  it('the list is filtered by tag, time and search, and combines the filters', async () => {
    const at = service.clock.now();
    for (const [id, tags] of Object.entries({ 'z-1': ['vip', 'shop=a'], 'a-1': ['vip'], 'm-1': ['shop=a'] })) {
      await start({ id, tags });
      await service.clock.advance(1000);
    }
    expect(await listed('')).toEqual(['m-1', 'a-1', 'z-1']);
    expect(await listed('tag=vip')).toEqual(['a-1', 'z-1']);
    expect(await listed(`tag=${encodeURIComponent('shop=a')}&ensemble=greet&status=completed`)).toEqual(['m-1', 'z-1']);
    expect(await listed(`since=${at + 1000}`)).toEqual(['m-1', 'a-1']);
    expect(await listed(`since=${new Date(at + 1000).toISOString()}&until=${at + 2000}`)).toEqual(['a-1']);
    expect(await listed('search=shop')).toEqual(['m-1', 'z-1']);
    expect(await listed('search=a-')).toEqual(['a-1']);
    const first = await readResponse(ask(`${LIST}?tag=vip&limit=1`, { headers }));
    const next = encodeURIComponent(first.body.nextCursor);
    expect(await listed(`tag=vip&limit=1&cursor=${next}`)).toEqual(['z-1']);
    expect(await listed(`tag=other&cursor=${next}`)).toMatchObject({ code: 'INVALID_CURSOR' });
    expect(await listed(`tag=vip&order=oldest&cursor=${next}`)).toMatchObject({ code: 'INVALID_CURSOR' });
    expect(await listed('order=oldest')).toEqual(['z-1', 'a-1', 'm-1']);
    const oldest = await readResponse(ask(`${LIST}?order=oldest&limit=2`, { headers }));
    expect(await listed(`order=oldest&limit=2&cursor=${encodeURIComponent(oldest.body.nextCursor)}`)).toEqual(['m-1']);
    expect(await listed('errorCode=AGENT_FAILED')).toEqual([]);
    expect(await listed('unresolved=true')).toEqual([]);
    expect(await listed('unresolved=false')).toHaveLength(3);
    const bare = await readResponse(ask(`${LIST}?values=false&limit=1`, { headers }));
    expect(bare.body.executions[0]).toMatchObject({
      id: 'm-1',
      input: null,
      output: null,
      omitted: ['input', 'output'],
    });
    const more = encodeURIComponent(bare.body.nextCursor);
    expect((await readResponse(ask(`${LIST}?limit=1&cursor=${more}`, { headers }))).body.executions[0]).toMatchObject({
      id: 'a-1',
      output: expect.anything(),
    });
  });

  it.each([
    ['since=yesterday', '`since` must be Unix ms or ISO 8601'],
    ['since=2d', 'such as 2026-01-31T09:00:00Z, not "2d"$'],
    ['since=2026-01-01T00:00:00+01:00', 'write the \\+ as %2B$'],
    ['until=2026-01-01T00:00:00', '`until` must be Unix ms or ISO 8601'],
    ['since=2026-13-01', '`since` must be Unix ms or ISO 8601'],
    [`search=${'a'.repeat(129)}`, '`search` must be text of 1 to 128 characters'],
    ['values=no', '`values` must be true or false'],
    ['unresolved=yes', '`unresolved` must be'],
    ['order=up', '`order` must be newest or oldest'],
    ['errorCode=%07', '`errorCode` must be text of 1 to 128 characters'],
    ['tag=%00', '`tag` must be text'],
    ['tags=vip', /did you mean `tag`\?/],
  ])('?%s is 400', async (query, message) => {
    expect(await listed(query)).toMatchObject({ code: 'INVALID_REQUEST', message: expect.stringMatching(message) });
  });
});
