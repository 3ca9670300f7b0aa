/** The guard of a rollout: which share of the executions that use the version may fail. */

import type { Rollout, Split } from './component.ts';

/** Of the executions that used a version in one step. */
export interface StepCount {
  readonly runs: number;
  readonly failures: number;
}

const GUARD = /^\s*failureRate\s*<\s*(\d{1,3}(?:\.\d{1,6})?)\s*(%?)\s*$/;
/** Fewer runs count as this many, so that one failure among the first runs ends no rollout. */
const LEAST_RUNS = 100;

/** @returns why a value can't be a guard */
export function guardProblem(guard: unknown): string | undefined {
  const limit = typeof guard === 'string' ? limitOf(guard) : undefined;
  return limit !== undefined && limit > 0 && limit < 1
    ? undefined
    : 'must be a limit of the failure rate above 0 and below 100 %, such as `failureRate < 2%`';
}

const MAX_STEPS = 20;
export const STEPS_RULE = `must be 2 to ${MAX_STEPS} rising shares that end with 100, such as [1, 10, 50, 100]`;

export function areSteps(steps: unknown): steps is readonly number[] {
  return (
    Array.isArray(steps) &&
    steps.length >= 2 &&
    steps.length <= MAX_STEPS &&
    steps.every((share, i) => typeof share === 'number' && share > (steps[i - 1] ?? 0) && share <= 100) &&
    steps.at(-1) === 100
  );
}

/** Whether a value that a source has stored is a rollout of one of these versions. */
export function isRollout(value: unknown, split: Split): value is Rollout {
  if (typeof value !== 'object' || value === null) return false;
  const { version, guard, steps, step, everyMs } = value as Partial<Record<keyof Rollout, unknown>>;
  const isStep = areSteps(steps) && Number.isInteger(step) && split[String(version)] === steps[step as number];
  return isStep && guardProblem(guard) === undefined && typeof everyMs === 'number' && everyMs > 0;
}

/** Whether more executions have failed than a guard allows. */
export function isBroken(guard: string, { runs, failures }: StepCount): boolean {
  return failures > (limitOf(guard) ?? 0) * Math.max(runs, LEAST_RUNS);
}

function limitOf(guard: string): number | undefined {
  const [, number, percent] = GUARD.exec(guard) ?? [];
  return number === undefined ? undefined : Number(number) / (percent === '%' ? 100 : 1);
}
