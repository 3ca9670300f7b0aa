/** Errors in the form of RFC 9457. */

import { beforeEach, describe, expect, it } from 'vitest';
import { createService, type Service } from './service.ts';

describe('a request whose `Accept` names application/problem+json', () => {
  let service: Service;
  beforeEach(() => {
    service = createService();
  });
  const ask = async (path: string, init: RequestInit = {}) => {
    const headers = { accept: 'application/json, application/problem+json', ...(init.headers as object) };
    const response = await service.handler.fetch(new Request(`http://localhost/api/v1${path}`, { ...init, headers }));
    return { status: response.status, type: response.headers.get('content-type'), body: await response.json() };
  };

  it('gets each error as a problem, with its code and its further fields', async () => {
    expect(await ask('/executions')).toEqual({
      status: 401,
      type: 'application/problem+json; charset=utf-8',
      body: {
        ...{ type: 'about:blank', title: 'Unauthorized', status: 401, code: 'UNAUTHORIZED' },
        detail: expect.any(String),
      },
    });
    const lacking = await ask('/executions', { headers: await service.bearer('read:state') });
    expect(lacking.body).toMatchObject({
      ...{ title: 'Forbidden', status: 403, code: 'FORBIDDEN', requiredScope: 'read:executions' },
    });
    const wrong = await ask('/execute/ensemble/greet', {
      ...{ method: 'POST', body: '{"inputs": 1}' },
      headers: { ...(await service.bearer('admin')), 'content-type': 'application/json' },
    });
    expect(wrong.body).toMatchObject({
      title: 'Bad Request',
      code: 'INVALID_REQUEST',
      issues: [{ path: expect.any(String) }],
    });
  });

  it('finds the status of an execution beside that of the response, which is the `status` of a problem', async () => {
    const headers = { ...(await service.bearer('admin')), 'content-type': 'application/json' };
    const failed = await ask('/execute/ensemble/failing', { method: 'POST', body: '{}', headers });
    expect(failed.body).toMatchObject({ code: 'EXECUTION_FAILED', status: 500, executionStatus: 'failed' });
  });

  it('gets no problem with `q=0`', async () => {
    const accept = 'application/json, application/problem+json;q=0';
    const { type } = await ask('/executions', { headers: { accept } });
    expect(type).toBe('application/json; charset=utf-8');
  });

  it('gets other answers as before, and without that `Accept` errors have their own form', async () => {
    const headers = await service.bearer('admin');
    expect((await ask('/executions', { headers })).type).toBe('application/json; charset=utf-8');
    const plain = await ask('/executions/none', { headers: { ...headers, accept: '*/*' } });
    expect([plain.type, plain.body.error.code]).toEqual(['application/json; charset=utf-8', 'NOT_FOUND']);
  });
});
