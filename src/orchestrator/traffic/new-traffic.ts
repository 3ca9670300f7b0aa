/** Reads what a caller says about the traffic of an ensemble, with the words and the rules of a deployment. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import { type Deployment, type Split, TRAFFIC } from '../../engine/component/component.ts';
import { guardProblem } from '../../engine/component/guard.ts';
import type { SplitRules } from '../../engine/component/split.ts';
import { findVersion, LATEST_VERSION, noSuchVersion } from '../../engine/ensemble/definition-version.ts';
import type { Traffic } from '../../engine/ensemble/traffic.ts';
import type { FunctionTable } from '../../engine/expression/functions/function-table.ts';
import { deploy, DEPLOYMENT_KEYS, type NewDeployment } from '../components/new-deployment.ts';
import { versionsOf } from '../definitions/catalog.ts';
import type { StoredItem } from '../definitions/stored-definitions.ts';

/** Versions are `latest`, labels or hashes. */
export interface NewTraffic extends Omit<NewDeployment, 'to'> {
  /**
   * The version that all executions run, at the end of a rollout. `latest` without a `guard`: the newest version at each start, as without
   * traffic.
   */
  readonly version?: string | undefined;
  /** The share of each of several versions in percent: whole numbers that add up to 100, such as `{ v1: 90, v2: 10 }`. */
  readonly split?: NewDeployment['split'];
  /**
   * With `version`, a rollout as of a component. With `split`, the shares stay, and as soon as more executions of a smaller share have failed
   * than the guard allows, all executions run the version with the largest share.
   */
  readonly guard?: string | undefined;
  /** A version that runs dry after each execution, with its input and its results. See `EnsembleTraffic.shadowed`. */
  readonly shadow?: string | undefined;
}

const KEYS = [...DEPLOYMENT_KEYS.filter((key) => key !== 'to'), 'shadow'];

const RULES: SplitRules = { versionProblem: () => undefined, isWhole: true };

/** @throws INVALID_REQUEST, VERSION_NOT_FOUND */
export function newTraffic(
  item: StoredItem,
  given: NewTraffic,
  { now, functions }: { readonly now: number; readonly functions: FunctionTable | undefined },
): Traffic {
  const { split, guard, shadow, ...rest } = readKeys(given);
  const find = (ref: unknown): string => {
    const known = versionsOf(item);
    const found = findVersion(known, String(ref));
    if (found) return found.version;
    throw noSuchVersion(`ensemble \`${item.name}\``, String(ref), known);
  };
  const newest = given.version === undefined || given.version === LATEST_VERSION;
  const isLatest = split === undefined && guard === undefined && newest;
  const shares = split && resolveSplit(split, find, item);
  const version = isLatest ? LATEST_VERSION : rest.version === undefined ? undefined : find(rest.version);
  const before = asDeployed(item);
  if (version !== undefined && guard !== undefined && !split && before?.version === version && !before.split)
    throw invalid(
      `\`guard\` replaces another version in steps, and all executions run ${given.version} already; to begin, let them run another one: { version: 'v1' }`,
    );
  const to = { ...rest, to: TRAFFIC, ...(version !== undefined && { version }) };
  const how = { now, functions, rules: RULES };
  const made = shares
    ? fixedShares(deploy({ ...to, split: shares }, before, how), shares, guard)
    : deploy({ ...to, ...(guard !== undefined && { guard }) }, before, how);
  const known = { ...made, ...(shadow !== undefined && { shadow: find(shadow) }) };
  return { ...known, labels: labelsOf(item, known) };
}

function readKeys(given: NewTraffic): NewTraffic {
  if (typeof given !== 'object' || given === null) throw invalid('traffic needs `version`, `split` or `shadow`');
  refuseUnknownKeys(given, KEYS, 'ensembles.traffic');
  const { version, split, guard, shadow, steps } = given;
  if (version === undefined && split === undefined && shadow === undefined)
    throw invalid('traffic needs `version`, `split` or `shadow`');
  if (version === undefined && split === undefined && guard !== undefined)
    throw invalid('`guard` watches a `version` that is rolled out, or a `split`: name one of them');
  if (steps?.some((share) => !Number.isInteger(share))) throw invalid('`steps` must be whole numbers');
  return given;
}

/** The shares by hash, the newest version first. */
function resolveSplit(
  split: NonNullable<NewTraffic['split']>,
  find: (ref: string) => string,
  item: StoredItem,
): Record<string, number> {
  if (typeof split !== 'object' || split === null || Array.isArray(split))
    throw invalid('`split` must be the share of each version in percent, such as { v1: 90, v2: 10 }');
  const shares = new Map<string, number>();
  for (const [ref, share] of Object.entries(split)) {
    const version = find(ref);
    if (shares.has(version)) throw invalid(`\`split\` names version ${ref} twice: it is ${version}`);
    shares.set(version, share);
  }
  const order = [...new Set(versionsOf(item).map(({ version }) => version))];
  return Object.fromEntries([...shares].sort(([a], [b]) => order.indexOf(a) - order.indexOf(b)));
}

/** What executions run now, as a deployment. Without traffic, it is the newest version. */
function asDeployed({ traffic, version }: StoredItem): Traffic | undefined {
  const now = traffic ?? { environment: TRAFFIC, version: LATEST_VERSION, deployedAt: 0, labels: {} };
  return now.version === LATEST_VERSION ? { ...now, version } : now;
}

/** A broken guard leads to the version with the largest share; of several, the oldest. */
function fixedShares(made: Deployment, shares: Split, guard: string | undefined): Omit<Traffic, 'labels'> {
  const [[version] = ['']] = Object.entries(shares)
    .reverse()
    .sort(([, a], [, b]) => b - a);
  if (guard === undefined) return { ...made, version };
  const problem = guardProblem(guard);
  if (problem !== undefined) throw invalid(`\`guard\` ${problem}`);
  return { ...made, version, guard, previous: version };
}

function labelsOf(item: StoredItem, made: Omit<Traffic, 'labels'>) {
  const { version, split = {}, shadow, rollout, previous, earlier = [] } = made;
  const used = new Set([version, ...Object.keys(split), shadow, rollout?.version, previous, ...earlier]);
  const labels: Record<string, string> = {};
  for (const { version: hash, label } of versionsOf(item))
    if (used.has(hash) && label !== undefined) labels[hash] ??= label;
  return labels;
}

function invalid(message: string): OrchestratorError {
  return new OrchestratorError('INVALID_REQUEST', message);
}
