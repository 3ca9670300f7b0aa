/** API tokens over a token store: create, verify, list and revoke (the specification's API tokens, rules 1 to 4 of authentication). */

import * as z from 'zod/mini';
import { isOrchestratorError, OrchestratorError } from '../../base/errors.ts';
import { equalJson, type Json } from '../../base/json/json.ts';
import { isPromise } from '../../base/maybe-promise.ts';
import { once } from '../../base/once.ts';
import { invalidRequest, readShape } from '../../base/read-shape.ts';
import type { IdSource } from '../../execution/id.ts';
import type { Clock } from '../../host/clock.port.ts';
import type { Plan } from '../plan.ts';
import { type Principal, SCOPES, type StoredToken, TICKET_KEY_ID, type TokenScope } from '../token.ts';
import type { TokenStore } from '../token-store.port.ts';
import { planProblem } from './plans.ts';
import { createTokenValue, isTokenValue, tokenDigest } from './token-value.ts';

export interface NewToken {
  /** A label, 1 to 200 characters. */
  readonly name: string;
  /** At least one. Duplicates count once. */
  readonly scopes: readonly TokenScope[];
  /** Seconds until the token expires, at most 10 years. Without it, the token never expires. */
  readonly expiresIn?: number | undefined;
  /** A name, or figures such as `{ requests: 500, window: 60, executions: 10_000 }`. Default: `limits.plan`, which is `free`. */
  readonly plan?: Plan | undefined;
}

/** A token whose value the host has made, for example with `ensemble token new`. */
export interface ImportedToken extends NewToken {
  /** The SHA-256 of the value: 64 hexadecimal characters. */
  readonly hash: string;
}

/** A new token. This is the only time that its value is shown. */
export interface CreatedToken {
  /** `sk-service-` and 42 characters. Only its SHA-256 is stored. */
  readonly token: string;
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly TokenScope[];
  readonly plan: Plan;
  /** Unix ms. Absent if the token never expires. */
  readonly expiresAt?: number;
  /** Unix ms. */
  readonly createdAt: number;
}

/** A token in a listing, without its value. */
export interface TokenItem {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly TokenScope[];
  readonly plan: Plan;
  /** The last four characters of its value. Empty for an imported token. */
  readonly last4: string;
  readonly expiresAt?: number;
  /** Unix ms, to the minute. Absent until the first use. */
  readonly lastUsed?: number;
  readonly createdAt: number;
}

export interface Tokens {
  /** @throws INVALID_REQUEST with `details.issues` */
  create(token: NewToken): Promise<CreatedToken>;
  /**
   * Creates a token if the store has none. If several processes call this at the same time, only one of them receives a token.
   * @returns undefined if the store has tokens
   * @throws INVALID_REQUEST with `details.issues`
   */
  createFirst(token: NewToken): Promise<CreatedToken | undefined>;
  /**
   * Stores a token by the hash of its value, so that a token can be set before the first start. The value never passes. For a hash
   * that is known, the token keeps its id and gets the name, the scopes, the plan and the expiry of this call; `expiresIn` counts
   * from the first import.
   * @throws INVALID_REQUEST with `details.issues`
   */
  import(token: ImportedToken): Promise<TokenItem>;
  /** Oldest first. */
  list(): Promise<readonly TokenItem[]>;
  /** Deletes the token. From then on, every process refuses it. @throws NOT_FOUND */
  revoke(id: string): Promise<{ readonly id: string; readonly revoked: true }>;
  /**
   * The identity of a presented value.
   * @throws UNAUTHORIZED for a value that is not a valid token; TOKEN_EXPIRED with `details.expiredAt` (Unix ms)
   */
  verify(value: string): Promise<Principal>;
}

const TEN_YEARS_S = 315_360_000;
const MINUTE_MS = 60_000;
const MAX_SCOPES = 100;
/** Equal in every process, so that the store accepts only one first token. */
const FIRST_ID = `tok_${'0'.repeat(26)}`;

const NAME_SIZE = 'must have 1 to 200 characters';
const NAME_TEXT = 'must have no control characters, such as a line break';
const HASH = 'must be the SHA-256 of a token value, as 64 hexadecimal characters; `ensemble token new` prints both';
const LIFETIME = `must be 1 to ${TEN_YEARS_S} seconds (ten years); leave it out for a token that never expires`;

const newTokenFields = () => ({
  name: z.string().check(z.minLength(1, NAME_SIZE), z.maxLength(200, NAME_SIZE), z.regex(/^\P{Cc}*$/u, NAME_TEXT)),
  scopes: z.array(z.enum(SCOPES)).check(z.minLength(1, 'must have at least one scope')),
  expiresIn: z.optional(z.int().check(z.gte(1, LIFETIME), z.lte(TEN_YEARS_S, LIFETIME))),
  plan: z.optional(
    z.custom<Plan>((plan) => planProblem(plan) === undefined, { error: ({ input }) => planProblem(input) ?? '' }),
  ),
});
/** The form of a new token. */
export const newToken = once(() => z.strictObject(newTokenFields()));
const importedToken = once(() =>
  z.strictObject({ hash: z.string().check(z.regex(/^[0-9a-fA-F]{64}$/, HASH)), ...newTokenFields() }),
);

export function createTokens(dependencies: {
  readonly store: TokenStore;
  readonly clock: Clock;
  readonly ids: IdSource;
  /** The word in the value's prefix. */
  readonly brand: string;
  /** The plan of a token that is created without one. Default `free`. */
  readonly defaultPlan?: Plan;
}): Tokens {
  const { store, clock, ids, brand, defaultPlan = 'free' } = dependencies;
  const make = async (given: NewToken, fixedId?: string): Promise<CreatedToken> => {
    const checked = readNewToken(newToken(), given);
    const createdAt = clock.now();
    const value = createTokenValue(brand);
    const digest = tokenDigest(value);
    const id = fixedId ?? ids.id('tok_', createdAt);
    const token = toStored(checked, defaultPlan, { id, digest, last4: value.slice(-4), createdAt });
    await store.put(token);
    const { digest: _digest, last4: _last4, ...shown } = token;
    return { token: value, ...shown };
  };

  const listed = async () => (await store.list()).filter(({ id }) => id !== TICKET_KEY_ID);

  const importOne = async (given: ImportedToken): Promise<TokenItem> => {
    const checked = readNewToken(importedToken(), given);
    const digest = checked.hash.toLowerCase();
    for (;;) {
      const known = await store.findByDigest(digest);
      const now = clock.now();
      const token = toStored(
        checked,
        defaultPlan,
        known ?? { id: ids.id('tok_', now), digest, last4: '', createdAt: now },
      );
      if (known && isSameToken(known, token)) return toItem(known);
      // The port has no update. An import that is cut off here is completed by the next one.
      if (known) await store.delete(known.id);
      try {
        await store.put(token);
        return toItem(token);
      } catch (thrown) {
        // Another process imports the same hash: what it has stored is compared again.
        if (!isOrchestratorError(thrown, 'CONFLICT')) throw thrown;
      }
    }
  };

  return {
    create: (given) => make(given),
    import: importOne,
    async createFirst(given) {
      if ((await listed()).length > 0) return undefined;
      try {
        return await make(given, FIRST_ID);
      } catch (thrown) {
        // Another process has created the first token.
        if (isOrchestratorError(thrown, 'CONFLICT')) return undefined;
        throw thrown;
      }
    },
    async list() {
      return (await listed()).map(toItem);
    },
    async revoke(id) {
      if (id === TICKET_KEY_ID || !(await store.delete(id)))
        throw new OrchestratorError('NOT_FOUND', `there is no token ${id}`);
      return { id, revoked: true };
    },
    async verify(value) {
      // The value of a missing header is not text.
      const found =
        typeof value === 'string' && isTokenValue(value, brand) ? store.findByDigest(tokenDigest(value)) : undefined;
      const token = isPromise(found) ? await found : found;
      if (!token) throw new OrchestratorError('UNAUTHORIZED', 'the API token is not valid');
      const now = clock.now();
      if (token.expiresAt !== undefined && now >= token.expiresAt) {
        throw new OrchestratorError('TOKEN_EXPIRED', 'the API token has expired', {
          details: { expiredAt: token.expiresAt },
        });
      }
      // One write a minute is exact enough for a list, and saves a write for each request.
      if (now - (token.lastUsed ?? 0) >= MINUTE_MS)
        await store.touch(token.id, Math.max(token.createdAt, now - (now % MINUTE_MS)));
      return { tokenId: token.id, name: token.name, scopes: token.scopes, plan: token.plan };
    },
  };
}

type Checked = z.output<ReturnType<typeof newToken>>;

/** @param identity - what a change of the token keeps */
function toStored(
  { name, scopes, expiresIn, plan }: Checked,
  defaultPlan: Plan,
  { id, digest, last4, createdAt, lastUsed }: Omit<StoredToken, keyof NewToken>,
): StoredToken {
  return {
    ...{ id, name, scopes: [...new Set(scopes)], plan: plan ?? defaultPlan },
    ...{ digest, last4, createdAt },
    ...(expiresIn !== undefined && { expiresAt: createdAt + expiresIn * 1000 }),
    ...(lastUsed !== undefined && { lastUsed }),
  };
}

function toItem({ digest: _digest, ...item }: StoredToken): TokenItem {
  return { ...item, scopes: [...item.scopes] };
}

function isSameToken(a: StoredToken, b: StoredToken): boolean {
  const sameScopes = a.scopes.length === b.scopes.length && a.scopes.every((scope) => b.scopes.includes(scope));
  return sameScopes && a.name === b.name && equalJson(a.plan as Json, b.plan as Json) && a.expiresAt === b.expiresAt;
}

function readNewToken<S extends z.ZodMiniObject>(schema: S, given: NewToken): z.output<S> {
  const failure = "the token can't be created";
  // Checked before the schema: a list of a hundred thousand scopes would cause as many problems.
  if (Array.isArray(given?.scopes) && given.scopes.length > MAX_SCOPES) {
    const message = `has ${given.scopes.length} entries; at most ${MAX_SCOPES} are allowed`;
    throw invalidRequest([{ path: 'scopes', message }], failure);
  }
  return readShape(schema, given, failure);
}
