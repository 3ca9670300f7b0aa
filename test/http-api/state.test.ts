/** `/state/:ensemble` and `orchestrator.state`: read, replace, patch and clear. */

import { describe, expect, it } from 'vitest';
import { createService, readResponse } from './service.ts';

const COUNTER = {
  name: 'counter',
  state: { initial: { count: 0, tags: { a: 1 } } },
  flow: [{ agent: 'add', operation: 'code', config: { script: 'echo' }, setState: { count: '${state.count + 1}' } }],
  outputs: { count: '${state.count}' },
};

async function open() {
  const service = createService({}, { ensembles: [COUNTER, { name: 'plain', flow: [] }] });
  const { authorization } = await service.bearer('read:state', 'write:state');
  const ask = (method: string, body?: unknown, headers: Record<string, string> = {}, name = 'counter') =>
    readResponse(
      service.handler.fetch(
        new Request(`http://localhost/api/v1/state/${name}`, {
          method,
          headers: { authorization, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        }),
      ),
    );
  return { ...service, ask };
}

describe('the state of an ensemble', () => {
  it('is the initial values until a run or a request changes it, and runs read what a request has written', async () => {
    const { ask, orchestrator, clock } = await open();
    const first = await ask('GET');
    expect([first.status, first.body, first.headers.get('etag')]).toEqual([
      ...[200, { state: COUNTER.state.initial, version: '0' }, '"0"'],
    ]);
    await orchestrator.execute('counter');
    expect((await ask('GET')).body).toMatchObject({ state: { count: 1 }, version: '1', updatedAt: clock.now() });
    const put = await ask('PUT', { count: 41 });
    expect([put.status, put.body]).toEqual([200, { state: { count: 41 }, version: '2', updatedAt: clock.now() }]);
    expect((await orchestrator.execute('counter')).output).toEqual({ count: 42 });
    const cleared = await ask('DELETE');
    expect([cleared.body.state, cleared.body.version]).toEqual([COUNTER.state.initial, '4']);
  });

  it('PATCH merges objects, removes keys with null and replaces other values, as RFC 7396 says', async () => {
    const { ask } = await open();
    await ask('PUT', { a: 'b', c: { d: 'e', f: 'g' }, list: [1, 2], keep: true });
    const type = { 'content-type': 'application/merge-patch+json' };
    const patched = await ask('PATCH', { a: 'z', c: { f: null, h: { i: null } }, list: [3], n: { x: 1 } }, type);
    expect([patched.status, patched.body.state]).toEqual([
      200,
      { a: 'z', c: { d: 'e', h: {} }, list: [3], keep: true, n: { x: 1 } },
    ]);
  });

  it('If-Match with another version is 409, and changes nothing', async () => {
    const { ask } = await open();
    const { headers } = await ask('PUT', { count: 1 }, { 'if-match': '"0"' });
    expect(headers.get('etag')).toBe('"1"');
    for (const [method, body] of [
      ['PUT', { count: 2 }],
      ['PATCH', { count: 2 }],
      ['DELETE', undefined],
    ] as const) {
      const refused = await ask(method, body, { 'if-match': '"0"' });
      expect([refused.status, refused.body.error.code, refused.body.error.version]).toEqual([409, 'CONFLICT', '1']);
    }
    expect((await ask('PUT', { count: 3 }, { 'if-match': 'W/"1"' })).status).toBe(400);
    expect((await ask('PUT', { count: 3 }, { 'if-match': '*' })).status).toBe(200);
    expect((await ask('GET')).body.state).toEqual({ count: 3 });
  });

  it('100 concurrent patches of different keys are all kept', async () => {
    const { ask } = await open();
    const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => ask('PATCH', { [`key${i}`]: i })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(Object.keys((await ask('GET')).body.state)).toHaveLength(102);
  });

  it.each([
    ['PUT', [1], 400],
    ['PUT', 'text', 400],
    ['PUT', null, 400],
    ['PATCH', 5, 400],
    ['POST', {}, 405],
  ])('%s of %j is %d', async (method, body, status) => {
    const { ask } = await open();
    expect((await ask(method, body)).status).toBe(status);
    expect((await ask('GET')).body.version).toBe('0');
  });

  it('an unknown ensemble and one without state are 404', async () => {
    const { ask } = await open();
    for (const name of ['nobody', 'plain', '%2e%2e']) {
      expect((await ask('GET', undefined, {}, name)).status).toBe(404);
      expect((await ask('PUT', {}, {}, name)).status).toBe(404);
    }
  });
});
