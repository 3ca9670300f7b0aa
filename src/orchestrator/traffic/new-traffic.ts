/** Reads what a caller says about the traffic of an ensemble, with the words and the rules of a deployment. */

import { invalid } from '../../engine/base/errors.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import { type Deployment, type Split, TRAFFIC } from '../../engine/component/component.ts';
import { readNote } from '../../engine/component/component-fields.ts';
import { guardProblem } from '../../engine/component/guard.ts';
import { type SplitRules, splitProblem } from '../../engine/component/split.ts';
import { findVersion, LATEST_VERSION, noSuchVersion } from '../../engine/ensemble/definition-version.ts';
import { namedIn, type Traffic } from '../../engine/ensemble/traffic.ts';
import type { FunctionTable } from '../../engine/expression/functions/function-table.ts';
import { baseOf, DEPLOYMENT_KEYS, deploy, type NewDeployment } from '../components/new-deployment.ts';
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
  /**
   * A version that runs dry after each execution, with its input and its results. See `EnsembleTraffic.shadowed`. Without `version` and
   * `split`, nothing else changes.
   */
  readonly shadow?: string | undefined;
  /** Whether the versions may run for callers of webhooks. If not, an ensemble that has one is FORBIDDEN. Default true. */
  readonly webhooks?: boolean | undefined;
}

const KEYS = [...DEPLOYMENT_KEYS.filter((key) => key !== 'to'), 'shadow', 'webhooks'];

const RULES: SplitRules = { versionProblem: () => undefined, isWhole: true };

/** @throws INVALID_REQUEST, VERSION_NOT_FOUND */
export function newTraffic(
  item: StoredItem,
  given: NewTraffic,
  { now, functions }: { readonly now: number; readonly functions: FunctionTable | undefined },
): Traffic {
  const { shadow } = readKeys(given);
  /** A version that has several labels is called as the caller calls it. */
  const named = new Map<string, string>();
  const find = (ref: string): string => {
    const known = versionsOf(item);
    const found = findVersion(known, ref);
    if (found?.label === ref) named.set(found.version, ref);
    if (found) return found.version;
    throw noSuchVersion(`ensemble \`${item.name}\``, ref, known);
  };
  const before = item.traffic ?? { environment: TRAFFIC, version: LATEST_VERSION, deployedAt: now, labels: {} };
  const beside = shadow === undefined ? {} : shadowOf(find(shadow), before, now);
  const isKept = given.version === undefined && given.split === undefined;
  const made = isKept ? withNotes(before, given) : newShares(item, before, given, { now, functions, find });
  const { shadow: _shadow, shadowSince: _since, ...shares } = made as Traffic;
  const known = { ...shares, ...beside };
  return { ...known, labels: { ...labelsOf(item, known), ...Object.fromEntries(named) } };
}

function withNotes(traffic: Traffic, { message, actor }: NewTraffic): Omit<Traffic, 'labels'> {
  const [note, by] = [readNote('message', message), readNote('actor', actor)];
  return { ...traffic, ...(note !== undefined && { message: note }), ...(by !== undefined && { by }) };
}

function shadowOf(shadow: string, before: Traffic, now: number): Pick<Traffic, 'shadow' | 'shadowSince'> {
  return { shadow, shadowSince: before.shadow === shadow ? (before.shadowSince ?? now) : now };
}

interface How {
  readonly now: number;
  readonly functions: FunctionTable | undefined;
  find(ref: string): string;
}

function newShares(
  item: StoredItem,
  traffic: Traffic,
  { split, guard, shadow: _shadow, webhooks: _webhooks, version: given, ...rest }: NewTraffic,
  { now, functions, find }: How,
): Omit<Traffic, 'labels'> {
  const how = { now, functions, rules: RULES };
  // Without traffic, all executions run the newest version.
  const before = traffic.version === LATEST_VERSION ? { ...traffic, version: item.version } : traffic;
  if (split !== undefined) {
    if (given !== undefined || rest.steps !== undefined || rest.every !== undefined)
      throw invalid('`split` has the versions and their shares: leave `version`, `steps` and `every` out');
    const shares = resolveSplit(split, find, item);
    return fixedShares(deploy({ ...rest, to: TRAFFIC, split: shares }, before, how), shares, guard);
  }
  const isLatest = given === LATEST_VERSION && guard === undefined;
  const version = isLatest ? LATEST_VERSION : find(given as string);
  if (guard !== undefined && baseOf(before) === version)
    throw invalid(
      `\`guard\` replaces another version in steps, and executions run ${given} already; to begin, let them run another one: { version: 'v1' }`,
    );
  return deploy({ ...rest, to: TRAFFIC, version, ...(guard !== undefined && { guard }) }, before, how);
}

function readKeys(given: NewTraffic): NewTraffic {
  if (typeof given !== 'object' || given === null) throw invalid('traffic needs `version`, `split` or `shadow`');
  refuseUnknownKeys(given, KEYS, 'ensembles.traffic');
  const { version, split, shadow, by, guard, steps, every } = given;
  if (version === undefined && split === undefined && shadow === undefined && guard === undefined)
    throw invalid('traffic needs `version`, `split` or `shadow`');
  for (const [key, value] of Object.entries({ version, shadow }))
    if (value !== undefined && typeof value !== 'string')
      throw invalid(`\`${key}\` must be \`latest\`, a label or a hash`);
  const shares = Object.entries({ by, guard, steps, every });
  const [other] = shares.find(([, value]) => value !== undefined) ?? [];
  if (version === undefined && split === undefined && other !== undefined)
    throw invalid(`\`${other}\` is about a \`version\` or a \`split\`: name one of them`);
  // What is wrong is said in the words of the caller, before its versions are looked up.
  const problem = split === undefined ? undefined : splitProblem(split, RULES);
  if (problem !== undefined) throw invalid(`\`split\` ${problem}`);
  const wrongGuard = guard === undefined ? undefined : guardProblem(guard);
  if (wrongGuard !== undefined) throw invalid(`\`guard\` ${wrongGuard}`);
  if (Array.isArray(steps) && steps.some((share) => !Number.isInteger(share)))
    throw invalid('`steps` must be whole numbers');
  return given;
}

/** The shares by hash, the newest version first. */
function resolveSplit(
  split: NonNullable<NewTraffic['split']>,
  find: (ref: string) => string,
  item: StoredItem,
): Record<string, number> {
  const shares = new Map<string, number>();
  for (const [ref, share] of Object.entries(split)) {
    const version = find(ref);
    if (shares.has(version)) throw invalid(`\`split\` names version ${ref} twice: it is ${version}`);
    shares.set(version, share);
  }
  // By the first time that each was stored, which nothing changes later: a rollback stores a version again.
  const order = [
    ...new Set(
      versionsOf(item)
        .map(({ version }) => version)
        .reverse(),
    ),
  ];
  return Object.fromEntries([...shares].sort(([a], [b]) => order.indexOf(b) - order.indexOf(a)));
}

/** A broken guard leads to the version with the largest share; of several, the oldest. */
function fixedShares(made: Deployment, shares: Split, guard: string | undefined): Omit<Traffic, 'labels'> {
  const [[version] = ['']] = Object.entries(shares)
    .reverse()
    .sort(([, a], [, b]) => b - a);
  return { ...made, version, ...(guard !== undefined && { guard }), previous: version };
}

function labelsOf(item: StoredItem, made: Omit<Traffic, 'labels'>) {
  const used = new Set(namedIn(made));
  const labels: Record<string, string> = {};
  for (const { version: hash, label } of versionsOf(item))
    if (used.has(hash) && label !== undefined) labels[hash] ??= label;
  return labels;
}
