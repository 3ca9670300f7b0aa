/** Counts requests against the limits of their caller and of its address (the specification's limits, rules 1 to 4). */

import { isPromise } from '../../base/maybe-promise.ts';
import type { Clock } from '../../host/clock.port.ts';
import type { Logger } from '../../host/logger.port.ts';
import type { MaybePromise } from '../../operation/operation.port.ts';
import type { LimitStore, RateAnswer, RateWindow } from '../limit-store.port.ts';
import type { Plan } from '../plan.ts';
import { isTokenKey, tokenKey } from '../request-log.ts';
import type { Principal } from '../token.ts';
import { clientOf } from './client-address.ts';
import { NO_LIMIT, type Plans, type RequestBudget } from './plans.ts';

/** Who sends a request. */
export interface RequestSender {
  /** Absent for a caller without a valid token. */
  readonly principal?: Principal | undefined;
  /** The IP address of the client. Absent if it is not known. */
  readonly address?: string | undefined;
  /** The request is one of a public webhook, or was refused by a webhook: only its address counts, by `limits.webhooks`. */
  readonly webhook?: 'public' | 'refused' | undefined;
}

/** The tightest of the limits that apply to a request. */
export interface RequestLimit {
  /** False if a limit was reached: then the request was not counted. */
  readonly allowed: boolean;
  /** Requests within a window. 9007199254740991 if there is no limit. */
  readonly limit: number;
  /** How many requests are left, after this one. */
  readonly remaining: number;
  /** Unix ms: when the next request is possible, or the oldest one leaves the window. */
  readonly resetAt: number;
  /** ms until `resetAt`. */
  readonly waitMs: number;
  /** How long the window is, in ms. */
  readonly windowMs: number;
  /** Whose limit it is: that of the caller's token, or that of its address. */
  readonly of: 'token' | 'address';
  /** True if the address is not known: then all such requests share the limit. */
  readonly isShared: boolean;
}

export interface Limits {
  /** The plan of callers that the host identifies without one. */
  readonly defaultPlan: Plan;
  /** Whether responses have the headers of the IETF's draft too. */
  readonly standardHeaders: boolean;
  /** Counts a request, or refuses it without counting it. */
  countRequest(sender: RequestSender): MaybePromise<RequestLimit>;
}

/** Requests without a token and without a known address share one count of each kind, this many times the size. */
const UNKNOWN_ADDRESS = 'ip:unknown';
const SHARED_TIMES = 10;
/** How many clients are kept in the form in which they are counted. */
const MAX_CLIENTS = 1_000;

export function createLimits(dependencies: {
  readonly plans: Plans;
  readonly rates: LimitStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly standardHeaders?: boolean | undefined;
}): Limits {
  const { plans, rates, clock, logger, standardHeaders = false } = dependencies;
  const clients = new Map<string, string | undefined>();
  let warned = false;

  const clientKey = (address: string | undefined): string | undefined => {
    if (address === undefined) return undefined;
    if (!clients.has(address)) {
      if (clients.size >= MAX_CLIENTS) clients.clear();
      const client = clientOf(address);
      clients.set(address, client && `ip:${client}`);
    }
    return clients.get(address);
  };

  const warnOnce = () => {
    if (!warned) logger.warn({ use: lineOfHost() }, NO_ADDRESS);
    warned = true;
  };

  /** The window of an address, or the one that all requests of the kind without a known address share. */
  const windowsOfAddress = (kind: string, address: string | undefined, { requests, windowMs }: RequestBudget) => {
    const client = clientKey(address);
    if (client === undefined) warnOnce();
    if (requests === undefined) return [];
    const limit = client === undefined ? Math.min(requests * SHARED_TIMES, NO_LIMIT) : requests;
    return [{ key: `${kind}${client ?? UNKNOWN_ADDRESS}`, limit, windowMs }];
  };

  const windowsOf = ({ principal, address, webhook }: RequestSender): RateWindow[] => {
    if (webhook) return windowsOfAddress(`webhook-${webhook} `, address, plans.webhooks);
    if (!principal) return windowsOfAddress('', address, plans.ofAddress);
    const { requests = NO_LIMIT, windowMs } = plans.limitsOf(principal.plan);
    const own = { key: tokenKey(principal.tokenId), limit: requests, windowMs };
    const budget = plans.ofCallersAt(principal.plan);
    const [ofAddress] = windowsOfAddress(`callers ${budget.requests} `, address, budget);
    return ofAddress && !isUnknown(ofAddress.key) ? [own, ofAddress] : [own];
  };

  return {
    defaultPlan: plans.byDefault,
    standardHeaders,
    countRequest(sender) {
      const windows = windowsOf(sender);
      if (windows.length === 0) {
        const resetAt = clock.now();
        const all = { limit: NO_LIMIT, remaining: NO_LIMIT, resetAt, waitMs: 0, windowMs: 0 };
        return { allowed: true, ...all, of: 'token', isShared: false };
      }
      const now = clock.now();
      const answer = rates.take(windows, now);
      return isPromise(answer) ? answer.then((late) => tightest(windows, late, now)) : tightest(windows, answer, now);
    },
  };
}

const NO_ADDRESS =
  'the address of a client is not known: its requests are counted by token alone, and all requests without a token are counted together';
/** By a global of the runtime: the function that passes the address, and where Hono has it. */
const HOSTS: readonly (readonly [global: string, mount: string, hono: string])[] = [
  ['Deno', 'toDenoHandler', 'hono/deno'],
  ['Bun', 'toBunHandler', 'hono/bun'],
  ['WebSocketPair', 'toWorker', 'hono/cloudflare-workers'],
  ['globalThis', 'toNodeListener', '@hono/node-server/conninfo'],
];

/** What to write where the handler is called. */
function lineOfHost(): string {
  const [, mount, hono] = HOSTS.find(([global]) => global in globalThis) as (typeof HOSTS)[0];
  return `Use \`${mount}(handler)\`, or pass the address, in Hono \`handler.handle(context.req.raw, { ip: getConnInfo(context).remote.address })\` with \`getConnInfo\` of ${hono}`;
}

function isUnknown(key: string): boolean {
  return key.endsWith(UNKNOWN_ADDRESS);
}

function tightest(windows: readonly RateWindow[], { taken, uses }: RateAnswer, now: number): RequestLimit {
  let found: RequestLimit | undefined;
  for (let i = 0; i < windows.length; i++) {
    const { key, limit, windowMs } = windows[i] as RateWindow;
    const { used, resetAt } = uses[i] as RateAnswer['uses'][0];
    const remaining = Math.max(0, limit - used);
    const isTighter =
      !found || remaining < found.remaining || (remaining === found.remaining && resetAt > found.resetAt);
    if (!isTighter) continue;
    const of = isTokenKey(key) ? 'token' : 'address';
    const times = { resetAt, waitMs: resetAt - now, windowMs };
    found = { allowed: taken, limit, remaining, ...times, of, isShared: isUnknown(key) };
  }
  return found as RequestLimit;
}
