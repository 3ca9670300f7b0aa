/** The address of a call, as the clients of the command line and the dashboard make it. */

import { expect, it } from 'vitest';
import { callAddress } from '../../src/engine/base/call-address.ts';
import { createService, readResponse } from './service.ts';

it('a Date in the query is sent as an instant that the server reads', async () => {
  const { handler, bearer } = createService();
  const since = new Date('2026-03-01T10:00:00Z');
  const { method, path } = callAddress('GET /executions', { query: { since, until: undefined, limit: 3 } });
  expect(path).toBe(`/executions?since=${since.getTime()}&limit=3`);
  const headers = await bearer('admin');
  expect(
    await readResponse(handler.fetch(new Request(`http://localhost/api/v1${path}`, { method, headers }))),
  ).toMatchObject({ status: 200 });
});

it('a value of the path is one segment, whatever it holds', () => {
  expect(callAddress('GET /executions/:id/steps/:key', { id: 'exec_1', key: 'each/2?a=b' })).toEqual({
    method: 'GET',
    path: '/executions/exec_1/steps/each%2F2%3Fa%3Db',
  });
});
