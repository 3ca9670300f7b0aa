/** `/jobs` and `DELETE /executions/:id`: many executions are cancelled, retried or deleted over HTTP. */

import { beforeEach, expect, it } from 'vitest';
import { createService, post, readResponse, type Service } from './service.ts';

let service: Service;
beforeEach(() => {
  service = createService();
});

const send = async (path: string, init: RequestInit) =>
  readResponse(service.handler.fetch(new Request(`http://localhost/api/v1${path}`, init)));
const create = async (body: object, ...scopes: Parameters<Service['bearer']>) =>
  send('/jobs', post(body, await service.bearer(...scopes)));

it('a job is created, read by its `Location`, listed, and stopped', async () => {
  const run = await service.orchestrator.execute('greet', { who: 'Ada' });
  const created = await create(
    { action: 'delete', filter: { ensemble: 'greet', until: '2100-01-01T00:00:00Z' } },
    'admin',
  );
  expect(created).toMatchObject({
    status: 202,
    body: { action: 'delete', status: 'running', by: { name: expect.any(String) } },
  });
  const { id } = created.body;
  expect(created.headers.get('location')).toBe(`/api/v1/jobs/${id}`);
  await service.clock.advance(1_000);
  const headers = await service.bearer('read:executions', 'execute:ensembles');
  const done = { id, status: 'completed', seen: 1, changed: 1 };
  expect((await send(`/jobs/${id}`, { headers })).body).toMatchObject(done);
  expect((await send('/jobs', { headers })).body).toMatchObject({ jobs: [done] });
  // Deleting needs `admin`, and so does stopping it.
  expect((await send(`/jobs/${id}/stop`, { method: 'POST', headers })).status).toBe(403);
  const admin = await service.bearer('admin');
  expect(await send(`/jobs/${id}/stop`, { method: 'POST', headers: admin })).toMatchObject({ status: 200, body: done });
  expect((await send(`/executions/${run.id}`, { headers })).status).toBe(404);
});

it('deleting needs `admin`; a filter that also finds agents needs `execute:agents`', async () => {
  const scopes = ['execute:ensembles'] as const;
  const needs = (requiredScope: string) => ({ status: 403, body: { error: { code: 'FORBIDDEN', requiredScope } } });
  expect(await create({ action: 'delete', filter: { ensemble: 'greet' } }, ...scopes)).toMatchObject(needs('admin'));
  for (const filter of [{ status: 'running' }, { ensemble: 'agent:double' }])
    expect(await create({ action: 'cancel', filter }, ...scopes)).toMatchObject(needs('execute:agents'));
  expect(await service.orchestrator.jobs.list()).toEqual([]);
});

it.each([
  [{ action: 'cancel' }, 'filter'],
  [{ action: 'cancel', filter: {} }, '`filter` must have at least one filter'],
  [{ action: 'cancel', filter: { ensemble: 'greet', retryOf: 'a' } }, 'retryOf'],
  [
    { action: 'cancel', filter: { ensemble: 'greet', since: 'yesterday' } },
    '`filter.since` must be Unix ms or ISO 8601',
  ],
  [
    { action: 'cancel', filter: { ensemble: 'greet', parentId: 'a b' } },
    '`filter.parentId` must be the id of an execution',
  ],
])('the body %j is 400 and says what is wrong', async (body, text) => {
  const refused = await create(body, 'admin');
  expect(refused).toMatchObject({ status: 400, body: { error: { code: 'INVALID_REQUEST' } } });
  expect(JSON.stringify(refused.body)).toContain(text);
});

it('`DELETE` deletes the record of an execution that has ended, and refuses an active one with 409', async () => {
  const headers = await service.bearer('admin');
  const { id } = await service.orchestrator.execute('greet', { who: 'Ada' });
  const remove = () => send(`/executions/${id}`, { method: 'DELETE', headers });
  expect(await remove()).toMatchObject({ status: 200, body: { id, deleted: true } });
  expect(await remove()).toMatchObject({ status: 404 });
  const begun = service.begun();
  const active = await service.orchestrator.start('slow');
  await begun;
  expect(await send(`/executions/${active.id}`, { method: 'DELETE', headers })).toMatchObject({
    status: 409,
    body: { error: { code: 'CONFLICT', executionId: active.id, status: 'running' } },
  });
  service.release();
});

it('who may not read executions stops a job, and learns no more than its status', async () => {
  const { id } = (await create({ action: 'cancel', filter: { ensemble: 'echo' } }, 'execute:ensembles')).body;
  const stopped = await send(`/jobs/${id}/stop`, {
    method: 'POST',
    headers: await service.bearer('execute:ensembles'),
  });
  expect(stopped).toMatchObject({ status: 200, body: { id, action: 'cancel' } });
  expect(Object.keys(stopped.body).sort()).toEqual(['action', 'id', 'status']);
});

it('an unknown filter is refused with the filters that there are', async () => {
  const { body } = await create({ action: 'cancel', filter: { ensembel: 'greet' } }, 'admin');
  expect(body.error.issues).toEqual([
    { path: 'filter', message: '`ensembel` is not a key here; did you mean `ensemble`?' },
  ]);
});
