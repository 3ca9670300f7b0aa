/** A deployment of several versions: the share of each, and which one a key gets. The same key gets the same version in every process. */

import { hashJson, hashText } from '../base/bytes/hash.ts';
import { compareVersions, type Deployment, isVersion, type Split } from './component.ts';

const MAX_VERSIONS = 10;
/** Shares are decimal fractions, whose sum may be off in the last place. */
const TOLERANCE = 1e-6;
/** How much of the hash of a key counts: 52 bits. */
const DIGITS = 13;

/** The rule of a share, and what the versions of a split are called. */
export interface SplitRules {
  /** @returns why a key of a split can't be a version */
  versionProblem(version: string): string | undefined;
  /** Whether the shares are whole numbers. */
  readonly isWhole: boolean;
}

const OF_COMPONENTS: SplitRules = {
  versionProblem: (version) => (isVersion(version) ? undefined : 'is not a version such as `v1.0.0`'),
  isWhole: false,
};

/** @returns why a value can't be a split */
export function splitProblem(split: unknown, { versionProblem, isWhole } = OF_COMPONENTS): string | undefined {
  if (typeof split !== 'object' || split === null || Array.isArray(split))
    return "must be the share of each version in percent, such as { 'v1.2.0': 90, 'v1.3.0': 10 }";
  const shares = Object.entries(split);
  if (shares.length < 2 || shares.length > MAX_VERSIONS)
    return `must have 2 to ${MAX_VERSIONS} versions, not ${shares.length}`;
  for (const [version, share] of shares) {
    const problem = versionProblem(version);
    if (problem !== undefined) return `has \`${version}\`, which ${problem}`;
    if (typeof share !== 'number') return `gives ${version} ${JSON.stringify(share)}, which is not a number`;
    if (!(share > 0 && share < 100)) return `gives ${version} ${String(share)}: a share must be above 0 and below 100`;
    if (isWhole && !Number.isInteger(share)) return `gives ${version} ${share}: a share must be a whole number`;
  }
  const sum = shares.reduce((before, [, share]) => before + (share as number), 0);
  return Math.abs(sum - 100) < TOLERANCE ? undefined : `must add up to 100, not ${Number(sum.toFixed(6))}`;
}

/** The version with the largest share; of several, the lowest. */
export function mainVersion(split: Split): string {
  const [first] = Object.entries(split).sort(([a, x], [b, y]) => y - x || compareVersions(a, b));
  return (first as [string, number])[0];
}

/**
 * The version that a key gets. The first version has the lowest numbers: while its share grows, a key that has it keeps it.
 * @param place - what is split: another place divides the keys in another way
 * @param versions - of the split, in an order that stays the same. Default: the highest first
 */
export function chooseVersion(split: Split, place: string, key: string, versions = highestFirst(split)): string {
  const number = Number.parseInt(hashText(`${place}\n${key}`).slice(0, DIGITS), 16) / 16 ** DIGITS;
  let end = 0;
  for (const version of versions) {
    end += (split[version] as number) / 100;
    if (number < end) return version;
  }
  return versions.at(-1) as string;
}

function highestFirst(split: Split): string[] {
  return Object.keys(split).sort((a, b) => compareVersions(b, a));
}

/** Such as `v1.3.0=10, v1.2.0=90`. */
export function showSplit(split: Split): string {
  return highestFirst(split)
    .map((version) => `${version}=${split[version]}`)
    .join(', ');
}

/** A text that is equal for deployments of the same versions with the same shares. */
export function deploymentTag(deployment: Deployment | undefined): string {
  if (!deployment) return 'none';
  const { version, split } = deployment;
  return split ? `${version}-${hashJson(split).slice(0, 12)}` : version;
}
