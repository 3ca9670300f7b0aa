/** The PDF renderer of Cloudflare, against a local server that speaks its API. */

import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { type CloudflarePdfOptions, cloudflarePdf } from '../../src/entries/pdf.ts';
import { request } from './documents.ts';

const TOKEN = 'cf-token-0123456789';

/** A PDF as Chromium writes it, with empty pages. */
function pdf(count: number): Buffer {
  const parts = [
    '1 0 obj\n<</Type /Catalog\n/Pages 2 0 R\n/Lang (\\(/Pages 1 0 R)>>\nendobj\n',
    `2 0 obj\n<</Type /Pages\n/Count ${count}\n/Kids []>>\nendobj\n`,
  ];
  let text = '%PDF-1.4\n';
  const offsets = parts.map((part) => {
    const at = text.length;
    text += part;
    return at;
  });
  const entries = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  const table = text.length;
  text += `xref\n0 3\n0000000000 65535 f \n${entries}trailer\n<</Size 3\n/Root 1 0 R>>\nstartxref\n${table}\n%%EOF\n`;
  return Buffer.from(text, 'latin1');
}

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: Buffer | string;
}

async function withServer<T>(answer: Answer, use: (options: CloudflarePdfOptions) => Promise<T>) {
  const received: { method?: string; url?: string; headers: IncomingMessage['headers']; body: string }[] = [];
  const server = createServer(async (incoming, response) => {
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part as Buffer);
    const { method, url, headers } = incoming;
    received.push({ ...(method && { method }), ...(url && { url }), headers, body: Buffer.concat(parts).toString() });
    response.writeHead(answer.status ?? 200, answer.headers ?? { 'content-type': 'application/pdf' });
    response.end(answer.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  try {
    return {
      result: await use({ accountId: 'acc1', apiToken: TOKEN, url: `http://127.0.0.1:${port}/client/v4/` }),
      received,
    };
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const failure = (answer: Answer, given = {}) =>
  withServer(answer, (options) =>
    Promise.resolve(cloudflarePdf(options).render(request('<p>x</p>', given))).then(
      () => undefined,
      (error: unknown) => error,
    ),
  ).then(({ result }) => result);

describe('cloudflarePdf', () => {
  it('sends the document with scripts and requests off, and counts the pages', async () => {
    const { result, received } = await withServer({ body: pdf(7) }, async (options) =>
      cloudflarePdf(options).render(request('<p>Zażółć</p>', { pageNumbers: true, timeoutMs: 90_000 })),
    );
    expect(result.pages).toBe(7);
    expect(Buffer.from(result.content)).toEqual(pdf(7));
    const [call] = received;
    expect(received).toHaveLength(1);
    expect(call).toMatchObject({ method: 'POST', url: '/client/v4/accounts/acc1/browser-rendering/pdf?cacheTTL=0' });
    expect(call?.headers).toMatchObject({ authorization: `Bearer ${TOKEN}`, 'idempotency-key': 'key-1' });
    expect(JSON.parse(call?.body ?? '')).toMatchObject({
      html: '<p>Zażółć</p>',
      setJavaScriptEnabled: false,
      rejectRequestPattern: ['^(?!data:)'],
      rejectResourceTypes: expect.arrayContaining(['image', 'script', 'stylesheet', 'font', 'fetch', 'other']),
      gotoOptions: { waitUntil: 'load', timeout: 60_000 },
      pdfOptions: {
        width: '8.26772in',
        height: '11.69291in',
        margin: { top: '0.59055in', bottom: '0.59055in' },
        printBackground: true,
        displayHeaderFooter: true,
        footerTemplate: expect.stringContaining('pageNumber'),
      },
    });
  });

  it.each([
    [401, 'AGENT_FAILED', false, /answered 401: Authentication error for \*\*\*; the token needs the permission/],
    [422, 'INVALID_INPUT', false, /refuses the document \(422\): Authentication error/],
    [429, 'AGENT_FAILED', true, /answered 429/],
    [500, 'AGENT_FAILED', true, /answered 500/],
  ])('status %i is %s, retryable %s, and the token is in no message', async (status, code, retryable, message) => {
    const body = JSON.stringify({
      success: false,
      errors: [{ code: 1, message: `Authentication error for ${TOKEN}` }],
    });
    const error = await failure({ status, body, headers: { 'content-type': 'application/json', 'retry-after': '3' } });
    expect(error).toMatchObject({
      code,
      retryable,
      message: expect.stringMatching(message),
      details: { status, retryAfterMs: 3000 },
    });
    expect(JSON.stringify(error) + String((error as Error).message)).not.toContain(TOKEN);
  });

  it.each([
    [
      'JSON with status 200',
      { headers: { 'content-type': 'application/json' }, body: '{"errors":[{"message":"no browser"}]}' },
      /not a PDF: no browser/,
    ],
    ['bytes that are not a PDF', { body: 'hello' }, /not a PDF of Chromium/],
    ['a PDF that is cut', { body: pdf(3).subarray(0, 120) }, /not a PDF of Chromium/],
  ])('%s fails the agent', async (_what, answer, message) => {
    expect(await failure(answer)).toMatchObject({
      code: 'AGENT_FAILED',
      retryable: false,
      message: expect.stringMatching(message),
    });
  });

  it('more pages than allowed are refused', async () => {
    expect(await failure({ body: pdf(12) }, { maxPages: 10 })).toMatchObject({ code: 'INVALID_INPUT' });
  });

  it.each([
    [{ accountId: '../x', apiToken: TOKEN }, '`accountId`'],
    [{ accountId: 'a', apiToken: '' }, '`apiToken`'],
    [{ accountId: 'a', apiToken: TOKEN, url: 'ftp://x' }, '`url`'],
  ])('options with a wrong value are refused: %o', (options, message) => {
    expect(() => cloudflarePdf(options)).toThrow(message);
  });
});
