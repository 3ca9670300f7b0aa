/** What a caller has used (the specification's Usage). */

import { isPromise } from '../../base/maybe-promise.ts';
import type { Clock } from '../../host/clock.port.ts';
import type { LimitStore } from '../limit-store.port.ts';
import { monthOf } from '../quota.ts';
import { tokenKey } from '../request-log.ts';
import type { Principal } from '../token.ts';
import type { UsageStore } from '../usage-store.port.ts';
import { isPrincipal, NO_LIMIT, type Plans } from './plans.ts';

/** What is used of a limit. Without a limit, `limit` is 9007199254740991. */
export interface UsedOfLimit {
  readonly used: number;
  readonly limit: number;
  readonly remaining: number;
}

export interface Usage {
  /** The calendar month in UTC, to which `executions` belongs. Unix ms. */
  readonly period: { readonly start: number; readonly end: number };
  /** The sliding window up to now, by default an hour. */
  readonly requests: UsedOfLimit;
  readonly executions: UsedOfLimit;
}

export interface UsageReader {
  /** The usage of a caller. The call itself counts as no request. */
  get(principal: Principal): Promise<Usage>;
}

export function createUsage(dependencies: {
  readonly plans: Plans;
  readonly rates: LimitStore;
  readonly store: UsageStore;
  readonly clock: Clock;
}): UsageReader {
  const { plans, rates, store, clock } = dependencies;
  return {
    async get(principal) {
      if (!isPrincipal(principal))
        throw new TypeError('usage.get: pass a principal, such as the result of tokens.verify()');
      const now = clock.now();
      const { requests = NO_LIMIT, windowMs, executions = NO_LIMIT } = plans.limitsOf(principal.plan);
      const { name, start, end } = monthOf(now);
      const uses = rates.peek([{ key: tokenKey(principal.tokenId), limit: requests, windowMs }], now);
      const charged = store.charged(principal.tokenId, name);
      const [use] = isPromise(uses) ? await uses : uses;
      return {
        period: { start, end },
        requests: toUsed(use?.used ?? 0, requests),
        executions: toUsed(isPromise(charged) ? await charged : charged, executions),
      };
    },
  };
}

function toUsed(used: number, limit: number): UsedOfLimit {
  return { used, limit, remaining: Math.max(0, limit - used) };
}
