/** Checks the tokens of senders with `auth.type: oauth`: JWTs that an issuer has signed for this service. */

import { createLocalJWKSet, decodeJwt, errors, type JSONWebKeySet, jwtVerify } from 'jose';
import { isOrchestratorError, messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { HttpClient } from '../../engine/host/http.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { SenderVerdict } from '../../engine/signing/check-sender.ts';
import type { WebhookAccess } from '../../engine/webhook/webhook.ts';

/** @param header - the value of `Authorization` @throws OVERLOADED if the keys of the issuer can't be read */
export type JwtCheck = (
  access: Extract<WebhookAccess, { type: 'oauth' }>,
  header: string | undefined,
) => Promise<SenderVerdict>;

interface IssuerKeys {
  readonly keyOf: ReturnType<typeof createLocalJWKSet>;
  /** Unix ms */
  readonly readAt: number;
}

/** Only signatures by a private key of the issuer: a shared secret would let every receiver sign. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
const MAX_AGE_MS = 10 * 60_000;
/** A token with an unknown key makes the keys be read again, at most this often. */
const COOLDOWN_MS = 30_000;
/** After a failure, the issuer is left alone for this long. */
const PAUSE_MS = 5_000;
const CLOCK_TOLERANCE_SECONDS = 30;
const MAX_TOKEN_LENGTH = 16_384;
const LIMITS = { timeoutMs: 5_000, maxResponseBytes: 256 * 1024 };
const BEARER = /^Bearer ([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)$/i;

export function createJwtCheck(http: HttpClient, clock: Clock, logger: Logger): JwtCheck {
  const known = new Map<string, IssuerKeys>();
  /** The reads that have not ended, and those that failed less than `PAUSE_MS` ago. */
  const reads = new Map<string, { readonly keys: Promise<IssuerKeys>; failedAt?: number }>();

  const readJson = async (url: string): Promise<unknown> => {
    const { status, body } = await http.send({
      method: 'GET',
      url,
      headers: { accept: 'application/json' },
      ...LIMITS,
    });
    if (status !== 200) throw new Error(`${url} was answered with status ${status}`);
    return JSON.parse(new TextDecoder().decode(body));
  };

  /** Reads once, however many requests ask. */
  const readKeys = (issuer: string): Promise<IssuerKeys> => {
    const before = reads.get(issuer);
    if (before && (before.failedAt === undefined || clock.monotonic() - before.failedAt < PAUSE_MS)) return before.keys;
    const read: { readonly keys: Promise<IssuerKeys>; failedAt?: number } = { keys: readFrom(issuer) };
    reads.set(issuer, read);
    read.keys.then(
      () => reads.delete(issuer),
      () => {
        read.failedAt = clock.monotonic();
      },
    );
    return read.keys;
  };

  const readFrom = async (issuer: string): Promise<IssuerKeys> => {
    try {
      const about = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
      const { issuer: named, jwks_uri: uri } = (await readJson(about)) as { issuer?: unknown; jwks_uri?: unknown };
      if (named !== issuer) throw new Error(`${about} names the issuer ${JSON.stringify(named)}, not ${issuer}`);
      if (typeof uri !== 'string') throw new Error(`${about} has no \`jwks_uri\``);
      const keys = { keyOf: createLocalJWKSet((await readJson(uri)) as JSONWebKeySet), readAt: clock.now() };
      known.set(issuer, keys);
      return keys;
    } catch (cause) {
      logger.error({ err: cause, issuer }, 'the keys of an issuer could not be read');
      const message = 'the keys of the issuer could not be read; try again later';
      throw new OrchestratorError('OVERLOADED', message, { retryable: true, cause });
    }
  };

  return async ({ issuer, audience }, header): Promise<SenderVerdict> => {
    if (header === undefined) return { problem: 'the header `Authorization: Bearer ...` is missing' };
    const [, token] = header.length <= MAX_TOKEN_LENGTH ? (BEARER.exec(header) ?? []) : [];
    if (token === undefined) return { problem: 'the header `Authorization` must have the form `Bearer <JWT>`' };
    const verify = async ({ keyOf }: IssuerKeys) => {
      const currentDate = new Date(clock.now());
      const rules = { issuer, audience, currentDate, algorithms: ALGORITHMS, requiredClaims: ['exp'] };
      await jwtVerify(token, keyOf, { ...rules, clockTolerance: CLOCK_TOLERANCE_SECONDS });
    };
    // The issuer is asked only for a token that names it.
    if (issuerOf(token) !== issuer) return { problem: 'the token is not from the issuer of this webhook' };
    const before = known.get(issuer);
    const isFresh = before !== undefined && clock.now() - before.readAt < MAX_AGE_MS;
    const keys = isFresh ? before : await readKeys(issuer);
    try {
      await verify(keys).catch(async (thrown: unknown) => {
        // The issuer may have a new key.
        if (!(thrown instanceof errors.JWKSNoMatchingKey) || clock.now() - keys.readAt < COOLDOWN_MS) throw thrown;
        await verify(await readKeys(issuer));
      });
      return {};
    } catch (thrown) {
      if (isOrchestratorError(thrown)) throw thrown;
      // Other errors come from a key of the issuer that can't be used, such as one that is too short.
      return { problem: `the token is not valid: ${messageOf(thrown)}` };
    }
  };
}

function issuerOf(token: string): string | undefined {
  try {
    return decodeJwt(token).iss;
  } catch {
    return undefined;
  }
}
