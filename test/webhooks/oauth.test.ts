/** Senders with `auth.type: oauth`: their tokens are JWTs of an issuer, for this audience (contract 6). */

import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import type { HttpClient } from '../../src/engine/host/http.port.ts';
import { echo, openWebhooks } from './world.ts';

const ISSUER = 'https://login.example/tenant/';
const KEYS = 'https://login.example/keys';
const AUDIENCE = 'orders';

async function newKey(kid: string) {
  const { privateKey, publicKey } = await generateKeyPair('ES256');
  return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' } };
}
type Key = Awaited<ReturnType<typeof newKey>>;

async function open(named = ISSUER) {
  const first = await newKey('1');
  const issuer = { keys: [first], isAway: false, read: [] as string[] };
  const http: HttpClient = {
    async send({ url }) {
      issuer.read.push(url);
      if (issuer.isAway) throw new OrchestratorError('AGENT_FAILED', 'connection refused', { retryable: true });
      const answer: Record<string, object> = {
        [`${ISSUER}.well-known/openid-configuration`]: { issuer: named, jwks_uri: KEYS },
        [KEYS]: { keys: issuer.keys.map(({ jwk }) => jwk) },
      };
      const body = new TextEncoder().encode(JSON.stringify(answer[url]));
      return { status: 200, headers: {}, body };
    },
  };
  const auth = { type: 'oauth', issuer: ISSUER, audience: AUDIENCE };
  const world = openWebhooks([echo({ auth })], { http });
  const now = () => Math.floor(world.clock.now() / 1000);
  const tokenOf = ({ kid, privateKey }: Key, claims: JWTPayload = {}, alg = 'ES256') =>
    new SignJWT({ iss: ISSUER, aud: AUDIENCE, exp: now() + 60, ...claims })
      .setProtectedHeader({ alg, kid })
      .sign(privateKey);
  const ask = (token: string) => world.post('/webhooks/echo', {}, { authorization: `Bearer ${token}` });
  return { ...world, issuer, first, tokenOf, ask, now };
}

describe('a token of an issuer', () => {
  it('is accepted for this audience; the keys of the issuer are read once', async () => {
    const { ask, tokenOf, first, issuer, now } = await open();
    expect((await ask(await tokenOf(first))).status).toBe(200);
    expect((await ask(await tokenOf(first, { aud: ['other', AUDIENCE], exp: now() - 20 }))).status).toBe(200);
    expect(issuer.read).toEqual([`${ISSUER}.well-known/openid-configuration`, KEYS]);
  });

  it('is refused if it is expired, for another audience, of another issuer, without an end, not yet valid, or altered', async () => {
    const { ask, tokenOf, first, now, runs } = await open();
    const other = await newKey('1');
    const valid = await tokenOf(first);
    const refused = [
      await tokenOf(first, { exp: now() - 31 }),
      await tokenOf(first, { aud: 'other' }),
      await tokenOf(first, { iss: 'https://login.example/other/' }),
      await tokenOf(first, { exp: undefined as never }),
      await tokenOf(first, { nbf: now() + 60 }),
      await tokenOf(other),
      `${valid.slice(0, -6)}AAAAAA`,
      'a.b.c',
      'abc',
      `${Buffer.from('{"alg":"none"}').toString('base64url')}.${valid.split('.')[1]}.`,
      await new SignJWT({ iss: ISSUER, aud: AUDIENCE, exp: now() + 60 })
        .setProtectedHeader({ alg: 'HS256', kid: '1' })
        .sign(new TextEncoder().encode(JSON.stringify(first.jwk))),
    ];
    for (const token of refused) {
      const { status, headers, body } = await ask(token);
      expect([token, status, headers.get('www-authenticate')]).toEqual([token, 401, 'Bearer']);
      expect(body).toEqual({ error: expect.any(String) });
    }
    expect(await runs()).toEqual([]);
  });

  it('with a new key is accepted after the issuer has it; unknown keys make no more than one read in 30 seconds', async () => {
    const { ask, tokenOf, first, issuer, clock } = await open();
    expect((await ask(await tokenOf(first))).status).toBe(200);
    const second = await newKey('2');
    for (let i = 0; i < 5; i++) expect((await ask(await tokenOf(second))).status).toBe(401);
    expect(issuer.read).toHaveLength(2);
    issuer.keys.push(second);
    await clock.advance(30_000);
    expect((await ask(await tokenOf(second))).status).toBe(200);
    expect(issuer.read).toHaveLength(4);
  });

  it('of a key that the issuer has taken back is refused after ten minutes', async () => {
    const { ask, tokenOf, first, issuer, clock } = await open();
    expect((await ask(await tokenOf(first))).status).toBe(200);
    issuer.keys = [await newKey('2')];
    await clock.advance(600_000);
    expect((await ask(await tokenOf(first))).status).toBe(401);
  });

  it('can be checked again later if the issuer does not answer: 503, and the log has the reason', async () => {
    const { ask, tokenOf, first, issuer, log, clock } = await open();
    issuer.isAway = true;
    const { status, headers, body } = await ask(await tokenOf(first));
    expect([status, headers.get('retry-after')]).toEqual([503, '1']);
    expect(JSON.stringify(body)).not.toContain('login.example');
    expect(log).toContainEqual({ level: 'error', message: 'the keys of an issuer could not be read' });
    issuer.isAway = false;
    await clock.advance(5_000);
    expect((await ask(await tokenOf(first))).status).toBe(200);
  });

  it('makes one read of the keys, however many requests wait for it, and none for five seconds after a failure', async () => {
    const { ask, tokenOf, first, issuer, clock } = await open();
    const token = await tokenOf(first);
    const all = await Promise.all(Array.from({ length: 50 }, () => ask(token)));
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200]));
    expect(issuer.read).toHaveLength(2);
    await clock.advance(600_000);
    issuer.isAway = true;
    const late = await tokenOf(first);
    for (let nr = 0; nr < 20; nr++) expect((await ask(late)).status).toBe(503);
    expect(issuer.read).toHaveLength(3);
  });

  it('that is no token, or names another issuer, makes no read', async () => {
    const { ask, tokenOf, first, issuer } = await open();
    expect((await ask('a.b.c')).status).toBe(401);
    expect((await ask(await tokenOf(first, { iss: 'https://evil.example/' }))).status).toBe(401);
    expect(issuer.read).toEqual([]);
  });

  it('is refused if the key of the issuer can not be used', async () => {
    const { ask, issuer, now } = await open();
    const { privateKey } = await generateKeyPair('RS256');
    const weak = { kty: 'RSA', kid: 'weak', alg: 'RS256', n: 'AA', e: 'AQAB' };
    issuer.keys.push({ kid: 'weak', privateKey, jwk: weak } as never);
    const token = await new SignJWT({ iss: ISSUER, aud: AUDIENCE, exp: now() + 60 })
      .setProtectedHeader({ alg: 'RS256', kid: 'weak' })
      .sign(privateKey);
    expect((await ask(token)).status).toBe(401);
  });

  it('is not accepted if the configuration names another issuer', async () => {
    const { ask, tokenOf, first } = await open('https://evil.example/');
    expect((await ask(await tokenOf(first))).status).toBe(503);
  });
});
