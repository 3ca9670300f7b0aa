/** Finds the version and the text to which a reference leads (the specification's reference syntax and its 'version not found'). */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { andThen, type MaybePromise } from '../../engine/base/maybe-promise.ts';
import { listOfNames, quoted } from '../../engine/base/wording.ts';
import {
  type ComponentReference,
  compareVersions,
  type Deployment,
  isVersion,
  LATEST,
  readReference,
  type Split,
} from '../../engine/component/component.ts';
import type {
  Resolution,
  ResolveComponent,
  SplitSubject,
  StoredComponent,
} from '../../engine/component/component-source.port.ts';
import { chooseVersion, showSplit } from '../../engine/component/split.ts';
import type { ComponentCache } from './component-cache.ts';
import type { ReadSplitKey } from './split-key.ts';

export function resolveComponents(cache: ComponentCache, readKey: ReadSplitKey): ResolveComponent {
  /** By reference. It holds while this process has not read the component again. */
  const known = new Map<string, { readonly stored: StoredComponent; readonly resolution: Resolution }>();

  const resolve = (
    text: string,
    reference: ComponentReference,
    component: StoredComponent | undefined,
    subject: SplitSubject | string | undefined,
  ): MaybePromise<Resolution> => {
    const { name, ref } = reference;
    const { version: main, split, splitBy } = versionOf(reference, component);
    const version = split ? chooseVersion(split, `${name}@${ref}`, keyOf(text, split, splitBy, subject)) : main;
    return andThen(cache.content(name, version), (content) => {
      if (!content) throw notFound(reference, component, 'its text is not stored');
      const used = { kind: content.kind, name, ref, version, ...(split && { split }) };
      const resolution = { component: { ...content, ...used }, used };
      if (split || !component) return resolution;
      if (known.size >= MAX_KNOWN) known.clear();
      known.set(text, { stored: component, resolution });
      return resolution;
    });
  };

  return (text, subject) => {
    const before = known.get(text);
    if (before && cache.read(before.stored.name) === before.stored) return before.resolution;
    const read = readReference(text);
    if ('problem' in read) throw new OrchestratorError('INVALID_REQUEST', `${quoted(text)} ${read.problem}`);
    const { reference } = read;
    return andThen(cache.read(reference.name), (component) => resolve(text, reference, component, subject));
  };

  function keyOf(
    text: string,
    split: Split,
    by: string | undefined,
    subject: SplitSubject | string | undefined,
  ): string {
    if (typeof subject === 'string') return subject;
    if (subject) return (by === undefined ? undefined : readKey(by, subject)) ?? subject.executionId;
    const message = `${text} leads to several versions (${showSplit(split)}): pass the \`key\` that decides between them`;
    throw new OrchestratorError('INVALID_REQUEST', message);
  }
}

/**
 * The version that `latest` is: the one that was deployed to `latest`, if that is newer than the highest version; otherwise the highest one.
 */
export function latestOf({
  versions,
  deployments,
}: Pick<StoredComponent, 'versions' | 'deployments'>): string | undefined {
  const [highest] = [...versions].sort((a, b) => compareVersions(b.version, a.version));
  const deployed = deployments.find(({ environment }) => environment === LATEST);
  return deployed && highest && deployed.deployedAt >= highest.createdAt ? deployed.version : highest?.version;
}

type Found = Pick<Deployment, 'version' | 'split' | 'splitBy'>;

/** @throws VERSION_NOT_FOUND */
function versionOf(reference: ComponentReference, component: StoredComponent | undefined): Found {
  const { kind, name, ref } = reference;
  if (!component)
    throw notFound(
      reference,
      component,
      `there is no component ${quoted(name)}; register it: ${COMMAND} add ${name} FILE --kind ${kind}`,
    );
  if (component.kind !== kind)
    throw notFound(reference, component, `it is a ${component.kind}; write \`${component.kind}://${name}@${ref}\``);
  if (isVersion(ref)) {
    if (component.versions.some(({ version }) => version === ref)) return { version: ref };
    throw notFound(reference, component, `create it: ${COMMAND} tag ${name} ${ref}`);
  }
  if (ref === LATEST) {
    const latest = latestOf(component);
    if (latest !== undefined) return { version: latest };
    throw notFound(reference, component, `create one: ${COMMAND} tag ${name} v1.0.0`);
  }
  const deployed = component.deployments.find(({ environment }) => environment === ref);
  if (deployed) return deployed;
  const version = latestOf(component) ?? 'VERSION';
  throw notFound(reference, component, `deploy one: ${COMMAND} deploy ${name} ${version} --to ${ref}`);
}

const MAX_KNOWN = 10_000;
const COMMAND = 'ensemble component';

function notFound(
  { kind, name, ref }: ComponentReference,
  component: StoredComponent | undefined,
  remedy: string,
): OrchestratorError {
  const versions = highestFirst(component?.versions ?? []);
  const environments = (component?.deployments ?? []).map(
    ({ environment, version, split }) => `${environment} (${split ? showSplit(split) : version})`,
  );
  const known = component ? `; versions: ${listOfNames(versions)}; environments: ${listOfNames(environments)}` : '';
  const message = `${kind}://${name}@${ref} leads to no version: ${remedy}${known}`;
  return new OrchestratorError('VERSION_NOT_FOUND', message, { details: { component: name, ref, versions } });
}

/** A deployment of a version that does not exist. */
export function noVersion(name: string, version: string, versions: StoredComponent['versions']): OrchestratorError {
  const known = highestFirst(versions);
  const message = `component \`${name}\` has no version ${version}; create it: ${COMMAND} tag ${name} ${version}; versions: ${listOfNames(known)}`;
  return new OrchestratorError('VERSION_NOT_FOUND', message, {
    details: { component: name, ref: version, versions: known },
  });
}

export function noComponent(name: string): OrchestratorError {
  return new OrchestratorError(
    'NOT_FOUND',
    `there is no component ${quoted(name)}; register it: ${COMMAND} add NAME FILE`,
  );
}

function highestFirst(versions: StoredComponent['versions']): readonly string[] {
  return versions.map(({ version }) => version).sort((a, b) => compareVersions(b, a));
}
