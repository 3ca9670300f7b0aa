/** The guard of a rollout: which share of the executions that use the version may fail. */

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

/** Whether more executions have failed than a guard allows. */
export function isBroken(guard: string, { runs, failures }: StepCount): boolean {
  return failures > (limitOf(guard) ?? 0) * Math.max(runs, LEAST_RUNS);
}

function limitOf(guard: string): number | undefined {
  const [, number, percent] = GUARD.exec(guard) ?? [];
  return number === undefined ? undefined : Number(number) / (percent === '%' ? 100 : 1);
}
