/** API tokens: made, verified, listed and revoked over the storage (the seed's API token, rules 1 to 4 of its authentication). */

import * as z from 'zod';
import { isOrchestratorError, OrchestratorError } from '../errors.ts';
import type { IdSource } from '../model/id.ts';
import { PLANS, type Plan, type Principal, SCOPES, type Scope, type StoredToken } from '../model/token.ts';
import type { Clock } from '../ports/clock.ts';
import type { TokenStore } from '../ports/token-store.ts';
import { invalidRequest, readShape } from '../read-shape.ts';
import { createTokenValue, isTokenValue, tokenDigest } from './token-value.ts';

export interface NewToken {
  /** A label, 1 to 200 characters. */
  readonly name: string;
  /** At least one; duplicates count once. */
  readonly scopes: readonly Scope[];
  /** Seconds until it expires; without it the token never does. At most 10 years. */
  readonly expiresIn?: number;
  /** Default `free`. */
  readonly plan?: Plan;
}

/** A token as it is made: the only time that its value is shown. */
export interface CreatedToken {
  /** `sk-service-` and 42 characters. Only its SHA-256 is stored. */
  readonly token: string;
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly plan: Plan;
  /** Unix ms; absent when it never expires. */
  readonly expiresAt?: number;
  /** Unix ms. */
  readonly createdAt: number;
}

/** A token in a listing: never its value. */
export interface TokenItem {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly plan: Plan;
  /** The last four characters of its value. */
  readonly last4: string;
  readonly expiresAt?: number;
  /** Unix ms, to the minute; absent until it was used. */
  readonly lastUsed?: number;
  readonly createdAt: number;
}

export interface Tokens {
  /** @throws INVALID_REQUEST with `details.issues` */
  create(token: NewToken): Promise<CreatedToken>;
  /**
   * Makes a token where the store has none. Of several processes that ask for one at once, one alone gets it.
   * @returns undefined when the store has tokens
   * @throws INVALID_REQUEST with `details.issues`
   */
  createFirst(token: NewToken): Promise<CreatedToken | undefined>;
  /** Oldest first. */
  list(): Promise<readonly TokenItem[]>;
  /** The token is deleted; from then on it is refused everywhere. @throws NOT_FOUND */
  revoke(id: string): Promise<{ readonly id: string; readonly revoked: true }>;
  /**
   * Who a presented value speaks for.
   * @throws UNAUTHORIZED for anything that is no token of ours; TOKEN_EXPIRED with `details.expiredAt` (Unix ms)
   */
  verify(value: string): Promise<Principal>;
}

const TEN_YEARS_S = 315_360_000;
const MINUTE_MS = 60_000;
const MAX_SCOPES = 100;
/** The same one in every process: the store takes it once. */
const FIRST_ID = `tok_${'0'.repeat(26)}`;

const NAME_SIZE = 'must have 1 to 200 characters';
const LIFETIME = `must be 1 to ${TEN_YEARS_S} seconds (ten years); leave it out for a token that never expires`;

const newToken = z.strictObject({
  name: z.string().min(1, NAME_SIZE).max(200, NAME_SIZE),
  scopes: z.array(z.enum(SCOPES)).min(1, 'must have at least one scope'),
  expiresIn: z.int().min(1, LIFETIME).max(TEN_YEARS_S, LIFETIME).optional(),
  plan: z.enum(PLANS).optional(),
});

export function createTokens(parts: {
  readonly store: TokenStore;
  readonly clock: Clock;
  readonly ids: IdSource;
  /** The word in the value's prefix. */
  readonly brand: string;
}): Tokens {
  const { store, clock, ids, brand } = parts;
  const make = async (given: NewToken, fixedId?: string): Promise<CreatedToken> => {
    const { name, scopes, expiresIn, plan = 'free' } = checkNewToken(given);
    const createdAt = clock.now();
    const value = createTokenValue(brand);
    const token: StoredToken = {
      id: fixedId ?? ids.id('tok_', createdAt),
      name,
      scopes: [...new Set(scopes)],
      plan,
      digest: tokenDigest(value),
      last4: value.slice(-4),
      createdAt,
      ...(expiresIn === undefined ? {} : { expiresAt: createdAt + expiresIn * 1000 }),
    };
    await store.put(token);
    const { digest: _digest, last4: _last4, ...shown } = token;
    return { token: value, ...shown };
  };

  return {
    create: (given) => make(given),
    async createFirst(given) {
      if ((await store.list()).length > 0) return undefined;
      try {
        return await make(given, FIRST_ID);
      } catch (thrown) {
        // Another process was quicker.
        if (isOrchestratorError(thrown, 'CONFLICT')) return undefined;
        throw thrown;
      }
    },
    async list() {
      return (await store.list()).map(({ digest: _digest, ...item }) => ({ ...item, scopes: [...item.scopes] }));
    },
    async revoke(id) {
      if (!(await store.delete(id))) throw new OrchestratorError('NOT_FOUND', `there is no token ${id}`);
      return { id, revoked: true };
    },
    async verify(value) {
      // A header that is missing comes as no text at all.
      const found =
        typeof value === 'string' && isTokenValue(value, brand) ? store.findByDigest(tokenDigest(value)) : undefined;
      const token = found instanceof Promise ? await found : found;
      if (!token) throw new OrchestratorError('UNAUTHORIZED', 'the API token is not valid');
      const now = clock.now();
      if (token.expiresAt !== undefined && now >= token.expiresAt) {
        throw new OrchestratorError('TOKEN_EXPIRED', 'the API token has expired', {
          details: { expiredAt: token.expiresAt },
        });
      }
      // Once a minute is exact enough for a list, and spares a write a request.
      if (now - (token.lastUsed ?? 0) >= MINUTE_MS) await store.touch(token.id, now - (now % MINUTE_MS));
      return { tokenId: token.id, name: token.name, scopes: token.scopes, plan: token.plan };
    },
  };
}

function checkNewToken(given: NewToken): z.output<typeof newToken> {
  const failure = "the token can't be made";
  // Before each of them is looked at: a list of a hundred thousand would give as many problems.
  if (Array.isArray(given?.scopes) && given.scopes.length > MAX_SCOPES) {
    const message = `has ${given.scopes.length} entries; at most ${MAX_SCOPES} are allowed`;
    throw invalidRequest([{ path: 'scopes', message }], failure);
  }
  return readShape(newToken, given, failure);
}
