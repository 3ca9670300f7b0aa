/** The audit log: each change by an operator, with who, why, from where, before and after. */

import { describe, expect, it } from 'vitest';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { createHandler } from '../../src/http-handlers/create-handler.ts';
import type { AuditEntry } from '../../src/index.ts';

function world() {
  const orchestrator = createTestOrchestrator({
    ensembles: [{ name: 'order', flow: [{ wait: 'paid' }] }] as never,
    secrets: { BANK: 'hunter2-hunter2' },
  });
  const actions = async (filter = {}) => (await orchestrator.audit.list(filter)).entries.map(({ action }) => action);
  return { orchestrator, clock: orchestrator.clock, actions };
}

describe('audit.list', () => {
  it('has an entry of each change, newest first, with who, why, before and after', async () => {
    const { orchestrator, clock } = world();
    const { id } = await orchestrator.start('order', {});
    await clock.advance(10);
    const at = clock.now();
    await orchestrator.executions.pause(id, { actor: 'Ada', reason: 'stock is counted' });
    await clock.advance(10);
    await orchestrator.executions.cancel(id);
    const { entries } = await orchestrator.audit.list();
    expect(entries).toEqual([
      expect.objectContaining({ action: 'execution.cancel', before: { status: 'paused' }, from: { type: 'call' } }),
      {
        id: expect.stringMatching(/^aud_/),
        at,
        action: 'execution.pause',
        target: { executionId: id, ensemble: 'order' },
        by: { name: 'Ada' },
        from: { type: 'call' },
        reason: 'stock is counted',
        before: { status: 'waiting' },
        after: { executionId: id, status: 'paused' },
      },
    ]);
  });

  it('a change that is refused has its error, and an unknown execution has no entry', async () => {
    const { orchestrator, clock } = world();
    const { id } = await orchestrator.start('order', {});
    await orchestrator.executions.signal(id, 'paid');
    await clock.advance(1);
    await expect(orchestrator.executions.pause(id)).rejects.toMatchObject({ code: 'CONFLICT' });
    await expect(orchestrator.executions.pause('exec_unknown')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const { entries } = await orchestrator.audit.list();
    expect(entries).toMatchObject([{ action: 'execution.pause', error: { code: 'CONFLICT' } }]);
    expect(entries[0]).not.toHaveProperty('after');
  });

  it('filters, pages, and keeps entries after their execution is deleted', async () => {
    const { orchestrator, clock, actions } = world();
    const { id } = await orchestrator.start('order', {});
    await orchestrator.executions.pause(id, { actor: 'Ada' });
    await clock.advance(1_000);
    const later = clock.now();
    await orchestrator.executions.cancel(id, { actor: 'Bob' });
    await clock.advance(1);
    await orchestrator.executions.delete(id);
    await clock.advance(1);
    await orchestrator.executions.pauseAll({ ensemble: 'order' });
    await clock.advance(1);
    await orchestrator.jobs.create({ action: 'cancel', filter: { ensemble: 'order' }, reason: 'all wrong' });
    expect(await actions()).toEqual([
      'job.create',
      'executions.pause',
      'execution.delete',
      'execution.cancel',
      'execution.pause',
    ]);
    expect(await actions({ by: 'Ada' })).toEqual(['execution.pause']);
    expect(await actions({ executionId: id })).toEqual(['execution.delete', 'execution.cancel', 'execution.pause']);
    expect(await actions({ since: later, until: later + 1 })).toEqual(['execution.cancel']);
    expect(await actions({ action: 'job.create' })).toEqual(['job.create']);
    const first = await orchestrator.audit.list({ limit: 2 });
    const second = await orchestrator.audit.list({ limit: 3, cursor: first.nextCursor });
    expect([...first.entries, ...second.entries].map(({ action }) => action)).toEqual(await actions());
    expect(second.nextCursor).toBeUndefined();
    const all: AuditEntry[] = [];
    for await (const entry of orchestrator.audit.all({ executionId: id })) all.push(entry);
    expect(all).toHaveLength(3);
    await expect(orchestrator.audit.list({ action: 'nothing' as never })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
  });

  it('over HTTP: the token is who, with address and request id; a page or JSON lines, masked, for `admin` alone', async () => {
    const { orchestrator } = world();
    const { id } = await orchestrator.start('order', {});
    const { token } = await orchestrator.tokens.create({ name: 'ops', scopes: ['admin'] });
    const weak = await orchestrator.tokens.create({ name: 'weak', scopes: ['execute:ensembles', 'read:executions'] });
    const handler = createHandler(orchestrator);
    const send = (method: string, path: string, body?: unknown, as = token) =>
      handler.fetch(
        new Request(`http://localhost/api/v1${path}`, {
          method,
          headers: { authorization: `Bearer ${as}`, 'content-type': 'application/json', 'x-request-id': 'req-1' },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        }),
      );
    const paused = await send('POST', `/executions/${id}/pause`, { reason: 'key hunter2-hunter2 leaked' });
    expect(paused.status).toBe(200);
    const { entries } = (await (await send('GET', '/audit')).json()) as { entries: AuditEntry[] };
    expect(entries).toMatchObject([
      {
        action: 'execution.pause',
        by: { name: 'ops', tokenId: expect.stringMatching(/^tok_/) },
        from: { type: 'http', requestId: 'req-1' },
        reason: 'key *** leaked',
      },
    ]);
    const lines = await send('GET', '/audit?format=lines');
    expect(lines.headers.get('content-type')).toBe('application/x-ndjson');
    const text = await lines.text();
    expect(text.endsWith('}\n')).toBe(true);
    expect(JSON.parse(text)).toMatchObject({ id: entries[0]?.id, reason: 'key *** leaked' });
    expect((await send('GET', '/audit', undefined, weak.token)).status).toBe(403);
  });
});
