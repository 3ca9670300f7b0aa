/** The conformance suite of the limit store port: the rules that every `LimitStore` must follow. It runs on any test runner with `describe` and `it`. */

import type { LimitStore, RateAnswer, RateWindow } from '../engine/access/limit-store.port.ts';
import type { MaybePromise } from '../engine/operation/operation.port.ts';
import { type DeclareCase, declareCases, declareOnPart } from './declare-cases.ts';
import type { SuiteRunner } from './http-suite.ts';
import { same } from './storage-suite/context.ts';

/** The holder of the limit store under test. A `Storage` is one, too. */
export interface LimitStoreHolder {
  readonly rates: LimitStore;
  close?(): MaybePromise<void>;
}

export interface LimitStoreSuiteOptions {
  readonly name: string;
  /** Opens a new, empty limit store. The suite calls it once per test, and closes it after the test. */
  readonly create: () => MaybePromise<LimitStoreHolder>;
  readonly test: SuiteRunner;
}

/**
 * Declares the suite's tests: one for each rule of the `LimitStore` port. A limit store may return values or promises.
 *
 * @param options - see {@link LimitStoreSuiteOptions}
 * @example
 * ```ts no-run
 * import { memoryStorage } from 'ensemble-orchestrator';
 * import { limitStoreSuite } from 'ensemble-orchestrator/conformance';
 * import { describe, it } from 'vitest';
 *
 * limitStoreSuite({ name: 'memoryStorage', create: () => memoryStorage(), test: { describe, it } });
 * ```
 */
export function limitStoreSuite(options: LimitStoreSuiteOptions): void {
  const it = declareOnPart(declareCases(options), ({ rates }) => rates);
  options.test.describe(`${options.name} as a LimitStore`, () => rateCases(it));
}

/** The instant at which each case begins, Unix ms. A minute does not begin then. */
const T0 = Date.UTC(2026, 0, 1) + 12_345;
const HOUR = 3_600_000;

function window(limit: number, fields: Partial<RateWindow> = {}): RateWindow {
  return Object.freeze({ key: 'token:tok_1', limit, windowMs: 1000, ...fields });
}

const take = async (rates: LimitStore, now: number, ...windows: RateWindow[]): Promise<RateAnswer> =>
  rates.take(windows, now);
const isTaken = async (rates: LimitStore, now: number, ...windows: RateWindow[]) =>
  (await take(rates, now, ...windows)).taken;
const used = async (rates: LimitStore, now: number, ...windows: RateWindow[]) =>
  (await rates.peek(windows, now)).map((use) => use.used);

export function rateCases(it: DeclareCase<LimitStore>): void {
  windowCases(it);
  clockCases(it);
  severalCases(it);
  raceCases(it);
}

function windowCases(it: DeclareCase<LimitStore>): void {
  it('take: a request counts for the length of the window, and not a millisecond longer', async (rates) => {
    const of = window(2);
    same(await take(rates, T0, of), { taken: true, uses: [{ used: 1, resetAt: T0 + 1000 }] }, 'the first');
    same(await take(rates, T0 + 10, of), { taken: true, uses: [{ used: 2, resetAt: T0 + 1000 }] }, 'the second');
    const refused = { taken: false, uses: [{ used: 2, resetAt: T0 + 1000 }] };
    same(await take(rates, T0 + 20, of), refused, 'the third');
    same(await take(rates, T0 + 999, of), refused, 'until the first leaves the window');
    const next = { taken: true, uses: [{ used: 2, resetAt: T0 + 1010 }] };
    same(await take(rates, T0 + 1000, of), next, 'when the first has left the window');
  });

  it('take: no span of the window has more requests than the limit', async (rates) => {
    const of = window(7, { windowMs: 700 });
    const taken: number[] = [];
    let seed = 1;
    let now = T0;
    for (let i = 0; i < 300; i++) {
      seed = (seed * 48_271) % 2_147_483_647;
      now += seed % 150;
      if (await isTaken(rates, now, of)) taken.push(now);
    }
    for (const [i, instant] of taken.entries()) {
      const later = taken[i + 7];
      if (later !== undefined && later - instant < 700) throw new Error(`8 requests within ${later - instant} ms`);
    }
    same(taken.length > 60, true, 'the limit is used');
  });

  it('take: a burst just before a full hour and one just after it share one limit', async (rates) => {
    const of = window(100, { windowMs: HOUR });
    const hour = Math.ceil(T0 / HOUR) * HOUR;
    let taken = 0;
    for (const instant of [hour - 1000, hour + 1000])
      for (let i = 0; i < 100; i++) if (await isTaken(rates, instant, of)) taken += 1;
    same(taken, 100, 'how many were taken');
    same(await isTaken(rates, hour - 1000 + HOUR, of), true, 'an hour after the first burst');
  });

  it('take: refused requests do not count', async (rates) => {
    const of = window(1);
    for (const at of [0, 300, 600, 900]) same(await isTaken(rates, T0 + at, of), at === 0, `after ${at} ms`);
    same(await isTaken(rates, T0 + 1000, of), true, 'after the window');
  });

  it('take: a limit of 0 takes nothing, and its reset lies in the future', async (rates) => {
    same(await take(rates, T0, window(0)), { taken: false, uses: [{ used: 0, resetAt: T0 + 1000 }] }, 'answer');
    same(await used(rates, T0, window(0)), [0], 'used');
  });

  it('take: a lowered limit counts what was taken before, and says when there is place again', async (rates) => {
    for (const at of [0, 100, 200, 300]) await take(rates, T0 + at, window(4));
    const refused = { taken: false, uses: [{ used: 4, resetAt: T0 + 1200 }] };
    same(await take(rates, T0 + 400, window(2)), refused, 'answer');
    same(await isTaken(rates, T0 + 1199, window(2)), false, '1 ms before');
    same(await isTaken(rates, T0 + 1200, window(2)), true, 'at the reset');
  });

  it('take: above a limit of 1,000, a request counts for at least the window and at most a sixtieth more', async (rates) => {
    const of = window(1500, { windowMs: HOUR });
    for (let i = 0; i < 1500; i += 100) {
      const calls = Array.from({ length: 100 }, (_, more) => isTaken(rates, T0 + i + more, of));
      same((await Promise.all(calls)).every(Boolean), true, `requests ${i} to ${i + 99}`);
    }
    const { taken, uses } = await take(rates, T0 + 2000, of);
    const [use] = uses;
    const resetAt = use?.resetAt ?? 0;
    same([taken, use?.used], [false, 1500], 'answer');
    same(resetAt >= T0 + HOUR && resetAt <= T0 + HOUR + HOUR / 60, true, 'the reset');
    same(await isTaken(rates, resetAt - 1, of), false, 'before the reset');
    same(await isTaken(rates, resetAt, of), true, 'at the reset');
  });

  it('peek: says what is used, and counts nothing', async (rates) => {
    const of = window(2);
    same(await used(rates, T0, of), [0], 'before');
    await take(rates, T0, of);
    same(await rates.peek([of], T0 + 10), [{ used: 1, resetAt: T0 + 1000 }], 'after a request');
    same(await used(rates, T0 + 999, of), [1], 'at the end of the window');
    same(await used(rates, T0 + 1000, of), [0], 'after the window');
  });
}

function clockCases(it: DeclareCase<LimitStore>): void {
  it('take: a clock that was set back gives no fresh window', async (rates) => {
    const of = window(2, { windowMs: HOUR });
    for (const at of [0, 1]) await take(rates, T0 + at, of);
    for (const back of [1, HOUR - 1, HOUR, 3 * HOUR]) {
      same(await isTaken(rates, T0 - back, of), false, `${back} ms back`);
    }
  });

  it('take: after a clock was far ahead, requests are possible again after two windows', async (rates) => {
    const of = window(1);
    await take(rates, T0 + 1000 * HOUR, of);
    same(await isTaken(rates, T0, of), false, 'at once');
    same(await isTaken(rates, T0 + 2000, of), true, 'after two windows');
  });

  it('take: requests at one instant, and instants of other processes that are a little earlier, all count', async (rates) => {
    const of = window(4);
    same(await isTaken(rates, T0, of), true, 'first');
    same(await isTaken(rates, T0, of), true, 'the same instant');
    same(await isTaken(rates, T0 - 5, of), true, '5 ms earlier');
    same(await isTaken(rates, T0 + 5, of), true, 'later');
    same(await isTaken(rates, T0 + 5, of), false, 'the fifth');
  });
}

function severalCases(it: DeclareCase<LimitStore>): void {
  it('take: a request counts in all windows, or in none if one is full', async (rates) => {
    const [token, address] = [window(3), window(2, { key: 'ip:192.0.2.1', windowMs: 5000 })];
    const first = await take(rates, T0, token, address);
    same([first.taken, first.uses.map((use) => use.used)], [true, [1, 1]], 'the first');
    await take(rates, T0, token, address);
    const third = await take(rates, T0 + 1, token, address);
    same([third.taken, third.uses.map((use) => use.used)], [false, [2, 2]], 'the third: the address is full');
    same(await isTaken(rates, T0 + 1, token), true, 'another address');
    same(await isTaken(rates, T0 + 1, token), false, 'the token is full');
    same(await used(rates, T0 + 1, token, address), [3, 2], 'used');
  });

  it('take: keys are independent, whatever the characters, and so are windows of another length', async (rates) => {
    const keys = ['a', 'A', 'a b', 'ä', '"a"', "'; --", 'ip:2001:db8:0:0::/56', 'constructor', '__proto__'];
    for (const key of keys) same(await isTaken(rates, T0, window(1, { key })), true, key);
    for (const key of keys) same(await isTaken(rates, T0, window(1, { key })), false, `${key} again`);
    same(await isTaken(rates, T0, window(1, { key: 'a', windowMs: 2000 })), true, 'another length');
  });
}

function raceCases(it: DeclareCase<LimitStore>): void {
  it('take: of many concurrent requests, exactly the limit is taken', async (rates) => {
    const of = window(25, { windowMs: HOUR });
    const taken = await Promise.all(Array.from({ length: 100 }, (_, i) => isTaken(rates, T0 + (i % 7), of)));
    same(taken.filter(Boolean).length, 25, 'taken');
    same(await used(rates, T0 + 10, of), [25], 'used');
  });

  it('take: concurrent requests with the same windows in another order all finish, and none is lost', async (rates) => {
    const windows = ['a', 'b', 'c', 'd'].map((key) => window(1000, { key, windowMs: HOUR }));
    const [a, b, c, d] = windows as [RateWindow, RateWindow, RateWindow, RateWindow];
    const orders = [
      [a, b],
      [b, a],
      [c, a],
      [a, d],
      [d, c],
      [b, d],
    ] as const;
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) => isTaken(rates, T0, ...(orders[i % 6] as readonly RateWindow[]))),
    );
    same(answers.filter(Boolean).length, 60, 'taken');
    same(await used(rates, T0, ...windows), [40, 30, 20, 30], 'used');
  });
}
