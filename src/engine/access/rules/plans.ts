/** The limits of callers: the option `limits`, its check, and what a plan allows (the specification's plan limits and `rateLimit`). */

import {
  flag,
  isRecord,
  type OptionCheck,
  type OptionChecks,
  oneOf,
  readOptions,
  wholeNumber,
  withMethods,
} from '../../base/read-options.ts';
import type { LimitStore } from '../limit-store.port.ts';
import {
  type CallerLimits,
  PLAN_FIGURES,
  PLANS,
  type Plan,
  type PlanFigures,
  type PlanName,
  toLimits,
} from '../plan.ts';
import type { Principal } from '../token.ts';

export interface LimitsOptions {
  /** The plan of tokens that are created without one, and of callers that the host identifies without one. Default `free`. */
  readonly plan?: Plan | undefined;
  /** The figures of the plan `enterprise`. Default: no limits. */
  readonly enterprise?: PlanFigures | undefined;
  /** Replaces these figures of every plan that has a name. Tokens with figures of their own keep them. */
  readonly rateLimit?: {
    readonly requests?: number | undefined;
    /** In seconds. */
    readonly window?: number | undefined;
    /** Executions that may run at once. */
    readonly concurrent?: number | undefined;
  };
  /**
   * How many requests one address may send within `rateLimit.window`, by default an hour, with valid tokens, and as many without one: an
   * IPv4 address, or the first 56 bits of an IPv6 address. Default: with tokens those of the largest named plan that has a limit, or of
   * the token's own figures if they are larger; without a token those of `free`.
   */
  readonly perIp?: number | undefined;
  /**
   * How many requests of public webhooks one address may send. Default `{ requests: 600, window: 60 }`. Requests of a webhook with
   * `auth` have no limit, except those that are refused.
   */
  readonly webhooks?: Pick<PlanFigures, 'requests' | 'window'> | undefined;
  /** Where requests are counted. Default: the storage. */
  readonly store?: LimitStore | undefined;
  /**
   * What happens to a request while that store is away: this process counts it alone (`open`, the default), or it is refused with 503
   * (`closed`). Quotas and slots belong to the commit that accepts an execution, so they are always closed.
   */
  readonly onStoreFailure?: 'open' | 'closed' | undefined;
  /** Adds the headers `RateLimit` and `RateLimit-Policy` of the IETF's draft to every response that has `X-RateLimit-*`. Default false. */
  readonly standardHeaders?: boolean | undefined;
}

/** The largest number of a limit. It is reported where there is no limit. */
export const NO_LIMIT = Number.MAX_SAFE_INTEGER;

const MAX_WINDOW_S = 86_400 * 31;
const PLAN_RULE = `must be one of ${PLANS.join(', ')}, or figures such as { requests: 500, executions: 10000 }`;
const COUNT = 'must be a whole number from 0';
const ANY_COUNT = { min: 0, max: Number.MAX_SAFE_INTEGER, text: COUNT };
const FIGURES: Readonly<Record<keyof PlanFigures, typeof ANY_COUNT>> = {
  requests: ANY_COUNT,
  window: { min: 1, max: MAX_WINDOW_S, text: `must be 1 to ${MAX_WINDOW_S} seconds (31 days)` },
  executions: ANY_COUNT,
  concurrent: ANY_COUNT,
};

/** What is wrong with a plan, or undefined. */
export function planProblem(given: unknown): string | undefined {
  if (PLANS.includes(given as PlanName)) return undefined;
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return PLAN_RULE;
  for (const [key, figure] of Object.entries(given)) {
    const rule = Object.hasOwn(FIGURES, key) ? FIGURES[key as keyof PlanFigures] : undefined;
    if (!rule) return `has the unknown key \`${key}\`; its keys are ${Object.keys(FIGURES).join(', ')}`;
    if (figure !== undefined && !(Number.isSafeInteger(figure) && figure >= rule.min && figure <= rule.max))
      return `\`${key}\` ${rule.text}`;
  }
  return undefined;
}

/** Whether a value is the result of `tokens.verify()`, or like one, for what counts and charges. */
export function isPrincipal(given: Principal | undefined): given is Principal {
  return typeof given?.tokenId === 'string' && given.tokenId !== '' && planProblem(given.plan) === undefined;
}

/** The figures of a caller. @param keys - those that make sense */
function figures(...keys: readonly (keyof PlanFigures)[]): OptionCheck {
  return (given) => {
    if (given === undefined) return undefined;
    if (!isRecord(given)) return 'must be figures, such as { requests: 500 }';
    const other = Object.keys(given as object).find((key) => !keys.includes(key as keyof PlanFigures));
    if (other !== undefined && Object.hasOwn(FIGURES, other))
      return `has \`${other}\`; its keys are ${keys.join(', ')}`;
    const problem = planProblem(given);
    return problem === undefined ? undefined : `has a wrong figure: ${problem}`;
  };
}

const CHECKS: OptionChecks<LimitsOptions> = {
  plan: (plan) => (plan === undefined ? undefined : planProblem(plan)),
  enterprise: figures('requests', 'window', 'executions', 'concurrent'),
  rateLimit: figures('requests', 'window', 'concurrent'),
  perIp: wholeNumber(0),
  webhooks: figures('requests', 'window'),
  store: withMethods('a LimitStore with take and peek', 'take', 'peek'),
  onStoreFailure: oneOf('open', 'closed'),
  standardHeaders: flag,
};

/** @throws TypeError for an unknown key, and for a value of a wrong kind */
export function checkLimits(options: LimitsOptions): void {
  const what = 'createOrchestrator: `limits`';
  const { rateLimit } = readOptions(what, options, CHECKS);
  if (rateLimit?.window !== undefined && rateLimit.requests === undefined)
    throw new TypeError(`${what}: \`rateLimit\`: \`window\` needs \`requests\``);
}

export interface Plans {
  /** The plan of callers without one. */
  readonly byDefault: Plan;
  limitsOf(plan: Plan): CallerLimits;
  /** For what comes from an address without a valid token. */
  readonly ofAddress: RequestBudget;
  /** For what comes from an address with valid tokens, of all plans: at least the largest one with a limit. */
  ofCallersAt(plan: Plan): RequestBudget;
  /** The limits of one address that calls public webhooks. */
  readonly webhooks: RequestBudget;
}

/** Without `requests`: any number. */
export type RequestBudget = Pick<CallerLimits, 'requests' | 'windowMs'>;

const WEBHOOKS: PlanFigures = { requests: 600, window: 60 };

export function createPlans({ plan = 'free', enterprise, rateLimit, perIp, webhooks }: LimitsOptions = {}): Plans {
  const named = (name: PlanName): CallerLimits =>
    toLimits({ ...PLAN_FIGURES[name], ...(name === 'enterprise' && enterprise), ...rateLimit });
  const byName: Readonly<Record<PlanName, CallerLimits>> = {
    free: named('free'),
    pro: named('pro'),
    enterprise: named('enterprise'),
  };
  const limitsOf = (given: Plan) => (typeof given === 'string' ? byName[given] : toLimits(given));
  const fixed = perIp === undefined ? undefined : { requests: perIp, windowMs: byName.free.windowMs };
  return {
    byDefault: plan,
    limitsOf,
    ofAddress: fixed ?? byName.free,
    ofCallersAt(given) {
      // A plan that another one exceeds in every span shares the count of that one. Counts of other sizes are apart.
      const larger = (one: RequestBudget, other: RequestBudget) =>
        one.requests !== undefined && (other.requests ?? 0) >= one.requests && other.windowMs <= one.windowMs
          ? other
          : one;
      return fixed ?? Object.values(byName).reduce<RequestBudget>(larger, limitsOf(given));
    },
    webhooks: toLimits({ ...WEBHOOKS, ...webhooks }),
  };
}
