/** The SMS sender for Twilio: what it sends to a real server, and how it reads each answer. */

import { afterEach, describe, expect, it } from 'vitest';
import { type SmsMessage, type TwilioOptions, twilioSms } from '../../src/entries/twilio.ts';
import { createOrchestrator, fetchHttp, isOrchestratorError } from '../../src/index.ts';
import { ACCOUNT, refusal, startTwilioServer, TOKEN, type TwilioAnswer, type TwilioServer } from './twilio-server.ts';

const open: TwilioServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

const http = fetchHttp({ allow: ['127.0.0.1'] });

async function serve(script: readonly TwilioAnswer[] = [], options: Partial<TwilioOptions> = {}) {
  const server = await startTwilioServer(script);
  open.push(server);
  const sender = twilioSms({
    accountSid: ACCOUNT,
    authToken: TOKEN,
    from: '+15005550006',
    url: server.url,
    ...options,
  });
  const send = (message: Partial<SmsMessage> = {}, signal = new AbortController().signal, timeoutMs = 20_000) =>
    sender.send(
      { to: '+48123456789', body: 'Hi', ...message },
      { http, idempotencyKey: 'key-1', timeoutMs, signal },
    ) as Promise<{ messageId: string }>;
  return { server, send };
}

async function failureOf(script: readonly TwilioAnswer[], options: Partial<TwilioOptions> = {}, timeoutMs = 20_000) {
  const { send } = await serve(script, options);
  try {
    await send({}, undefined, timeoutMs);
  } catch (error) {
    if (isOrchestratorError(error)) return error;
    throw error;
  }
  throw new Error('the message was sent');
}

describe('a message', () => {
  it('is a form with basic auth, and gives the SID', async () => {
    const { server, send } = await serve();
    const body = 'Zażółć & +1 = 100% 😀\nsecond line';
    expect(await send({ body })).toEqual({ messageId: `SM${'1'.padStart(32, '0')}` });
    expect(server.requests).toMatchObject([
      {
        method: 'POST',
        path: `/2010-04-01/Accounts/${ACCOUNT}/Messages.json`,
        headers: { 'content-type': 'application/x-www-form-urlencoded', 'idempotency-key': 'key-1' },
        form: { To: '+48123456789', From: '+15005550006', Body: body },
      },
    ]);
  });

  it('has the `from` of the message, which may be a messaging service', async () => {
    const service = 'MG0123456789abcdef0123456789abcdef';
    const { server, send } = await serve([], { from: service });
    await send();
    await send({ from: 'Shop' });
    await send({ from: 'MGM' });
    expect(server.requests.map(({ form: { From, MessagingServiceSid } }) => [From, MessagingServiceSid])).toEqual([
      [undefined, service],
      ['Shop', undefined],
      ['MGM', undefined],
    ]);
  });

  it('without any `from` is refused before the call', async () => {
    const server = await startTwilioServer();
    open.push(server);
    const sender = twilioSms({ accountSid: ACCOUNT, authToken: TOKEN, url: server.url });
    const options = { http, idempotencyKey: 'k', timeoutMs: 1000, signal: new AbortController().signal };
    await expect(sender.send({ to: '+48123456789', body: 'x' }, options)).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining('`from` of twilioSms'),
    });
    expect(server.requests).toEqual([]);
  });

  it('ends with the reason of its signal', async () => {
    const { send } = await serve([{ how: 'stall' }]);
    const controller = new AbortController();
    const sent = send({}, controller.signal);
    controller.abort(new Error('stop'));
    await expect(sent).rejects.toThrow('stop');
  });
});

describe('failures', () => {
  const wait = { 'retry-after': '7' };
  it.each<[string, TwilioAnswer, object]>([
    [
      'a refused message',
      refusal(400, 21211, "The 'To' number is not a valid phone number."),
      { code: 'INVALID_INPUT', retryable: false, details: { status: 400, code: 21211 } },
    ],
    ['wrong credentials', refusal(401, 20003, 'Authenticate'), { code: 'AGENT_FAILED', retryable: false }],
    ['no right', refusal(403, 20403, 'Forbidden'), { code: 'AGENT_FAILED', retryable: false }],
    ['an unknown account', refusal(404, 20404, 'Not found'), { code: 'AGENT_FAILED', retryable: false }],
    [
      'too many requests',
      { ...refusal(429, 20429, 'Too Many Requests'), headers: wait },
      { code: 'AGENT_FAILED', retryable: true, details: { status: 429, code: 20429, retryAfterMs: 7000 } },
    ],
    [
      'a broken server',
      { status: 503, body: 'upstream' },
      { code: 'AGENT_FAILED', retryable: true, details: { status: 503, outcome: 'unknown' } },
    ],
    ['a redirect', { status: 302, headers: { location: '/x' } }, { code: 'AGENT_FAILED', retryable: false }],
    [
      'a message that can not be sent',
      { status: 201, body: { sid: 'SM1', status: 'failed', error_code: 30007, error_message: 'Filtered' } },
      { code: 'AGENT_FAILED', retryable: false, details: { status: 201, code: 30007 } },
    ],
    [
      'a dropped connection',
      { how: 'drop' },
      { code: 'AGENT_FAILED', retryable: true, details: { outcome: 'unknown' } },
    ],
    [
      'an answer that is too large',
      { status: 201, body: 'x'.repeat(100_000) },
      { code: 'AGENT_FAILED', retryable: false, details: { outcome: 'unknown' } },
    ],
  ])('%s', async (_why, answer, expected) => {
    expect(await failureOf([answer])).toMatchObject(expected);
  });

  it.each([
    ['not JSON', '<html>'],
    ['a list', []],
    ['null', null],
    ['no sid', { status: 'queued' }],
    ['a sid that is a number', { sid: 5 }],
    ['a sid with other characters', { sid: '../SM1' }],
  ])('an accepted message whose answer has %s is not sent again', async (_why, body) => {
    const error = await failureOf([{ status: 201, body: typeof body === 'string' ? body : JSON.stringify(body) }]);
    expect(error).toMatchObject({
      code: 'AGENT_FAILED',
      retryable: false,
      details: { status: 201, outcome: 'unknown' },
    });
  });

  it('a call that takes too long may have sent the message', async () => {
    const error = await failureOf([{ how: 'stall' }], {}, 300);
    expect(error).toMatchObject({ code: 'TIMEOUT', retryable: true, details: { outcome: 'unknown' } });
  });

  it("has Twilio's words, without what was sent as a secret, and not without end", async () => {
    const basic = Buffer.from(`${ACCOUNT}:${TOKEN}`).toString('base64');
    const message = `Bad token ${TOKEN}, header ${basic} ${'x'.repeat(2000)}`;
    const error = await failureOf([refusal(400, 1, message)]);
    expect(error.message).toContain('Bad token ***, header *** xxx');
    expect(error.message.length).toBeLessThan(600);
    expect(JSON.stringify([error.message, error.details, error.stack])).not.toContain(TOKEN);
  });
});

it('the token is never the id of a message, whatever the server answers', async () => {
  const error = await failureOf([{ status: 201, body: { sid: TOKEN } }]);
  expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: false, details: { outcome: 'unknown' } });
  expect(error.message).not.toContain(TOKEN);
});

describe('options', () => {
  it.each<[Partial<Record<keyof TwilioOptions, unknown>>, string]>([
    [{ accountSid: 'AC1' }, '`accountSid` must be the SID'],
    [{ accountSid: undefined }, '`accountSid` must be the SID'],
    [{ authToken: '' }, '`authToken` must be'],
    [{ authToken: undefined }, '`authToken` must be'],
    [{ from: '' }, '`from` must be'],
    [{ url: 'ftp://x' }, '`url` must be'],
    [{ url: 'nothing' }, '`url` must be'],
  ])('refuses %j', (given, message) => {
    const options = { accountSid: ACCOUNT, authToken: TOKEN, ...given } as TwilioOptions;
    expect(() => twilioSms(options)).toThrow(message);
    expect(() => twilioSms(options)).toThrow(TypeError);
  });

  it('the token is not a member of the sender', () => {
    const sender = twilioSms({ accountSid: ACCOUNT, authToken: TOKEN });
    expect(Object.keys(sender)).toEqual(['send']);
  });
});

describe('in an orchestrator', () => {
  it('sends through the option `http`, which refuses private addresses', async () => {
    const server = await startTwilioServer();
    open.push(server);
    const sms = { twilio: twilioSms({ accountSid: ACCOUNT, authToken: TOKEN, from: 'Shop', url: server.url }) };
    const ensembles = [
      'name: e\nflow:\n  - { agent: a, operation: sms, config: { to: "${input.to}", body: "Hi {{ name }}" } }\noutputs: { a: "${a.output}" }',
    ];
    const orchestrator = createOrchestrator({ ensembles, sms, http });
    const { output } = await orchestrator.execute('e', { to: '+48123456789', name: 'Ada' });
    expect(output).toEqual({ a: { messageId: `SM${'1'.padStart(32, '0')}`, success: true, provider: 'twilio' } });
    expect(server.requests.map(({ form }) => form.Body)).toEqual(['Hi Ada']);
    await orchestrator.close();

    const guarded = createOrchestrator({ ensembles, sms });
    const { error } = await guarded.execute('e', { to: '+48123456789', name: 'Ada' });
    expect([error?.code, server.requests.length]).toEqual(['INVALID_REQUEST', 1]);
    expect(JSON.stringify(error)).not.toContain(TOKEN);
    await guarded.close();
  });
});
