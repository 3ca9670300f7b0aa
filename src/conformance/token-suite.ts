/** The conformance suite of the token port: the rules that every `TokenStore` must follow. It runs on any test runner with `describe` and `it`. */

import type { StoredToken } from '../engine/access/token.ts';
import type { TokenStore } from '../engine/access/token-store.port.ts';
import type { MaybePromise } from '../engine/operation/operation.port.ts';
import { type DeclareCase, declareCases, declareOnPart } from './declare-cases.ts';
import type { SuiteRunner } from './http-suite.ts';
import { frozen, refuses, same } from './storage-suite/context.ts';

/** The holder of the store under test. A `Storage` is one, too. */
export interface TokenHolder {
  readonly tokens: TokenStore;
  close?(): MaybePromise<void>;
}

export interface TokenSuiteOptions {
  readonly name: string;
  /** Opens a new, empty store. The suite calls it once per test, and closes the store after the test. */
  readonly create: () => MaybePromise<TokenHolder>;
  /**
   * Opens another handle on the data of the store that `create` opened last, after the suite has closed that store. Without this
   * option, the suite leaves out the tests that open a store again.
   */
  readonly reopen?: (() => MaybePromise<TokenHolder>) | undefined;
  readonly test: SuiteRunner;
}

/** The instant of the suite's calls, Unix ms. */
const T0 = Date.UTC(2026, 0, 1);

/**
 * Declares the suite's tests: one for each rule of the `TokenStore` port. A store may return values or promises.
 *
 * @param options - see {@link TokenSuiteOptions}
 * @example
 * ```ts no-run
 * import { memoryStorage } from 'ensemble-orchestrator';
 * import { tokenSuite } from 'ensemble-orchestrator/conformance';
 * import { describe, it } from 'vitest';
 *
 * tokenSuite({ name: 'memoryStorage', create: () => memoryStorage(), test: { describe, it } });
 * ```
 */
export function tokenSuite(options: TokenSuiteOptions): void {
  const it = declareOnPart(declareCases(options), ({ tokens }) => tokens);
  options.test.describe(`${options.name} as a TokenStore`, () => {
    tokenCases(it);
    if (options.reopen) reopenedTokenCases(it);
  });
}

export function tokenCases(it: DeclareCase<TokenStore>): void {
  findingCases(it);
  changingCases(it);
}

/** For stores that outlive their handle. */
export function reopenedTokenCases(it: DeclareCase<TokenStore>): void {
  it('reopen: tokens, their expiry, their last use and their order are unchanged', async (tokens, reopen) => {
    const stored = [
      token(1),
      token(2, { name: 'ä漢👍\u0000\ud83d', scopes: [], plan: 'enterprise', expiresAt: T0 + 5000 }),
      token(3, { scopes: ['admin'], lastUsed: T0 + 1 }),
    ];
    for (const one of [...stored].reverse()) await tokens.put(one);
    await tokens.touch(token(1).id, T0 + 60_000);
    const expected = [{ ...stored[0], lastUsed: T0 + 60_000 }, ...stored.slice(1)];
    const next = await reopen();
    same(await next.list(), expected, 'tokens');
    for (const one of expected) {
      same(await next.findByDigest(one.digest as string), one, 'token by its digest');
      same(await next.get(one.id as string), one, 'token by its id');
    }
    same((await next.findByDigest(token(1).digest))?.expiresAt === undefined, true, 'an absent expiry stays absent');
    await next.touch(token(1).id, T0 + 1000);
    same((await next.findByDigest(token(1).digest))?.lastUsed, T0 + 60_000, 'last use after an earlier use');
  });

  it('reopen: a deleted token is not found, and a stored id or digest is refused with CONFLICT', async (tokens, reopen) => {
    for (const number of [1, 2]) await tokens.put(token(number));
    await tokens.delete(token(1).id);
    const next = await reopen();
    same([await next.list(), await next.findByDigest(token(1).digest)], [[token(2)], undefined], 'tokens');
    await refuses('CONFLICT', () => next.put(token(2, { digest: token(3).digest })));
    await refuses('CONFLICT', () => next.put(token(3, { digest: token(2).digest })));
    same(await next.list(), [token(2)], 'tokens after the refusals');
  });
}

/** A token with a greater number is newer. */
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

function findingCases(it: DeclareCase<TokenStore>): void {
  it('findByDigest: returns undefined for an unknown digest', async (tokens) => {
    await tokens.put(token(1));
    const { digest, id } = token(1);
    const others = [token(2).digest, '', id, 'constructor', '%', digest.slice(1), `${digest}0`, `${digest}\u0000`];
    for (const other of others) same(await tokens.findByDigest(other), undefined, `digest ${JSON.stringify(other)}`);
  });

  it('get: returns the token with an id, and undefined for an unknown or deleted one', async (tokens) => {
    for (const number of [1, 2]) await tokens.put(token(number));
    same(await tokens.get(token(2).id), token(2), 'token');
    for (const other of [token(3).id, '', token(1).digest, 'constructor', '%', `${token(1).id}\u0000`])
      same(await tokens.get(other), undefined, `id ${JSON.stringify(other)}`);
    await tokens.delete(token(1).id);
    same([await tokens.get(token(1).id), await tokens.get(token(2).id)], [undefined, token(2)], 'after a delete');
  });

  it('put: the token is found by its digest when `put` returns, and comes back unchanged', async (tokens) => {
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

  it('put: names come back unchanged', async (tokens) => {
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

  it('put: a stored id is refused with CONFLICT, and nothing changes', async (tokens) => {
    await tokens.put(token(1));
    await refuses('CONFLICT', () => tokens.put(token(1, { digest: token(2).digest, scopes: ['admin'] })));
    same(await tokens.list(), [token(1)], 'tokens');
    same(await tokens.findByDigest(token(2).digest), undefined, 'the other digest');
  });

  it('put: a stored digest is refused with CONFLICT, and nothing changes', async (tokens) => {
    await tokens.put(token(1));
    await refuses('CONFLICT', () => tokens.put(token(2, { digest: token(1).digest, scopes: ['admin'] })));
    same(await tokens.list(), [token(1)], 'tokens');
    same(await tokens.findByDigest(token(1).digest), token(1), 'the first');
  });

  it('put: of concurrent calls with one id, exactly one is stored', async (tokens) => {
    const calls = Array.from({ length: 10 }, async (_, i) => tokens.put(token(1, { digest: token(100 + i).digest })));
    const outcomes = await Promise.allSettled(calls);
    same(outcomes.filter(({ status }) => status === 'fulfilled').length, 1, 'stored calls');
    same((await tokens.list()).length, 1, 'tokens');
  });

  it('list: sorts oldest first, whatever the order in which tokens were stored', async (tokens) => {
    same(await tokens.list(), [], 'an empty store');
    for (const number of [3, 1, 10, 2]) await tokens.put(token(number));
    same(
      await tokens.list(),
      [1, 2, 3, 10].map((number) => token(number)),
      'tokens',
    );
  });
}

function changingCases(it: DeclareCase<TokenStore>): void {
  it('delete: once `delete` returns, the token is never found again', async (tokens) => {
    for (const number of [1, 2]) await tokens.put(token(number));
    same(await tokens.delete(token(1).id), true, 'answer');
    same(await tokens.findByDigest(token(1).digest), undefined, 'by its digest');
    same(await tokens.list(), [token(2)], 'tokens');
    same(await tokens.findByDigest(token(2).digest), token(2), 'the other');
  });

  it('delete: returns false for an unknown id, and the second time', async (tokens) => {
    await tokens.put(token(1));
    for (const id of [token(2).id, '', '%', 'constructor', token(1).digest])
      same(await tokens.delete(id), false, `id ${id}`);
    same([await tokens.delete(token(1).id), await tokens.delete(token(1).id)], [true, false], 'answers');
  });

  it('touch: does not bring back a deleted token', async (tokens) => {
    await tokens.put(token(1));
    await tokens.delete(token(1).id);
    await tokens.touch(token(1).id, T0 + 60_000);
    same([await tokens.list(), await tokens.findByDigest(token(1).digest)], [[], undefined], 'tokens');
  });

  it('touch: records a use, and changes nothing else', async (tokens) => {
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

  it('findByDigest: a returned token does not change when the token is used', async (tokens) => {
    await tokens.put(token(1));
    const before = await tokens.findByDigest(token(1).digest);
    await tokens.touch(token(1).id, T0 + 60_000);
    same(before?.lastUsed === undefined, true, 'absent');
  });
}
