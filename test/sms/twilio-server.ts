/** A server that speaks the wire format of Twilio's Messages API, on a loopback port. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What a request had. */
export interface TwilioRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly form: Readonly<Record<string, string>>;
}

/** One scripted answer; `drop` closes the connection, `stall` never answers. */
export interface TwilioAnswer {
  readonly status?: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly how?: 'drop' | 'stall';
}

export interface TwilioServer {
  readonly url: string;
  readonly requests: readonly TwilioRequest[];
  close(): Promise<void>;
}

export const ACCOUNT = 'AC0123456789abcdef0123456789abcdef';
export const TOKEN = 'f00dfeedf00dfeedf00dfeedf00dfeed';

const refusal = (status: number, code: number, message: string): TwilioAnswer => ({
  status,
  body: { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status },
});

/**
 * Without a scripted answer it behaves as Twilio: it checks the credentials, the path and the form, and accepts the message.
 *
 * @param script - answers for the first requests
 */
export async function startTwilioServer(script: readonly TwilioAnswer[] = []): Promise<TwilioServer> {
  const requests: TwilioRequest[] = [];
  const answerTo = ({ headers, path, form }: TwilioRequest): TwilioAnswer => {
    const [scheme, credentials = ''] = String(headers.authorization ?? '').split(' ');
    if (scheme !== 'Basic' || Buffer.from(credentials, 'base64').toString() !== `${ACCOUNT}:${TOKEN}`)
      return refusal(401, 20003, 'Authenticate');
    if (path !== `/2010-04-01/Accounts/${ACCOUNT}/Messages.json`)
      return refusal(404, 20404, `The requested resource ${path} was not found`);
    if (!form.To) return refusal(400, 21604, "A 'To' phone number is required.");
    if (!form.From && !form.MessagingServiceSid) return refusal(400, 21603, "A 'From' phone number is required.");
    const sid = `SM${String(requests.length).padStart(32, '0')}`;
    const sent = {
      to: form.To,
      from: form.From ?? null,
      body: form.Body,
      num_segments: '1',
      direction: 'outbound-api',
    };
    return { status: 201, body: { sid, status: 'queued', error_code: null, error_message: null, ...sent } };
  };
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const { method = '', url: path = '', headers } = request;
    const seen = { method, path, headers, form: Object.fromEntries(new URLSearchParams(text)) };
    requests.push(seen);
    const { status = 200, body, headers: extra, how } = script[requests.length - 1] ?? answerTo(seen);
    if (how === 'drop') return void request.socket.destroy();
    if (how === 'stall') return;
    response.writeHead(status, { 'content-type': 'application/json', ...extra });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

export { refusal };
