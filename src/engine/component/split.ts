/** A deployment of several versions: the share of each, and which one a key gets. The same key gets the same version in every process. */

import { hashJson, hashText } from '../base/bytes/hash.ts';
import { compareVersions, type Deployment, isVersion, type Split } from './component.ts';

const MAX_VERSIONS = 10;
/** Shares are decimal fractions, whose sum may be off in the last place. */
const TOLERANCE = 1e-6;
/** How much of the hash of a key counts: 52 bits. */
const DIGITS = 13;

/** @returns why a value can't be a split */
export function splitProblem(split: unknown): string | undefined {
  if (typeof split !== 'object' || split === null || Array.isArray(split))
    return "must be the share of each version in percent, such as { 'v1.2.0': 90, 'v1.3.0': 10 }";
  const shares = Object.entries(split);
  if (shares.length < 2 || shares.length > MAX_VERSIONS)
    return `must have 2 to ${MAX_VERSIONS} versions, not ${shares.length}`;
  for (const [version, share] of shares) {
    if (!isVersion(version)) return `has \`${version}\`, which is not a version such as \`v1.0.0\``;
    if (typeof share !== 'number') return `gives ${version} ${JSON.stringify(share)}, which is not a number`;
    if (!(share > 0 && share < 100)) return `gives ${version} ${String(share)}: a share must be above 0 and below 100`;
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
 * The version that a key gets. The highest version has the lowest numbers: while its share grows, a key that has it keeps it.
 * @param place - what is split: another place divides the keys in another way
 */
export function chooseVersion(split: Split, place: string, key: string): string {
  const number = Number.parseInt(hashText(`${place}\n${key}`).slice(0, DIGITS), 16) / 16 ** DIGITS;
  const versions = Object.keys(split).sort((a, b) => compareVersions(b, a));
  let end = 0;
  for (const version of versions) {
    end += (split[version] as number) / 100;
    if (number < end) return version;
  }
  return versions.at(-1) as string;
}

/** Such as `v1.3.0=10, v1.2.0=90`. */
export function showSplit(split: Split): string {
  const versions = Object.keys(split).sort((a, b) => compareVersions(b, a));
  return versions.map((version) => `${version}=${split[version]}`).join(', ');
}

/** A text that is equal for deployments of the same versions with the same shares. */
export function deploymentTag(deployment: Deployment | undefined): string {
  if (!deployment) return 'none';
  const { version, split } = deployment;
  return split ? `${version}-${hashJson(split).slice(0, 12)}` : version;
}
