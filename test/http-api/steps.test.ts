/** `GET /executions/:id/steps`: the steps of every kind, in pages. */

import { beforeEach, describe, expect, it } from 'vitest';
import { type Ask, HOSTS } from './hosts.ts';
import { createService, readResponse, type Service } from './service.ts';

describe.each(HOSTS)('the steps of an execution by $host', ({ open }) => {
  let service: Service;
  let ask: Ask;
  beforeEach(async () => {
    service = createService();
    ask = await open(service.handler);
  });
  const steps = async (id: string, query = '') =>
    readResponse(ask(`/api/v1/executions/${id}/steps${query}`, { headers: await service.bearer('read:executions') }));

  it('are those of `executions.steps`, page by page', async () => {
    const { id } = await service.orchestrator.execute('parent', {});
    const all = await service.orchestrator.executions.steps(id);
    expect(all.steps.map(({ kind, name, status }) => [kind, name, status])).toEqual([
      ['ensemble', 'echo', 'completed'],
      ['ensemble', 'failing', 'failed'],
    ]);
    const first = await steps(id, '?limit=1');
    expect(first).toMatchObject({
      status: 200,
      body: { steps: all.steps.slice(0, 1), nextCursor: expect.any(String) },
    });
    const rest = await steps(id, `?cursor=${encodeURIComponent(first.body.nextCursor)}`);
    expect(rest.body).toEqual({ steps: all.steps.slice(1) });
  });

  it('have no output of more than `maxOutput` bytes, and say so', async () => {
    const { id } = await service.orchestrator.execute('parent', {});
    const [{ output } = {}] = (await service.orchestrator.executions.steps(id)).steps;
    const bytes = JSON.stringify(output).length;
    const whole = await steps(id, `?maxOutput=${bytes}`);
    expect(whole.body.steps[0]).toMatchObject({ output });
    const less = await steps(id, `?maxOutput=${bytes - 1}`);
    expect(less.body.steps[0]).toMatchObject({ name: 'echo', outputOmitted: true });
    expect(less.body.steps[0]).not.toHaveProperty('output');
    expect((await steps(id, '?maxOutput=-1')).body.error).toMatchObject({
      code: 'INVALID_REQUEST',
      message: '`maxOutput` must be a whole number, not "-1"',
    });
  });

  it('come from the definition with which the execution began, which is served beside them', async () => {
    const { id, version } = await service.orchestrator.execute('parent', {});
    const get = async (execution: string) =>
      readResponse(
        ask(`/api/v1/executions/${execution}/definition`, { headers: await service.bearer('read:ensembles') }),
      );
    const found = await get(id);
    expect(found).toMatchObject({ status: 200, body: { ensemble: 'parent', version, definition: { name: 'parent' } } });
    const alone = await service.orchestrator.executeAgent('double', { n: 1 });
    expect((await get(alone.id)).body.error).toMatchObject({
      code: 'NOT_FOUND',
      message: `execution ${alone.id} ran an agent alone: it has no flow`,
    });
  });

  it('wrong parameters are 400, and an unknown execution is 404', async () => {
    const { id } = await service.orchestrator.execute('echo', {});
    expect((await steps(id, '?limit=0')).body.error.code).toBe('INVALID_REQUEST');
    expect((await steps(id, '?cursor=x')).body.error.code).toBe('INVALID_CURSOR');
    expect((await steps(`exec_${'0'.repeat(26)}`)).status).toBe(404);
  });
});
