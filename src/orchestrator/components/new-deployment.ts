/** Reads what a caller deploys: one version, a split of several, or a rollout, which is a split that advances by itself. */

import { DURATION_RULE, type Duration, isDuration, toMs } from '../../engine/base/time/duration.ts';
import {
  type Deployment,
  environmentProblem,
  isVersion,
  LATEST,
  type Rollout,
  type Split,
} from '../../engine/component/component.ts';
import { readNote, readVersion, refuseComponent } from '../../engine/component/component-fields.ts';
import type { StoredComponent } from '../../engine/component/component-source.port.ts';
import { areSteps, guardProblem, STEPS_RULE } from '../../engine/component/guard.ts';
import { mainVersion, type SplitRules, splitProblem } from '../../engine/component/split.ts';
import { compileSplitKey } from '../../engine/definition/compile/config/compile-references.ts';
import type { FunctionTable } from '../../engine/expression/functions/function-table.ts';
import { ExpressionSyntaxError } from '../../engine/expression/syntax/expression-syntax-error.ts';
import { noVersion } from './resolve-component.ts';

export interface NewDeployment {
  /** The name of an environment, or `latest`. */
  readonly to: string;
  /** The version that all executions get, at the end of a rollout. Without it, `split` is needed. */
  readonly version?: string | undefined;
  /** The share of each of several versions in percent, such as `{ 'v1.2.0': 90, 'v1.3.0': 10 }`. */
  readonly split?: Split | undefined;
  /**
   * The expression whose value decides which version an execution gets, such as `${input.userId}`: the same value gets the same version. It
   * reads the input of the execution. Default, and for the value null: the id of the execution.
   */
  readonly by?: string | undefined;
  /**
   * Rolls the version out in steps, as long as this holds: `failureRate < 2%`, of the executions that used the version in the step, and in
   * the whole rollout. It is rolled back as soon as more have failed than 2 % of them, or of 100 if there are fewer.
   */
  readonly guard?: string | undefined;
  /** The shares of the version in a rollout, in percent. Default: `[1, 10, 50, 100]`. */
  readonly steps?: readonly number[] | undefined;
  /** The shortest time of each step. Default: `10m`. */
  readonly every?: Duration | undefined;
  /** Why. */
  readonly message?: string | undefined;
  /** Who deploys it. */
  readonly actor?: string | undefined;
}

export const DEPLOYMENT_KEYS = ['to', 'version', 'split', 'by', 'guard', 'steps', 'every', 'message', 'actor'] as const;

const DEFAULT_STEPS = [1, 10, 50, 100];
const DEFAULT_EVERY = '10m';
const MIN_EVERY_MS = 1_000;

/** How many versions before the previous one are known. */
const MAX_EARLIER = 20;

/** @param isRollback - its version is `previous` of the deployment before. @throws INVALID_REQUEST; VERSION_NOT_FOUND */
export function newDeployment(
  component: StoredComponent,
  given: NewDeployment,
  { now, functions, isRollback = false }: { now: number; functions: FunctionTable | undefined; isRollback?: boolean },
): Deployment {
  const to = readEnvironment(given.to);
  const before = component.deployments.find(({ environment }) => environment === to);
  const made = deploy({ ...given, to }, before, { now, functions, isRollback });
  for (const version of made.split ? Object.keys(made.split) : [made.version])
    if (!component.versions.some((one) => one.version === version))
      throw noVersion(component.name, version, component.versions);
  return made;
}

export interface DeployContext {
  readonly now: number;
  readonly functions: FunctionTable | undefined;
  readonly isRollback?: boolean;
  /** Default: those of components. */
  readonly rules?: SplitRules;
}

/** @param before - what the environment has now. @throws INVALID_REQUEST */
export function deploy(
  given: NewDeployment,
  before: Deployment | undefined,
  { now, functions, isRollback = false, rules }: DeployContext,
): Deployment {
  const environment = given.to;
  const share = readShare(given, before, rules);
  const splitBy = readBy(given.by, share, functions);
  const message = readNote('message', given.message);
  const by = readNote('actor', given.actor);
  return {
    ...(isRollback && before ? goBack(share, before) : replace(share, before)),
    ...{ environment, deployedAt: now },
    ...(splitBy !== undefined && { splitBy }),
    ...(by !== undefined && { by }),
    ...(message !== undefined && { message }),
  };
}

/** The next step of a rollout: a larger share of its version, or all. */
export function nextStep(deployment: Deployment, rollout: Rollout, now: number): Deployment {
  const {
    version: _version,
    split: _split,
    rollout: _rollout,
    splitBy,
    previous: _one,
    earlier: _more,
    ...kept
  } = deployment;
  const share = shareOf({ ...rollout, step: rollout.step + 1 }, baseOf(deployment));
  return {
    ...{ ...kept, ...replace(share, deployment), deployedAt: now },
    ...(share.split && splitBy !== undefined && { splitBy }),
  };
}

/** The deployment after a rollout whose guard is broken: all executions get the version that it would have replaced. */
export function rolledBack(deployment: Deployment, now: number, message: string): Deployment {
  const share = { version: baseOf(deployment) };
  const { environment } = deployment;
  return { ...goBack(share, deployment), environment, deployedAt: now, by: 'guard', message };
}

/** @throws INVALID_REQUEST */
export function readEnvironment(environment: unknown): string {
  const problem = environmentProblem(environment);
  if (problem === undefined) return environment as string;
  return refuseComponent(
    `\`to\` ${isVersion(environment) ? 'must be the name of an environment, not a version' : problem}`,
  );
}

type Share = Pick<Deployment, 'version' | 'split' | 'rollout'>;

function readShare(given: NewDeployment, before: Deployment | undefined, rules: SplitRules | undefined): Share {
  const { to, version, split, guard, steps, every } = given;
  const isSplit = split !== undefined || guard !== undefined;
  if (!isSplit && (steps !== undefined || every !== undefined))
    return refuseComponent('`steps` and `every` belong to a rollout, which has a `guard`');
  if (isSplit && to === LATEST) return refuseComponent('`latest` is one version: it takes no `split` and no `guard`');
  if (split === undefined) {
    const whole = rules ? (version as string) : readVersion(version);
    return guard === undefined ? { version: whole } : startRollout(whole, given, before);
  }
  if (version !== undefined || guard !== undefined || steps !== undefined || every !== undefined)
    return refuseComponent(
      '`split` has the versions and their shares: leave `version`, `guard`, `steps` and `every` out',
    );
  const problem = splitProblem(split, rules);
  return problem === undefined ? { version: mainVersion(split), split } : refuseComponent(`\`split\` ${problem}`);
}

function startRollout(
  version: string,
  { to, guard, steps = DEFAULT_STEPS, every = DEFAULT_EVERY }: NewDeployment,
  before: Deployment | undefined,
): Share {
  const base = before && baseOf(before);
  if (base === undefined || base === version)
    return refuseComponent(
      `\`guard\` replaces another version in steps, and \`${to}\` has ${base ?? 'none'}: deploy ${version} without it`,
    );
  const problem = guardProblem(guard);
  if (problem !== undefined) return refuseComponent(`\`guard\` ${problem}`);
  if (!areSteps(steps)) return refuseComponent(`\`steps\` ${STEPS_RULE}`);
  if (!isDuration(every) || toMs(every) < MIN_EVERY_MS)
    return refuseComponent(`\`every\` ${DURATION_RULE}, of at least ${MIN_EVERY_MS}`);
  return shareOf({ version, guard: guard as string, steps, step: 0, everyMs: toMs(every) }, base);
}

/** The version that a rollout or a split replaces; otherwise the version. */
export function baseOf({ version, split, previous }: Deployment): string {
  return split ? (previous ?? version) : version;
}

function shareOf(rollout: Rollout, base: string): Share {
  const { version, steps, step } = rollout;
  const share = steps[step] as number;
  if (share === 100) return { version };
  const split = { [base]: 100 - share, [version]: share };
  return { version: mainVersion(split), split, rollout };
}

type History = Pick<Deployment, 'previous' | 'earlier'>;

/** With the versions to which rollbacks lead: those that all executions had, the newest first. */
function replace(share: Share, before: Deployment | undefined): Share & History {
  if (!before) return share;
  return withHistory(share, before.split ? historyOf(before) : [before.version, ...historyOf(before)]);
}

/** A rollback goes back in the history, and never to the version that was rolled back. */
function goBack(share: Share, before: Deployment): Share & History {
  return withHistory(share, historyOf(before));
}

function historyOf({ previous, earlier = [] }: Deployment): readonly string[] {
  return previous === undefined ? [] : [previous, ...earlier];
}

function withHistory(share: Share, history: readonly string[]): Share & History {
  const own = share.split ? undefined : share.version;
  const [previous, ...earlier] = history.filter((version, i) => version !== (i === 0 ? own : history[i - 1]));
  if (previous === undefined) return share;
  return { ...share, previous, ...(earlier.length > 0 && { earlier: earlier.slice(0, MAX_EARLIER) }) };
}

function readBy(by: unknown, { split }: Share, functions: FunctionTable | undefined): string | undefined {
  if (by === undefined) return undefined;
  if (!split) return refuseComponent('`by` decides about a split: pass `split` or `guard` too');
  if (typeof by !== 'string' || !by.includes('${'))
    return refuseComponent('`by` must be an expression that reads the input, such as `${input.userId}`');
  try {
    compileSplitKey(by, functions);
  } catch (error) {
    if (error instanceof ExpressionSyntaxError) return refuseComponent(`\`by\` can't be read: ${error.message}`);
    throw error;
  }
  return by;
}
