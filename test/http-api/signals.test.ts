/** Signals over HTTP: the payload, the scope, and repeated requests. */

import { beforeEach, describe, expect, it } from 'vitest';
import { type Ask, HOSTS } from './hosts.ts';
import { createService, type JsonResponse, post, readResponse, type Service } from './service.ts';

const NOBODY = 'exec_01M7WWEK7KT35PGB6V8KCP7X7Z';
const ENSEMBLES = [
  {
    name: 'ask',
    flow: [
      { wait: 'approved', name: 'first' },
      { wait: 'approved', name: 'second' },
    ],
    outputs: { both: ['${first.output}', '${second.output}'] },
  },
];

describe.each(HOSTS)('signals by $host', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let headers: { authorization: string };
  let id: string;
  beforeEach(async () => {
    service = createService({ maxBodyBytes: 1000 }, { ensembles: ENSEMBLES });
    ask = await open(service.handler);
    headers = await service.bearer('execute:ensembles', 'read:executions');
    id = (await readResponse(ask('/api/v1/execute/ensemble/ask', post({ async: true }, headers)))).body.executionId;
    await service.clock.advance(0);
  });
  const signal = (body: unknown, more = {}, name = 'approved', of = id): Promise<JsonResponse> =>
    readResponse(ask(`/api/v1/executions/${of}/signals/${name}`, post(body, { ...headers, ...more })));
  const ended = async () => {
    await service.clock.advance(0);
    return (await readResponse(ask(`/api/v1/executions/${id}`, { headers }))).body;
  };

  it('any JSON body is the payload, and the response is the record', async () => {
    expect(await signal({ by: 'Ada', deep: [1, null] })).toMatchObject({ status: 200, body: { id, ensemble: 'ask' } });
    await signal(false);
    expect(await ended()).toMatchObject({
      status: 'completed',
      output: { both: [{ by: 'Ada', deep: [1, null] }, false] },
    });
  });

  it('without a body the payload is null', async () => {
    await signal('');
    await signal(1);
    expect(await ended()).toMatchObject({ output: { both: [null, 1] } });
  });

  it('a second request with the same key changes nothing', async () => {
    for (let times = 0; times < 3; times++) {
      expect(await signal({ times }, { 'idempotency-key': 'k1' })).toMatchObject({ status: 200 });
    }
    expect((await ended()).status).toBe('waiting');
    await signal({ times: 9 }, { 'idempotency-key': 'k2' });
    expect(await ended()).toMatchObject({ output: { both: [{ times: 0 }, { times: 9 }] } });
    expect(await signal({}, { 'idempotency-key': 'k1' })).toMatchObject({ status: 200, body: { status: 'completed' } });
  });

  it('refuses signals that no execution can take', async () => {
    expect(await signal({}, {}, 'approved', NOBODY)).toMatchObject({ status: 404 });
    expect(await signal({}, {}, 'not%20a%20name')).toMatchObject({
      status: 400,
      body: { error: { code: 'INVALID_INPUT' } },
    });
    expect(await signal({ long: 'x'.repeat(1000) })).toMatchObject({ status: 413 });
    expect(await signal('{', { 'content-type': 'application/json' })).toMatchObject({ status: 400 });
    const key = { 'idempotency-key': 'k'.repeat(256) };
    expect(await signal({}, key)).toMatchObject({ status: 400, body: { error: { code: 'INVALID_INPUT' } } });
    await service.orchestrator.executions.cancel(id);
    expect((await ended()).status).toBe('cancelled');
    expect(await signal({})).toMatchObject({ status: 409, body: { error: { code: 'CONFLICT' } } });
  });

  it('needs the scope for starting ensembles', async () => {
    expect(await signal({}, await service.bearer('read:executions'))).toMatchObject({ status: 403 });
    expect(await signal({}, { authorization: 'Bearer nobody' })).toMatchObject({ status: 401 });
    expect((await ended()).status).toBe('waiting');
  });
});
