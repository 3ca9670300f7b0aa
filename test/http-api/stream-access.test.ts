/** A stream of events does not outlive the token that opened it. */

import { beforeEach, describe, expect, it } from 'vitest';
import { type Ask, DOORS } from './doors.ts';
import { createService, type Service } from './service.ts';

describe.each(DOORS)('a stream of events by $door', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let reader: ReadableStreamDefaultReader<Uint8Array>;
  let tokenId: string;
  /** How often a token was looked up. */
  let asked: number;
  let broken: boolean;

  beforeEach(async () => {
    service = createService();
    asked = 0;
    broken = false;
    const { verify } = service.orchestrator.tokens;
    Object.assign(service.orchestrator.tokens, {
      verify: (value: string) => {
        asked += 1;
        return broken ? Promise.reject(new Error('the store is away')) : verify(value);
      },
    });
    ask = await open(service.handler);
    const { token, id } = await service.orchestrator.tokens.create({
      name: 'reader',
      scopes: ['read:executions'],
      expiresIn: 40,
    });
    tokenId = id;
    const begun = service.begun();
    const run = await service.orchestrator.start('slow');
    await begun;
    const headers = { authorization: `Bearer ${token}` };
    const answer = await ask(`/api/v1/executions/${run.id}/events`, { headers });
    reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    expect(await read()).toContain('event: execution.started');
    expect(asked).toBe(1);
  });

  /** What comes next; undefined at the end. */
  const read = async () => {
    const { done, value } = await reader.read();
    return done ? undefined : new TextDecoder().decode(value);
  };
  const rest = async () => {
    let text = '';
    for (let part = await read(); part !== undefined; part = await read()) text += part;
    return text;
  };

  it('ends at the next sign of life after its token is revoked', async () => {
    await service.clock.advance(15_000);
    expect(await read()).toBe(':\n\n');
    await service.orchestrator.tokens.revoke(tokenId);
    await service.clock.advance(15_000);
    expect(await rest()).toBe('');
    await service.clock.advance(0);
    expect(service.clock.nextIn).toBeUndefined();
  });

  it('ends before an event that comes more than a second after it was asked for its token', async () => {
    await service.orchestrator.tokens.revoke(tokenId);
    await service.clock.advance(1_001);
    service.release();
    expect(await rest()).toBe('');
    await service.clock.advance(0);
    expect(service.clock.nextIn).toBeUndefined();
  });

  it('ends when its token expires', async () => {
    for (const _beat of [15, 30]) {
      await service.clock.advance(15_000);
      expect(await read()).toBe(':\n\n');
    }
    await service.clock.advance(15_000);
    expect(await rest()).toBe('');
  });

  it('goes on to the end of the run while its token is good, and asks once a second at most', async () => {
    await service.clock.advance(1_000);
    service.release();
    expect(await rest()).toMatch(/event: agent\.completed[\s\S]*event: execution\.completed/);
    expect(asked).toBe(1);
  });

  it('breaks off when nobody can tell whether its token is good', async () => {
    broken = true;
    await service.clock.advance(15_000);
    await expect(rest()).rejects.toThrow();
    expect(service.log).toMatchObject([{ level: 'error', message: 'a stream of events broke off' }]);
    await service.clock.advance(0);
    expect(service.clock.nextIn).toBeUndefined();
  });
});
