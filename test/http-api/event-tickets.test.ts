/** Tickets: a URL that opens the event stream of one execution for 60 seconds, for an `EventSource`, which sends no header. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { HOSTS } from './hosts.ts';
import { readResponse } from './service.ts';
import { openSession, type Session } from './ticket-session.ts';

const NOBODY = 'exec_01M7WWEK7KT35PGB6V8KCP7X7Z';
const ORIGIN = 'https://app.example';

describe.each(HOSTS)('a ticket by $host', ({ open }) => {
  const begin = (options?: Parameters<typeof openSession>[1]): Promise<Session> => openSession(open, options);

  it('is 201 with the ticket and its end, and opens the stream without any header', async () => {
    const { ticket, follow, service, clock } = await begin();
    const { status, body } = await ticket();
    expect([status, body]).toEqual([
      201,
      { ticket: expect.stringMatching(/^[A-Za-z0-9_-]+\.[0-9a-f]{64}$/), expiresAt: clock.now() + 60_000 },
    ]);
    const stream = await follow(body.ticket);
    expect(stream.status).toBe(200);
    service.release();
    expect(await stream.text()).toMatch(/event: execution\.started[\s\S]*event: execution\.completed/);
  });

  it('needs `read:executions` and a known execution, and takes no body', async () => {
    const { service, ask, id } = await begin();
    const send = async (of: string, headers: Record<string, string>, body?: string) =>
      (await ask(`/api/v1/executions/${of}/events/ticket`, { method: 'POST', headers, ...(body && { body }) })).status;
    const reader = await service.bearer('read:executions');
    expect(await send(id, {})).toBe(401);
    expect(await send(id, await service.bearer('execute:ensembles'))).toBe(403);
    expect(await send(NOBODY, reader)).toBe(404);
    expect(await send('exec_x', reader)).toBe(404);
    expect(await send(id, { ...reader, 'content-type': 'application/json' }, '{"x":1}')).toBe(400);
  });

  it('is not valid for another execution, in another form, or changed', async () => {
    const { ticket, follow, service, ask } = await begin();
    const { body } = await ticket();
    const begun = service.begun();
    const other = await service.orchestrator.start('slow');
    await begun;
    const given: string = body.ticket;
    const changed = `${given.slice(0, -1)}${given.endsWith('0') ? '1' : '0'}`;
    expect((await follow(given, other.id)).status).toBe(401);
    for (const wrong of [changed, given.slice(1), 'x', '%00', 'x'.repeat(5000)])
      expect([wrong.length, (await follow(wrong)).status]).toEqual([wrong.length, 401]);
    // A wrong ticket is not replaced by a token, and an unknown ticket stores nothing.
    const headers = await service.bearer('admin');
    expect((await ask(`/api/v1/executions/${other.id}/events?ticket=`, { headers })).status).toBe(401);
  });

  it('opens streams as often as wanted for 60 seconds, then none; a stream that is open goes on', async () => {
    const { ticket, follow, clock, service } = await begin();
    const { body } = await ticket();
    const first = await follow(body.ticket);
    await clock.advance(59_999);
    const again = await follow(body.ticket, undefined, '1');
    expect(again.status).toBe(200);
    await clock.advance(1);
    const late = await readResponse(follow(body.ticket));
    expect([late.status, late.body.error.code]).toEqual([401, 'TOKEN_EXPIRED']);
    await clock.advance(60_000);
    service.release();
    expect(await first.text()).toContain('event: execution.completed');
    expect(await again.text()).toContain('event: execution.completed');
  });

  it('ends together with the token that asked for it, and so do the streams that it opened', async () => {
    const { ticket, follow, clock, service, tokenId } = await begin();
    const { body } = await ticket();
    const stream = await follow(body.ticket);
    await service.orchestrator.tokens.revoke(tokenId);
    expect((await follow(body.ticket)).status).toBe(401);
    await clock.advance(15_000);
    expect(await stream.text()).not.toContain('execution.completed');
  });

  it('counts for the limit of streams of the token that asked for it', async () => {
    const { ticket, follow } = await begin({ handler: { maxStreamsPerToken: 1 } });
    const [one, two] = [(await ticket()).body.ticket, (await ticket()).body.ticket];
    expect([(await follow(one)).status, (await follow(two)).status]).toEqual([200, 503]);
  });

  it('is valid in every process of the store, also after a restart, and the key is no token of the list', async () => {
    const storage = { ...memoryStorage(), close() {} };
    const first = await begin({ storage });
    const second = await begin({ storage, isOther: true });
    const tickets = [(await first.ticket()).body.ticket, (await second.ticket(first.id)).body.ticket];
    for (const given of tickets)
      for (const session of [first, second, await begin({ storage, isOther: true })])
        expect((await session.follow(given, first.id)).status).toBe(200);
    const { tokens } = first.service.orchestrator;
    expect(new Set((await tokens.list()).map(({ name }) => name))).toEqual(new Set(['reader']));
    await expect(tokens.revoke('key_event-tickets')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('is read by the route of the events alone', async () => {
    const { ticket, ask, id } = await begin();
    const { body } = await ticket();
    const statuses = [];
    for (const path of [`/api/v1/executions/${id}`, '/api/v1/executions', `/api/v1/executions/${id}/agents`])
      statuses.push((await ask(`${path}?ticket=${body.ticket}`)).status);
    expect(statuses).toEqual([401, 401, 401]);
  });

  it('works from a page of a listed origin', async () => {
    const { ticket, ask, id } = await begin({ handler: { cors: [ORIGIN] } });
    const { body } = await ticket();
    const { status, headers } = await ask(`/api/v1/executions/${id}/events?ticket=${body.ticket}`, {
      method: 'HEAD',
      headers: { origin: ORIGIN },
    });
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, ORIGIN]);
  });

  it('never appears in the log', async () => {
    const { ticket, follow, service } = await begin();
    const { body } = await ticket();
    Object.assign(service.orchestrator.executions, { status: () => Promise.reject(new Error('broken')) });
    expect((await follow(body.ticket)).status).toBe(500);
    expect(service.log).toHaveLength(1);
    expect(JSON.stringify(service.log)).not.toContain(body.ticket.slice(0, 20));
  });
});

describe('executions.ticket()', () => {
  it('is the same without HTTP; a ticket without a holder ends only with its 60 seconds', async () => {
    const { service, id, clock } = await openSession((HOSTS[0] as (typeof HOSTS)[number]).open);
    const { executions } = service.orchestrator;
    const { ticket, expiresAt } = await executions.ticket(id);
    expect(await executions.verifyTicket(id, ticket)).toMatchObject({ scopes: ['read:executions'] });
    await clock.advance(60_000);
    await expect(executions.verifyTicket(id, ticket)).rejects.toMatchObject({
      code: 'TOKEN_EXPIRED',
      details: { expiredAt: expiresAt },
    });
    expect(await executions.verifyTicket(id, ticket, { isOpen: true })).toMatchObject({ name: 'ticket' });
    await expect(executions.ticket(NOBODY)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(executions.ticket(id, { holdr: 'x' } as never)).rejects.toThrow('did you mean `holder`?');
  });
});
