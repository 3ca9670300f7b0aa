/** Plans: how much a caller may do (the specification's plan limits). */

/** The names of the plans. */
export const PLANS = ['free', 'pro', 'enterprise'] as const;
export type PlanName = (typeof PLANS)[number];

/** The limits of a caller as numbers. Without a number, there is no limit. */
export interface PlanFigures {
  /** How many requests a caller may send within a window. */
  readonly requests?: number | undefined;
  /** The length of the window, in seconds. Default 3,600. */
  readonly window?: number | undefined;
  /** How many executions a caller may start in a calendar month (UTC). */
  readonly executions?: number | undefined;
  /** How many executions of a caller may run at once. One that waits does not count, nor does a child execution. */
  readonly concurrent?: number | undefined;
}

/** A plan by its name, or as numbers. */
export type Plan = PlanName | PlanFigures;

/** The limits of a caller. Undefined: there is no limit. */
export interface CallerLimits {
  readonly requests: number | undefined;
  readonly windowMs: number;
  readonly executions: number | undefined;
  readonly concurrent: number | undefined;
}

const HOUR_S = 3_600;

/** The figures of the plans. `enterprise` has those of the option `limits.enterprise`, by default none. */
export const PLAN_FIGURES: Readonly<Record<PlanName, PlanFigures>> = {
  free: { requests: 100, executions: 1_000, concurrent: 5 },
  pro: { requests: 1_000, executions: 100_000, concurrent: 50 },
  enterprise: {},
};

export function toLimits({ requests, window = HOUR_S, executions, concurrent }: PlanFigures): CallerLimits {
  return { requests, windowMs: window * 1000, executions, concurrent };
}
