/** The traffic of a stored ensemble: which of its versions new executions run. Pure. */

import { type Deployment, type Split, TRAFFIC } from '../component/component.ts';
import { chooseVersion } from '../component/split.ts';
import { LATEST_VERSION } from './definition-version.ts';

/** What is stored of it. Versions are hashes; `latest` is the newest one at each start. */
export interface Traffic extends Deployment {
  /** Of shares that stay: which share of the executions of each version but the largest may fail. */
  readonly guard?: string | undefined;
  /** The version that runs dry after each execution. */
  readonly shadow?: string | undefined;
  /** Unix ms from which on it does. */
  readonly shadowSince?: number | undefined;
  /** The labels of the versions. */
  readonly labels: Readonly<Record<string, string>>;
}

/** What an execution has of the traffic that chose its version. */
export interface TrafficMark {
  /** The shares when it began, by label or hash. */
  readonly split?: Split;
  /** The hash of the version that runs dry after its end. */
  readonly shadow?: string;
}

/** Executions follow the newest version, and there is no shadow. */
export function isPlain({ version, split, shadow }: Traffic): boolean {
  return version === LATEST_VERSION && split === undefined && shadow === undefined;
}

/** The versions that executions may run. */
export function versionsIn({ version, split }: Traffic): readonly string[] {
  return split ? Object.keys(split) : [version];
}

/** All versions that it names. */
export function namedIn({
  version,
  split = {},
  shadow,
  rollout,
  previous,
  earlier = [],
}: Omit<Traffic, 'labels'>): readonly string[] {
  const named = [version, ...Object.keys(split), shadow, rollout?.version, previous, ...earlier];
  return named.filter((one) => one !== undefined);
}

/** @param key - the same key gets the same version, in every process */
export function chosenVersion({ version, split, rollout }: Traffic, ensemble: string, key: string): string {
  if (!split) return version;
  const versions = Object.keys(split);
  // The share of a version that is rolled out grows: who has it keeps it.
  const order = rollout ? [rollout.version, ...versions.filter((one) => one !== rollout.version)] : versions;
  return chooseVersion(split, `${ensemble}@${TRAFFIC}`, key, order);
}

/** The label of a version, or its hash. */
export function nameOfVersion({ labels }: Pick<Traffic, 'labels'>, version: string): string {
  return labels[version] ?? version;
}

/** The shares by label or hash. */
export function namedSplit(traffic: Traffic): Split | undefined {
  const { split } = traffic;
  if (!split) return undefined;
  return Object.fromEntries(Object.entries(split).map(([version, share]) => [nameOfVersion(traffic, version), share]));
}
