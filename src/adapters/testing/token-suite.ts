/** The conformance suite of the token port: what each `TokenStore` must do, for any test runner with `describe` and `it`. */

import type { StoredToken } from '../../engine/model/token.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { TokenStore } from '../../engine/ports/token-store.ts';
import type { SuiteRunner } from './http-suite.ts';
import { frozen, refusesAsConflict, same } from './storage-suite/context.ts';

/** What holds the store under test; a whole `Storage` is one too. */
export interface TokenHolder {
  readonly tokens: TokenStore;
  close?(): MaybePromise<void>;
}

export interface TokenSuiteOptions {
  readonly name: string;
  /** A store that is fresh and empty; called once a test, and closed behind it. */
  readonly create: () => MaybePromise<TokenHolder>;
  readonly test: SuiteRunner;
}

/** Unix ms at which everything in the suite happens. */
const T0 = Date.UTC(2026, 0, 1);

/**
 * Declares the suite's tests: one for each promise of the `TokenStore` port. They take answers at once and promises alike.
 *
 * @param options - see {@link TokenSuiteOptions}
 * @example
 * ```ts no-run
 * import { memoryStorage } from 'ensemble-orchestrator';
 * import { tokenSuite } from 'ensemble-orchestrator/testing';
 * import { describe, it } from 'vitest';
 *
 * tokenSuite({ name: 'memoryStorage', create: () => memoryStorage(), test: { describe, it } });
 * ```
 */
export function tokenSuite({ name, create, test }: TokenSuiteOptions): void {
  const it: TokenCase = (title, body) => {
    test.it(title, async () => {
      const holder = await create();
      try {
        await body(holder.tokens);
      } finally {
        await holder.close?.();
      }
    });
  };
  test.describe(`${name} as a TokenStore`, () => {
    findingCases(it);
    changingCases(it);
  });
}

type TokenCase = (name: string, body: (tokens: TokenStore) => Promise<void>) => void;

/** Tokens of greater numbers are newer. */
function token(number: number, fields: Partial<StoredToken> = {}): StoredToken {
  return {
    id: `tok_${String(number).padStart(26, '0')}`,
    name: `token ${number}`,
    scopes: ['read:ensembles', 'execute:ensembles'],
    plan: 'free',
    digest: number.toString(16).padStart(64, '0'),
    last4: 'aB3x',
    createdAt: T0 + number,
    ...fields,
  };
}

function findingCases(it: TokenCase): void {
  it('findByDigest: unknown ones give undefined', async (tokens) => {
    await tokens.put(token(1));
    const { digest, id } = token(1);
    const others = [token(2).digest, '', id, 'constructor', '%', digest.slice(1), `${digest}0`, `${digest}\u0000`];
    for (const other of others) same(await tokens.findByDigest(other), undefined, `digest ${JSON.stringify(other)}`);
  });

  it('put: the token is found by its digest when it returns, as it was handed in', async (tokens) => {
    const full = frozen(
      token(2, { plan: 'enterprise', scopes: ['admin'], expiresAt: T0 + 5000, lastUsed: T0 + 60_000 }),
    );
    for (const stored of [frozen(token(1)), full]) {
      await tokens.put(stored);
      same(await tokens.findByDigest(stored.digest), stored, 'token');
    }
  });

  it('put: an absent expiry and an absent last use stay absent', async (tokens) => {
    await tokens.put(token(1));
    const found = await tokens.findByDigest(token(1).digest);
    same([found?.expiresAt === undefined, found?.lastUsed === undefined], [true, true], 'absent');
  });

  it('put: names come back as they were handed in', async (tokens) => {
    const names = [
      '',
      'ä漢👍',
      '"quoted"',
      "'; DROP TABLE tokens; --",
      '\u0000',
      'a\u0000b',
      '\ud83d',
      '__proto__',
      'x'.repeat(10_000),
    ];
    for (const [number, name] of names.entries()) await tokens.put(token(number, { name }));
    for (const [number, name] of names.entries()) {
      same((await tokens.findByDigest(token(number).digest))?.name, name, `name ${number}`);
    }
  });

  it('put: an id that is there already is refused with CONFLICT, and nothing is changed', async (tokens) => {
    await tokens.put(token(1));
    await refusesAsConflict(() => tokens.put(token(1, { digest: token(2).digest, scopes: ['admin'] })));
    same(await tokens.list(), [token(1)], 'tokens');
    same(await tokens.findByDigest(token(2).digest), undefined, 'the other digest');
  });

  it('put: a digest that is there already is refused with CONFLICT, and nothing is changed', async (tokens) => {
    await tokens.put(token(1));
    await refusesAsConflict(() => tokens.put(token(2, { digest: token(1).digest, scopes: ['admin'] })));
    same(await tokens.list(), [token(1)], 'tokens');
    same(await tokens.findByDigest(token(1).digest), token(1), 'the first');
  });

  it('put: of several calls with one id at the same time, one alone is taken', async (tokens) => {
    const calls = Array.from({ length: 10 }, async (_, i) => tokens.put(token(1, { digest: token(100 + i).digest })));
    const outcomes = await Promise.allSettled(calls);
    same(outcomes.filter(({ status }) => status === 'fulfilled').length, 1, 'calls that were taken');
    same((await tokens.list()).length, 1, 'tokens');
  });

  it('list: oldest first, whatever the order in which they came', async (tokens) => {
    same(await tokens.list(), [], 'an empty store');
    for (const number of [3, 1, 10, 2]) await tokens.put(token(number));
    same(
      await tokens.list(),
      [1, 2, 3, 10].map((number) => token(number)),
      'tokens',
    );
  });
}

function changingCases(it: TokenCase): void {
  it('I12: delete: from the moment it returns the token is never found again', async (tokens) => {
    for (const number of [1, 2]) await tokens.put(token(number));
    same(await tokens.delete(token(1).id), true, 'answer');
    same(await tokens.findByDigest(token(1).digest), undefined, 'by its digest');
    same(await tokens.list(), [token(2)], 'tokens');
    same(await tokens.findByDigest(token(2).digest), token(2), 'the other');
  });

  it('delete: false when the id is unknown, also the second time', async (tokens) => {
    await tokens.put(token(1));
    for (const id of [token(2).id, '', '%', 'constructor', token(1).digest])
      same(await tokens.delete(id), false, `id ${id}`);
    same([await tokens.delete(token(1).id), await tokens.delete(token(1).id)], [true, false], 'answers');
  });

  it('I12: touch does not bring back a token that was deleted', async (tokens) => {
    await tokens.put(token(1));
    await tokens.delete(token(1).id);
    await tokens.touch(token(1).id, T0 + 60_000);
    same([await tokens.list(), await tokens.findByDigest(token(1).digest)], [[], undefined], 'tokens');
  });

  it('touch: notes a use, and changes nothing else', async (tokens) => {
    for (const number of [1, 2]) await tokens.put(token(number));
    await tokens.touch(token(1).id, T0 + 60_000);
    same(await tokens.findByDigest(token(1).digest), token(1, { lastUsed: T0 + 60_000 }), 'token');
    same(await tokens.list(), [token(1, { lastUsed: T0 + 60_000 }), token(2)], 'tokens');
  });

  it('touch: never moves the last use back', async (tokens) => {
    await tokens.put(token(1));
    for (const [at, expected] of [
      [T0 + 60_000, T0 + 60_000],
      [T0 + 1000, T0 + 60_000],
      [T0 + 120_000, T0 + 120_000],
    ] as const) {
      await tokens.touch(token(1).id, at);
      same((await tokens.findByDigest(token(1).digest))?.lastUsed, expected, `last use after ${at}`);
    }
  });

  it('touch: does nothing for an unknown id', async (tokens) => {
    await tokens.touch(token(1).id, T0);
    same(await tokens.list(), [], 'tokens');
  });

  it('what was handed out stays as it was when the token is touched', async (tokens) => {
    await tokens.put(token(1));
    const before = await tokens.findByDigest(token(1).digest);
    await tokens.touch(token(1).id, T0 + 60_000);
    same(before?.lastUsed === undefined, true, 'absent');
  });
}
