/** An event stream ends when the token that opened it is no longer valid. */

import { beforeEach, describe, expect, it } from 'vitest';
import { type Ask, HOSTS } from './hosts.ts';
import { createService, type Service } from './service.ts';

describe.each(HOSTS)('an event stream by $host', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let reader: ReadableStreamDefaultReader<Uint8Array>;
  let tokenId: string;
  /** How often a token was verified. */
  let verified: number;
  let broken: boolean;

  beforeEach(async () => {
    service = createService();
    verified = 0;
    broken = false;
    const { verify } = service.orchestrator.tokens;
    Object.assign(service.orchestrator.tokens, {
      verify: (value: string) => {
        verified += 1;
        return broken ? Promise.reject(new Error('the store is unreachable')) : verify(value);
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
    const response = await ask(`/api/v1/executions/${run.id}/events`, { headers });
    reader = (response.body as ReadableStream<Uint8Array>).getReader();
    expect(await read()).toContain('event: execution.started');
    expect(verified).toBe(1);
  });

  /** The next chunk; undefined at the end. */
  const read = async () => {
    const { done, value } = await reader.read();
    return done ? undefined : new TextDecoder().decode(value);
  };
  const rest = async () => {
    let text = '';
    for (let part = await read(); part !== undefined; part = await read()) text += part;
    return text;
  };

  it('ends at the next heartbeat after its token is revoked', async () => {
    const beat = read();
    await service.clock.advance(15_000);
    expect(await beat).toBe(':\n\n');
    await service.orchestrator.tokens.revoke(tokenId);
    await service.clock.advance(15_000);
    expect(await rest()).toBe('');
    await service.clock.advance(0);
    expect(service.clock.nextIn).toBeUndefined();
  });

  it('ends before an event that comes more than a second after the last check of its token', async () => {
    await service.orchestrator.tokens.revoke(tokenId);
    await service.clock.advance(1_001);
    service.release();
    expect(await rest()).toBe('');
    await service.clock.advance(0);
    expect(service.clock.nextIn).toBeUndefined();
  });

  it('ends when its token expires', async () => {
    for (const _beat of [15, 30]) {
      const beat = read();
      await service.clock.advance(15_000);
      expect(await beat).toBe(':\n\n');
    }
    await service.clock.advance(15_000);
    expect(await rest()).toBe('');
  });

  it('continues to the end of the execution while its token is valid, and checks the token at most once a second', async () => {
    await service.clock.advance(1_000);
    service.release();
    expect(await rest()).toMatch(/event: agent\.completed[\s\S]*event: execution\.completed/);
    expect(verified).toBe(1);
  });

  it('breaks off when its token can not be checked', async () => {
    broken = true;
    await service.clock.advance(15_000);
    await expect(rest()).rejects.toThrow();
    expect(service.log).toMatchObject([{ level: 'error', message: 'an event stream failed' }]);
    await service.clock.advance(0);
    expect(service.clock.nextIn).toBeUndefined();
  });
});
