import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeHttp } from '../../src/adapters/http/node-http.ts';
import { type BadPeer, startBadPeer } from './bad-peer.ts';

let peer: BadPeer;
beforeAll(async () => {
  peer = await startBadPeer();
});
afterAll(() => peer.close());

const at = (host: string, path = '/echo') => ({
  method: 'GET',
  url: `http://${host}:${peer.port}${path}`,
  timeoutMs: 5_000,
});

describe('nodeHttp and the addresses of a name', () => {
  it.each([
    ['one private address', ['10.0.0.1']],
    ['a public and a private address', ['93.184.216.34', '127.0.0.1']],
    ['a private address among many', ['93.184.216.34', '8.8.8.8', '::ffff:127.0.0.1', '1.1.1.1']],
    ['an address of the metadata service', ['169.254.169.254']],
    ['something that is not an address', ['127.0.0.1.evil']],
  ])('refuses a name with %s, without a connection and not retryable', async (_what, addresses) => {
    const before = peer.count('/echo');
    const http = nodeHttp({ resolve: async () => addresses });
    await expect(http.send(at('peer.example'))).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      retryable: false,
      details: { reason: 'address' },
      message: expect.stringMatching(/^GET http:\/\/peer\.example:\d+\/echo was refused: its host resolves to/),
    });
    expect(peer.count('/echo')).toBe(before);
  });

  it('the error does not contain the resolved address', async () => {
    const http = nodeHttp({ resolve: async () => ['10.11.12.13'] });
    const error = await http.send(at('peer.example')).catch((thrown: unknown) => thrown);
    expect(`${error} ${JSON.stringify(error)}`).not.toContain('10.11.12.13');
  });

  it('connects only to the checked address, and resolves the name once for each connection', async () => {
    const asked: string[] = [];
    const answers = [['127.0.0.1'], ['10.0.0.1']];
    const http = nodeHttp({
      allow: ['127.0.0.0/8'],
      resolve: async (host) => {
        asked.push(host);
        return answers.shift() ?? [];
      },
    });
    const answer = await http.send(at('rebind.example'));
    expect(JSON.parse(new TextDecoder().decode(answer.body)).headers.host).toBe(`rebind.example:${peer.port}`);
    expect(asked).toEqual(['rebind.example']);
    // The same connection is used again. A new connection is checked again, and the name has another address now.
    await http.send(at('rebind.example'));
    expect(asked).toHaveLength(1);
    http.close();
    await expect(http.send(at('rebind.example'))).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    expect(asked).toHaveLength(2);
  });

  it('checks the answers of the system resolver too: a local name needs the allow list', async () => {
    await expect(nodeHttp().send(at('localhost'))).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    const answer = await nodeHttp({ allow: [`localhost:${peer.port}`] }).send(at('localhost'));
    expect(answer.status).toBe(200);
  });

  it('a name on the allow list may resolve to a private address; another name may not', async () => {
    const http = nodeHttp({ allow: ['*.internal.example'], resolve: async () => ['127.0.0.1'] });
    expect((await http.send(at('api.internal.example'))).status).toBe(200);
    await expect(http.send(at('api.other.example'))).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await expect(http.send(at('evilinternal.example'))).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });

  it('a name that does not resolve is a broken exchange, retryable', async () => {
    const failed = Object.assign(new Error('getaddrinfo ENOTFOUND peer.example'), { code: 'ENOTFOUND' });
    for (const resolve of [() => Promise.reject(failed), async () => []]) {
      await expect(nodeHttp({ resolve }).send(at('peer.example'))).rejects.toMatchObject({
        code: 'AGENT_FAILED',
        retryable: true,
        details: { reason: 'connection', code: 'ENOTFOUND' },
      });
    }
  });

  it('a resolver that never answers ends at the timeout', async () => {
    const http = nodeHttp({ resolve: () => new Promise(() => {}) });
    await expect(http.send({ ...at('peer.example'), timeoutMs: 30 })).rejects.toMatchObject({ code: 'TIMEOUT' });
  });
});

describe('nodeHttp and answers in small chunks', () => {
  const chunks = (count: number) => ({ ...at('127.0.0.1', `/chunks/${count}`), timeoutMs: 60_000 });

  it('reads an answer in chunks of one byte', async () => {
    const answer = await nodeHttp({ allow: ['127.0.0.1'] }).send(chunks(50_000));
    expect(new TextDecoder().decode(answer.body)).toBe('x'.repeat(50_000));
  });

  it('refuses an answer that is almost only framing long before its end: each chunk takes the parser some microseconds', async () => {
    await expect(nodeHttp({ allow: ['127.0.0.1'] }).send(chunks(4_000_000))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: false,
      details: { reason: 'fragmented' },
    });
    await peer.closed('/chunks/4000000');
  });
});

describe('nodeHttp and its connections', () => {
  it('keeps a connection for the next exchange; close() closes idle connections only', async () => {
    const http = nodeHttp({ allow: ['127.0.0.1'] });
    await http.send(at('127.0.0.1', '/bytes'));
    await http.send(at('127.0.0.1', '/bytes'));
    expect(peer.open('/bytes')).toBe(1);
    const running = http.send(at('127.0.0.1', '/late-answer'));
    http.close();
    expect(new TextDecoder().decode((await running).body)).toBe('late');
    http.close();
    await Promise.all([peer.closed('/bytes'), peer.closed('/late-answer')]);
    expect((await http.send(at('127.0.0.1', '/bytes'))).status).toBe(200);
    http.close();
  });

  it('a compressed body that ends early is a broken exchange, not a short answer', async () => {
    await expect(nodeHttp({ allow: ['127.0.0.1'] }).send(at('127.0.0.1', '/cut-gzip'))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: true,
      details: { reason: 'malformed' },
    });
  });
});
