/** `/schedules`: the schedules of ensembles over HTTP. */

import { expect, it } from 'vitest';
import { manualClock } from '../../src/entries/testing.ts';
import { createHandler, createOrchestrator } from '../../src/index.ts';
import { checked } from './check-response.ts';

it('schedules are listed, paused, resumed, and run now', async () => {
  const orchestrator = createOrchestrator({
    ...{ clock: manualClock({ now: Date.UTC(2026, 0, 1) }), logger: false },
    ensembles: [{ name: 'report', trigger: [{ type: 'schedule', cron: '0 * * * *', input: { a: 1 } }], flow: [] }],
  });
  const handler = checked(createHandler(orchestrator, { authenticate: () => ({ id: 'ops', scopes: ['admin'] }) }));
  const ask = async (method: string, path: string) => {
    const response = await handler.fetch(new Request(`http://localhost/api/v1${path}`, { method }));
    return { status: response.status, location: response.headers.get('location'), body: await response.json() };
  };
  const { body } = await ask('GET', '/schedules');
  expect(body.schedules).toMatchObject([
    { ensemble: 'report', cron: '0 * * * *', paused: false, next: [1767229200000, 1767232800000, 1767236400000] },
  ]);
  const [{ id }] = body.schedules;
  expect((await ask('POST', `/schedules/${id}/pause`)).body).toMatchObject({ id, paused: true, next: [] });
  const run = await ask('POST', `/schedules/${id}/run`);
  expect([run.status, run.location]).toEqual([202, `/api/v1/executions/${run.body.executionId}`]);
  expect((await orchestrator.executions.get(run.body.executionId)).input).toEqual({ a: 1 });
  expect((await ask('POST', `/schedules/${id}/resume`)).body).toMatchObject({ paused: false });
  expect((await ask('POST', '/schedules/report.0/run')).status).toBe(404);
  await orchestrator.close();
});
