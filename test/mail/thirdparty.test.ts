/** The sender over the HTTP API of Resend, against a server that reads its wire format as strictly as its documentation says. */

import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { addressParser } from 'postal-mime';
import { afterEach, describe, expect, it } from 'vitest';
import type { MailAddress } from '../../src/engine/operation/mail.port.ts';
import { mailSuite, type ReceivedMail } from '../../src/entries/conformance.ts';
import { thirdpartyMail } from '../../src/index.ts';
import { failureOf, mailOf, sendOptions } from './smtp-peer.ts';

const KEY = 're_secret_key';
type Answer = { readonly status: number; readonly body: string; readonly headers?: Record<string, string> };
type Post = { readonly headers: IncomingHttpHeaders; readonly body: Record<string, unknown> };

const FIELDS = ['from', 'to', 'cc', 'bcc', 'reply_to', 'subject', 'text', 'html', 'attachments', 'headers', 'tags'];

/** @param answer - what it answers instead; 'silent': nothing; 'lost': it breaks the connection */
async function provider(answer?: Answer | 'silent' | 'lost') {
  const posts: Post[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
      const { headers, method, url } = request;
      const refuse = (status: number, name: string, message: string) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ name, message }));
      if (method !== 'POST' || url !== '/emails') return refuse(405, 'method_not_allowed', 'method not allowed');
      if (headers.authorization !== `Bearer ${KEY}`) return refuse(403, 'invalid_api_key', 'API key is invalid');
      const unknown = Object.keys(body).find((key) => !FIELDS.includes(key));
      if (unknown !== undefined) return refuse(422, 'invalid_parameter', `unknown field ${unknown}`);
      posts.push({ headers, body });
      if (answer === 'silent') return;
      if (answer === 'lost') return void request.socket.destroy();
      if (answer) return response.writeHead(answer.status, answer.headers).end(answer.body);
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ id: `id-${posts.length}` }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/emails`,
    posts,
    received: () => posts.map(toReceived),
    close() {
      server.closeAllConnections();
      return new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function toReceived({ body }: Post): ReceivedMail {
  const list = (given: unknown): MailAddress[] =>
    ((given ?? []) as string[]).map((text) => {
      const [one, ...others] = addressParser(text);
      if (!one?.address || others.length > 0) throw new Error(`not one address: ${text}`);
      return { address: one.address, ...(one.name && { name: one.name }) };
    });
  const [to, cc, bcc] = [list(body.to), list(body.cc), list(body.bcc)];
  const files = (body.attachments ?? []) as { filename: string; content: string; content_type: string }[];
  return {
    ...{ to, cc, recipients: [...to, ...cc, ...bcc].map(({ address }) => address) },
    from: list([body.from])[0] as MailAddress,
    replyTo: body.reply_to === undefined ? undefined : list([body.reply_to])[0],
    subject: body.subject as string,
    text: body.text as string | undefined,
    html: body.html as string | undefined,
    attachments: files.map(({ filename, content, content_type: contentType }) => ({
      ...{ filename, contentType, content: new Uint8Array(Buffer.from(content, 'base64')) },
    })),
    headers: (body.headers ?? {}) as Record<string, string>,
  };
}

mailSuite({
  name: 'thirdpartyMail',
  async create() {
    const { url, received, close } = await provider();
    return { sender: thirdpartyMail({ url }), settings: { apiKey: KEY }, received, close };
  },
  async createSilent() {
    const { url, close } = await provider('silent');
    return { sender: thirdpartyMail({ url, apiKey: KEY }), received: () => [], close };
  },
  test: { describe, it },
});

describe('thirdpartyMail', () => {
  let peer: Awaited<ReturnType<typeof provider>>;
  afterEach(() => peer?.close());

  async function failWith(answer: Parameters<typeof provider>[0], timeoutMs = 5_000) {
    peer = await provider(answer);
    const error = await failureOf(
      thirdpartyMail({ url: peer.url, apiKey: KEY }).send(mailOf(), sendOptions({ timeoutMs })),
    );
    expect(JSON.stringify([error.message, error.details])).not.toContain(KEY);
    return error;
  }

  it('sends the key, the idempotency key, and each field under its name of the API', async () => {
    peer = await provider();
    const sender = thirdpartyMail({ url: peer.url, apiKey: 'another' });
    const attachments = [{ filename: 'a.txt', content: Uint8Array.of(1, 2, 255), contentType: 'text/plain' }];
    const mail = mailOf({
      ...{ from: { address: 'shop@example.com', name: 'A "B" \\ C' }, html: '<p>hi</p>', attachments },
      ...{ replyTo: { address: 'help@example.com' }, tags: ['welcome'], metadata: { order: 7, vip: true } },
    });
    const options = sendOptions({ settings: { apiKey: KEY }, idempotencyKey: 'exec_1/flow[0]' });
    expect(await sender.send(mail, options)).toEqual({ messageId: 'id-1' });
    expect(peer.posts[0]?.headers['idempotency-key']).toBe('exec_1/flow[0]');
    expect(peer.posts[0]?.body).toEqual({
      from: '"A \\"B\\" \\\\ C" <shop@example.com>',
      to: ['ada@example.com'],
      reply_to: 'help@example.com',
      subject: 'Hello',
      text: 'Hello Ada',
      html: '<p>hi</p>',
      attachments: [{ filename: 'a.txt', content: 'AQL/', content_type: 'text/plain' }],
      tags: [
        { name: 'welcome', value: 'true' },
        { name: 'order', value: '7' },
        { name: 'vip', value: 'true' },
      ],
    });
  });

  it.each([
    [{ tags: ['größe'] }, /`tags` has a name or a value that is not 1 to 256 letters/],
    [{ metadata: { note: 'two words' } }, /`metadata` has a name or a value/],
    [{ metadata: { list: ['a'] } }, /`metadata` has a name or a value/],
    [{ tags: ['vip'], metadata: { vip: 1 } }, /a name that is there twice: "vip"/],
  ])('refuses what a tag of the API can not carry, and sends nothing: %j', async (given, message) => {
    peer = await provider();
    const error = await failureOf(thirdpartyMail({ url: peer.url, apiKey: KEY }).send(mailOf(given), sendOptions()));
    expect(error).toMatchObject({ code: 'INVALID_INPUT', retryable: false, message: expect.stringMatching(message) });
    expect(peer.posts).toEqual([]);
  });

  it('needs a key, and says where to give it, at load and at the send', async () => {
    const sender = thirdpartyMail();
    const message = "thirdpartyMail has no key: give `apiKey` in the agent's config, or thirdpartyMail({ apiKey })";
    expect(sender.check?.({})).toEqual([{ path: ['apiKey'], message, notConfigured: true }]);
    expect(sender.check?.({ apiKey: '${env.KEY}' })).toEqual([]);
    expect(sender.check?.({ apiKey: 7 })).toHaveLength(1);
    expect(thirdpartyMail({ apiKey: KEY }).check?.({})).toEqual([]);
    expect(await failureOf(sender.send(mailOf(), sendOptions()))).toMatchObject({ code: 'NOT_CONFIGURED', message });
    expect(thirdpartyMail({ apiKey: KEY }).secrets).toEqual([KEY]);
  });

  it.each([
    [401, 'missing_api_key', 'AGENT_FAILED', false],
    [403, 'validation_error', 'AGENT_FAILED', false],
    [400, 'validation_error', 'INVALID_INPUT', false],
    [413, 'too_large', 'INVALID_INPUT', false],
    [422, 'invalid_from_address', 'INVALID_INPUT', false],
    [404, 'not_found', 'AGENT_FAILED', false],
    [409, 'invalid_idempotent_request', 'AGENT_FAILED', false],
    [409, 'concurrent_idempotent_requests', 'AGENT_FAILED', true],
    [429, 'rate_limit_exceeded', 'AGENT_FAILED', true],
    [500, 'application_error', 'AGENT_FAILED', true],
    [503, 'application_error', 'AGENT_FAILED', true],
  ])('fails for status %i with %s as %s, retryable: %s', async (status, name, code, retryable) => {
    const body = JSON.stringify({ statusCode: status, name, message: `no, ${KEY} ${'x'.repeat(5_000)}` });
    const error = await failWith({ status, body, headers: { 'retry-after': '7' } });
    expect(error).toMatchObject({ code, retryable, details: { status, reason: name, retryAfterMs: 7_000 } });
    expect((error.details as { outcome?: string }).outcome).toBe(status >= 500 ? 'unknown' : undefined);
    expect(error.message).toMatch(new RegExp(`^the mail provider answered ${status}: no, \\*\\*\\* x+$`));
    expect(error.message.length).toBeLessThan(400);
  });

  it('waits until the date in `Retry-After`, counted from the date of the answer', async () => {
    const [date, later] = ['Mon, 02 Mar 2026 10:00:00 GMT', 'Mon, 02 Mar 2026 10:00:09 GMT'];
    const error = await failWith({ status: 429, body: '{}', headers: { date, 'retry-after': later } });
    expect(error.details).toMatchObject({ retryAfterMs: 9_000 });
  });

  it.each([
    [200, '<html>hello</html>'],
    [200, '{"id":7}'],
    [200, 'null'],
    [204, ''],
  ])('does not take the answer %i %j for a sent mail', async (status, body) => {
    const error = await failWith({ status, body });
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: true, details: { status, outcome: 'unknown' } });
    expect(error.message).toMatch(/without the id of a mail; check `url`/);
  });

  it('fails for an error without JSON, and for an endless answer', async () => {
    expect(await failWith({ status: 502, body: '<html>' })).toMatchObject({
      ...{ code: 'AGENT_FAILED', retryable: true, message: 'the mail provider answered 502' },
    });
    await peer.close();
    const error = await failWith({ status: 200, body: 'x'.repeat(1_000_000) });
    expect(error).toMatchObject({ code: 'AGENT_FAILED', details: { outcome: 'unknown' } });
  });

  it('says that the mail may have been sent if the connection broke or took too long, and not if there was none', async () => {
    expect(await failWith('lost')).toMatchObject({
      code: 'AGENT_FAILED',
      retryable: true,
      details: { outcome: 'unknown' },
    });
    await peer.close();
    expect(await failWith('silent', 200)).toMatchObject({
      code: 'TIMEOUT',
      retryable: true,
      details: { outcome: 'unknown' },
    });
    await peer.close();
    const error = await failureOf(thirdpartyMail({ url: peer.url, apiKey: KEY }).send(mailOf(), sendOptions()));
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: true });
    expect(error.details).not.toHaveProperty('outcome');
  });

  it.each([
    [{ apikey: 'x' }, /`apikey` is not an option/],
    [{ apiKey: '' }, /`apiKey` must be text that is not empty/],
    [{ url: 'ftp://example.com' }, /`url` must be an http or https address/],
  ])('checks its options: %j', (options, message) => {
    expect(() => thirdpartyMail(options as never)).toThrow(message);
  });
});
