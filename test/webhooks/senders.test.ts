/** Who may start an execution by a webhook: credentials, and signatures that the senders' own packages make (contract 6). */

import { sign as signGithub } from '@octokit/webhooks-methods';
import { type ApiVersion, shopifyApi } from '@shopify/shopify-api';
import '@shopify/shopify-api/adapters/node';
import { createHash, createHmac } from 'node:crypto';
import { verifySlackRequest } from '@slack/bolt';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { Webhook as SvixWebhook } from 'svix';
import twilio from 'twilio';
import { describe, expect, it } from 'vitest';
import { signAsSender } from '../../src/engine/signing/sign-as-sender.ts';
import { signPayload, verifySignature } from '../../src/engine/signing/sign-payload.ts';
import { signRequest } from '../../src/engine/signing/sign-request.ts';
import type { SignatureScheme, WebhookAccess } from '../../src/engine/webhook/webhook.ts';
import { echo, openWebhooks } from './world.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const BODY = '{"id":"evt_1","text":"Käse 🧀","nested":{"a":[1,2]}}\r\n';
const hex = (text: string, secret = SECRET) => createHmac('sha256', secret).update(text).digest('hex');
const at = (now: number) => String(Math.floor(now / 1000));
const own = (now: number, secret = SECRET, body = BODY) => ({
  'x-webhook-signature': `sha256=${hex(`${at(now)}.${body}`, secret)}`,
  'x-webhook-timestamp': at(now),
});

type Headers = Record<string, string>;
interface Sender {
  readonly scheme: string;
  readonly sign: (now: number) => Headers | Promise<Headers>;
  readonly type?: string;
  readonly body?: string;
  readonly path?: string;
  /** A sender that signs the time can't be repeated later. */
  readonly isTimed?: boolean;
}

const FORM = 'CallSid=CA1&From=%2B41791234567&Body=a+b&Body=A';
const TWILIO_URL = 'https://localhost/webhooks/echo';
const HASH = createHash('sha256').update(BODY).digest('hex');

function validateShopify(signed: Headers) {
  const about = {
    topic: 'orders/create',
    'shop-domain': 'a.myshopify.com',
    'api-version': '2026-01',
    'webhook-id': '1',
  };
  const headers = Object.fromEntries(Object.entries(about).map(([name, value]) => [`x-shopify-${name}`, value]));
  const { webhooks } = shopifyApi({
    ...{
      apiKey: 'k',
      apiSecretKey: SECRET,
      hostName: 'localhost',
      isEmbeddedApp: false,
      apiVersion: '2026-01' as ApiVersion,
    },
    logger: { log: () => {} },
  });
  const rawRequest = { method: 'POST', url: '/', headers: { ...headers, ...signed } };
  return webhooks.validate({ rawBody: BODY, rawRequest });
}

const SENDERS: Readonly<Record<string, Sender>> = {
  'our own tool calls and deliveries': {
    scheme: 'service',
    sign: (now) => ({ ...signRequest(BODY, { secrets: [SECRET], brand: 'service', now }) }),
    isTimed: true,
  },
  'the headers of the specification': { scheme: 'service', sign: own, isTimed: true },
  '@octokit/webhooks-methods': {
    scheme: 'github',
    sign: async () => ({ 'x-hub-signature-256': await signGithub(SECRET, BODY) }),
  },
  stripe: {
    scheme: 'stripe',
    sign: (now) => ({
      'stripe-signature': new Stripe('sk_test_x').webhooks.generateTestHeaderString({
        ...{ payload: BODY, secret: SECRET, timestamp: Math.floor(now / 1000) },
      }),
    }),
    isTimed: true,
  },
  'Slack, as @slack/bolt verifies it': {
    scheme: 'slack',
    sign(now) {
      const headers = {
        'x-slack-signature': `v0=${hex(`v0:${at(now)}:${BODY}`)}`,
        'x-slack-request-timestamp': Number(at(now)),
      };
      verifySlackRequest({ signingSecret: SECRET, body: BODY, headers, nowMilliseconds: now });
      return { ...headers, 'x-slack-request-timestamp': at(now) };
    },
    isTimed: true,
  },
  'Shopify, as @shopify/shopify-api verifies it': {
    scheme: 'shopify',
    async sign() {
      const headers = { 'x-shopify-hmac-sha256': createHmac('sha256', SECRET).update(BODY).digest('base64') };
      expect((await validateShopify(headers)).valid).toBe(true);
      return headers;
    },
  },
  'twilio, a form': {
    scheme: 'twilio',
    sign: () => ({
      'x-twilio-signature': twilio.getExpectedTwilioSignature(SECRET, TWILIO_URL, {
        ...{ CallSid: 'CA1', From: '+41791234567', Body: ['a b', 'A'] },
      }),
    }),
    type: 'application/x-www-form-urlencoded',
    body: FORM,
  },
  'twilio, JSON': {
    scheme: 'twilio',
    path: `/webhooks/echo?bodySHA256=${HASH}`,
    sign: () => ({
      'x-twilio-signature': twilio.getExpectedTwilioSignature(SECRET, `${TWILIO_URL}?bodySHA256=${HASH}`, {}),
    }),
  },
  standardwebhooks: {
    scheme: 'standard',
    sign: (now) => ({
      'webhook-id': 'msg_1',
      'webhook-timestamp': at(now),
      'webhook-signature': new StandardWebhook(SECRET).sign('msg_1', new Date(now), BODY),
    }),
    isTimed: true,
  },
  svix: {
    scheme: 'standard',
    sign: (now) => ({
      'svix-id': 'msg_1',
      'svix-timestamp': at(now),
      'svix-signature': new SvixWebhook(SECRET).sign('msg_1', new Date(now), BODY),
    }),
    isTimed: true,
  },
};

function open(scheme: string, secret: string | readonly string[] = SECRET) {
  const trigger = { auth: { type: 'signature', scheme, secret }, accept: ['json', 'form'] };
  const world = openWebhooks([echo(trigger)]);
  const send = (headers: Headers, { body = BODY, type = 'application/json', path = '/webhooks/echo' } = {}) =>
    world.call(path, {
      method: 'POST',
      headers: { 'content-type': type, host: 'localhost', ...headers },
      body: body as BodyInit,
    });
  return { ...world, send };
}

describe.each(Object.entries(SENDERS))('a request of %s', (_name, sender) => {
  const { scheme, sign, isTimed, body = BODY } = sender;

  it('is accepted', async () => {
    const { send, clock } = open(scheme);
    expect((await send(await sign(clock.now()), sender)).status).toBe(200);
  });

  it('is refused with one byte changed, with another secret, without a header, and with two values of one', async () => {
    const { send, clock, runs } = open(scheme);
    const headers = await sign(clock.now());
    const refused = [
      await send(headers, { ...sender, body: body.replace('1', '2') }),
      await open(scheme, `${SECRET.slice(0, -4)}AAAA`).send(headers, sender),
    ];
    for (const [name, value] of Object.entries(headers)) {
      const { [name]: _dropped, ...rest } = headers;
      refused.push(await send(rest, sender), await send({ ...rest, [name]: `${value}, ${value}` }, sender));
    }
    for (const { status, body: answer } of refused)
      expect([status, answer]).toEqual([401, { error: expect.any(String) }]);
    expect(await runs()).toEqual([]);
  });

  it('runs once, however often it is sent: each answer names the first execution', async () => {
    const { send, clock, runs } = open(scheme);
    const headers = await sign(clock.now());
    const answers = await Promise.all(Array.from({ length: 5 }, () => send(headers, sender)));
    expect(new Set(answers.map(({ body: answer }) => answer.executionId)).size).toBe(1);
    expect(await runs()).toHaveLength(1);
  });

  it('is accepted by either of two secrets during a rotation', async () => {
    const { send, clock } = open(scheme, [`${SECRET.slice(0, -4)}AAAA`, SECRET]);
    expect((await send(await sign(clock.now()), sender)).status).toBe(200);
  });

  if (isTimed) {
    it('is accepted 300 seconds before and after its time, and refused after 301', async () => {
      const { send, clock } = open(scheme);
      for (const [seconds, status] of [
        [-300, 200],
        [300, 200],
        [-301, 401],
        [301, 401],
      ] as const) {
        // Another body each time would be another request, so only the status counts.
        expect([seconds, (await send(await sign(clock.now() + seconds * 1000), sender)).status]).toEqual([
          seconds,
          status,
        ]);
      }
    });
  }
});

describe('a signature of the specification', () => {
  it.each([
    ['sha1=', (proof: string) => `sha1=${proof}`],
    ['SHA256=', (proof: string) => `SHA256=${proof}`],
    ['no prefix', (proof: string) => proof],
    ['63 digits', (proof: string) => `sha256=${proof.slice(1)}`],
    ['65 digits', (proof: string) => `sha256=${proof}0`],
    ['two', (proof: string) => `sha256=${proof}${proof}`],
    ['no digits', () => 'sha256='],
    ['none', () => 'none'],
    ['a space', (proof: string) => `sha256= ${proof.slice(1)}`],
  ])('with %s is refused', async (_what, write) => {
    const { send, clock } = open('service');
    const headers = own(clock.now());
    const proof = headers['x-webhook-signature'].slice('sha256='.length);
    expect((await send({ ...headers, 'x-webhook-signature': write(proof) })).status).toBe(401);
  });

  it('names its request by what is signed: without one of two signatures, it does not run a second time', async () => {
    const other = 'the older secret';
    const { send, clock } = open('service', [SECRET, other]);
    const one = own(clock.now());
    const two = own(clock.now(), other);
    const both = `${one['x-webhook-signature']}, ${two['x-webhook-signature']}`;
    const ids: string[] = [];
    for (const signature of [both, one['x-webhook-signature'], two['x-webhook-signature']]) {
      const { status, body } = await send({ ...one, 'x-webhook-signature': signature });
      expect(status).toBe(200);
      ids.push(body.executionId);
    }
    expect(new Set(ids).size).toBe(1);
  });

  it('may be in upper case: the bytes are compared', async () => {
    const { send, clock } = open('service');
    const headers = own(clock.now());
    const proof = headers['x-webhook-signature'].slice('sha256='.length).toUpperCase();
    expect((await send({ ...headers, 'x-webhook-signature': `sha256=${proof}` })).status).toBe(200);
  });

  it.each(['1e9', '0x66', '-1', '1.5', '', ' ', '999999999999', 'NaN'])('with the time %j is refused', async (time) => {
    const { send } = open('service');
    const headers = { 'x-webhook-signature': `sha256=${hex(`${time}.${BODY}`)}`, 'x-webhook-timestamp': time };
    expect((await send(headers)).status).toBe(401);
  });

  it('is over the bytes: a mark of the byte order and bytes that are no UTF-8 count', async () => {
    const { call, clock } = open('service');
    for (const bytes of [
      [0xef, 0xbb, 0xbf, 0x7b, 0x7d],
      [0xff, 0xfe, 0x7b],
    ]) {
      const body = new Uint8Array(bytes);
      const time = at(clock.now());
      const proof = createHmac('sha256', SECRET).update(`${time}.`).update(body).digest('hex');
      const headers = {
        'content-type': 'application/json',
        'x-webhook-timestamp': time,
        'x-webhook-signature': `sha256=${proof}`,
      };
      const { status } = await call('/webhooks/echo', { method: 'POST', headers, body });
      expect(status).toBe(bytes[0] === 0xef ? 200 : 400);
    }
  });

  it('of a large body is checked as well', async () => {
    const body = JSON.stringify({ text: 'ä'.repeat(200_000) });
    const { send, clock } = open('service');
    const headers = own(clock.now(), SECRET, body);
    expect((await send(headers, { body })).status).toBe(200);
    expect((await send(headers, { body: body.replace('ä', 'ö') })).status).toBe(401);
  });

  it('beside a second one in the headers of deliveries is refused', async () => {
    const { send, clock } = open('service');
    const two = {
      ...own(clock.now()),
      ...signRequest('{}', { secrets: [SECRET], brand: 'service', now: clock.now() }),
    };
    expect((await send(two)).body).toEqual({ error: 'the request has two signatures' });
  });
});

describe('credentials', () => {
  const withAuth = (auth: object) => {
    const { post } = openWebhooks([echo({ auth })]);
    return async (authorization?: string) => {
      const { status, headers } = await post(
        '/webhooks/echo',
        {},
        authorization === undefined ? {} : { authorization },
      );
      return [status, headers.get('www-authenticate')];
    };
  };

  it('of type bearer are compared whole', async () => {
    const ask = withAuth({ type: 'bearer', secret: ['old-one', 'the-secret'] });
    for (const right of ['Bearer the-secret', 'bearer old-one', 'BEARER the-secret'])
      expect((await ask(right))[0]).toBe(200);
    for (const wrong of [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      'the-secret',
      'Bearer  the-secret',
      'Bearer the-secre',
      'Bearer the-secret2',
      'Basic the-secret',
      `Bearer ${'x'.repeat(1_000_000)}`,
    ])
      expect(await ask(wrong)).toEqual([401, 'Bearer']);
  });

  it('of type basic are a user and a password, which may contain a colon', async () => {
    const ask = withAuth({ type: 'basic', secret: 'zoë:pass:wörd' });
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
    expect((await ask(basic('zoë:pass:wörd')))[0]).toBe(200);
    for (const wrong of [
      basic('zoë:pass'),
      basic('zoë'),
      basic(':pass:wörd'),
      basic(''),
      'Basic ',
      'Basic !!',
      'Basic /w==',
      'zoë:pass:wörd',
    ])
      expect([wrong, ...(await ask(wrong))]).toEqual([wrong, 401, 'Basic realm="webhook", charset="UTF-8"']);
  });

  it('that are missing or wrong leave the body unread', async () => {
    const { handler } = openWebhooks([echo({ auth: { type: 'bearer', secret: 's' } })]);
    let pulled = 0;
    const body = new ReadableStream(
      {
        pull() {
          pulled += 1;
        },
      },
      { highWaterMark: 0 },
    );
    const request = new Request('http://localhost/webhooks/echo', {
      method: 'POST',
      body,
      duplex: 'half',
    } as RequestInit);
    expect([(await handler.fetch(request)).status, pulled]).toEqual([401, 0]);
  });
});

describe('`signPayload` and `verifySignature`', () => {
  it('sign what a webhook accepts, and verify it in a route of the app', async () => {
    const { send, clock } = open('service');
    const headers = signPayload({ secret: SECRET, body: BODY, now: clock.now() });
    expect((await send(headers)).status).toBe(200);
    const given = { secret: ['other', SECRET], headers, body: BODY, now: clock.now() };
    expect(await verifySignature(given)).toBe(true);
    expect(
      await verifySignature({ ...given, headers: new Headers(headers), body: new TextEncoder().encode(BODY) }),
    ).toBe(true);
    expect(await verifySignature({ ...given, body: `${BODY} ` })).toBe(false);
    expect(await verifySignature({ ...given, secret: 'other' })).toBe(false);
    expect(await verifySignature({ ...given, headers: {} })).toBe(false);
    expect(await verifySignature({ ...given, now: clock.now() + 11_000, toleranceSeconds: 10 })).toBe(false);
    for (const secret of ['', [], [SECRET, '']])
      await expect(verifySignature({ ...given, secret })).rejects.toThrow(TypeError);
    await expect(verifySignature({ ...given, body: { a: 1 } as never })).rejects.toThrow('a body that was parsed');
    await expect(verifySignature({ ...given, scheme: 'hub' as never })).rejects.toThrow(
      'must be one of service, github',
    );
    expect(() => signPayload({ secret: '', body: BODY })).toThrow('must be a text that is not empty');
    expect(() => signPayload({ secret: SECRET, body: {} as never })).toThrow('must be the text that is sent');
  });
});

describe('twilio: the port', () => {
  const urls = ['https://shop.example', 'https://shop.example:443', 'https://shop.example:8443', 'http://shop.example'];
  const more = [
    'http://shop.example:80',
    'http://shop.example:3000',
    'https://[::1]',
    'https://[::1]:443',
    'https://[::1]:9',
  ];
  it.each([...urls, ...more])(
    'a request to %s is accepted exactly if the helper of Twilio accepts it',
    async (called) => {
      const fields = { CallSid: 'CA1' };
      for (const signed of [...urls, ...more]) {
        const signature = twilio.getExpectedTwilioSignature(SECRET, `${signed}/hook?a=1`, fields);
        const expected = twilio.validateRequest(SECRET, signature, `${called}/hook?a=1`, fields);
        const headers = { 'x-twilio-signature': signature, 'content-type': 'application/x-www-form-urlencoded' };
        const url = `${called}/hook?a=1`;
        const given = await verifySignature({ secret: SECRET, scheme: 'twilio', headers, body: 'CallSid=CA1', url });
        expect([signed, given]).toEqual([signed, expected]);
      }
    },
  );
});

describe('`signAsSender`, with which `ensemble webhook send` signs', () => {
  it.each([
    ...['service', 'github', 'stripe', 'slack', 'shopify', 'twilio', 'standard'].map((scheme) => ({
      type: 'signature' as const,
      scheme: scheme as SignatureScheme,
    })),
    { type: 'bearer' as const },
    { type: 'basic' as const },
  ])('makes what the trigger accepts: %j', async (auth) => {
    const secret = auth.type === 'basic' ? 'user:pässword' : SECRET;
    const { call, clock } = openWebhooks([echo({ auth: { ...auth, secret }, accept: ['json', 'form'] })]);
    for (const [body, contentType] of [
      [BODY, 'application/json'],
      [FORM, 'application/x-www-form-urlencoded'],
    ] as const) {
      const access = { ...auth, secrets: [secret, 'other'] } as WebhookAccess;
      const request = { url: 'http://localhost/webhooks/echo', body, contentType, now: clock.now(), id: 'msg_1' };
      const sent = await signAsSender(access, request);
      const { pathname, search } = new URL(sent?.url as string);
      const headers = { host: 'localhost', 'content-type': contentType, ...sent?.headers };
      const { status } = await call(pathname + search, { method: 'POST', headers, body });
      expect(status).toBe(auth.type === 'signature' && auth.scheme === 'standard' && body === FORM ? 422 : 200);
    }
  });
});

describe('10,000 requests of each scheme, half of them altered', () => {
  it.each(['service', 'github', 'stripe', 'slack', 'shopify', 'standard'] as const)(
    '%s: no altered one is accepted, and no other is refused',
    async (scheme) => {
      // A generator with a fixed seed, so that a failure comes again.
      let state = 20_261_125;
      const below = (limit: number) => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        return state % limit;
      };
      const access = { type: 'signature', scheme, secrets: ['other', SECRET] } as const;
      const own = { ...access, secrets: [SECRET] };
      const altered = (text: string) => {
        const at = below(text.length);
        const code = text.charCodeAt(at);
        return text.slice(0, at) + String.fromCharCode(code === 0x30 ? 0x31 : 0x30) + text.slice(at + 1);
      };
      for (let i = 0; i < 10_000; i++) {
        const body = JSON.stringify({ n: i, text: 'x'.repeat(below(40)) });
        const now = 1_700_000_000_000 + below(1_000_000) * 1000;
        const request = { url: 'http://localhost/', body, contentType: 'application/json', now, id: `msg_${i}` };
        const headers = { ...(await signAsSender(own, request))?.headers };
        const given = { secret: access.secrets, scheme, now };
        if (i % 2 === 0) {
          expect(await verifySignature({ ...given, headers, body })).toBe(true);
          continue;
        }
        const names = Object.keys(headers);
        const name = names[below(names.length)] as string;
        const isBody = below(3) === 0;
        // The last character of base64 has bits that mean nothing.
        const value = isBody
          ? ''
          : altered((headers[name] as string).slice(0, -2)) + (headers[name] as string).slice(-2);
        const sent = isBody ? headers : { ...headers, [name]: value };
        const isAccepted = await verifySignature({ ...given, headers: sent, body: isBody ? altered(body) : body });
        expect(isAccepted && [name, headers[name], value]).toBe(false);
      }
    },
  );
});
