/** `components.ensure()`: what an app brings with its code is there when it starts, whether it starts the first time or not. */

import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import { equalJson, type Json } from '../../engine/base/json/json.ts';
import type { MaybePromise } from '../../engine/base/maybe-promise.ts';
import { isRecord, refuseUnknownKeys } from '../../engine/base/read-options.ts';
import type { ComponentContent, ComponentMetadata } from '../../engine/component/component.ts';
import { readMetadata, refuseComponent } from '../../engine/component/component-fields.ts';
import type { Component, ComponentCalls, EnsuredComponent, EnsureResult } from './components.ts';

type ReadText = (name: string, version: string) => MaybePromise<ComponentContent | undefined>;

const KEYS: readonly string[] = ['name', 'kind', 'file', 'metadata', 'content', 'version', 'to', 'actor'];
/** Several processes may start at once, and each change of another one is a conflict. */
const MAX_TRIES = 10;

export async function ensureComponents(
  api: ComponentCalls,
  readText: ReadText,
  given: readonly EnsuredComponent[],
): Promise<readonly EnsureResult[]> {
  if (!Array.isArray(given)) return refuseComponent('components.ensure takes a list of components');
  const names = new Set<string>();
  for (const one of given) {
    if (!isRecord(one)) return refuseComponent('components.ensure takes a list of { name, kind, content }');
    refuseUnknownKeys(one, KEYS, 'components.ensure');
    if (names.has(one.name)) return refuseComponent(`components.ensure has component \`${one.name}\` twice`);
    names.add(one.name);
  }
  const results: EnsureResult[] = [];
  for (const one of given) results.push(await ensure(api, readText, one));
  return results;
}

async function ensure(api: ComponentCalls, readText: ReadText, given: EnsuredComponent): Promise<EnsureResult> {
  const { name, content, actor } = given;
  const metadata = readMetadata(given.metadata);
  let created = false;
  const deployedTo: string[] = [];
  for (let tries = 1; ; tries += 1) {
    try {
      await ensureRegistered(api, given, metadata);
      const versions = (await api.versions(name)).map(({ version }) => version);
      const known = await findVersion(versions, readText, given, metadata);
      const version = known ?? given.version ?? nextVersion(versions);
      if (known === undefined) {
        await api.createVersion(name, { version, content, actor });
        created = true;
      }
      const environments = typeof given.to === 'string' ? [given.to] : (given.to ?? []);
      const taken = new Set((await api.deployments(name)).map(({ environment }) => environment));
      for (const to of environments) {
        if (taken.has(to)) continue;
        await api.deploy(name, { to, version, actor }, { ifMatch: 'none' });
        deployedTo.push(to);
      }
      return { name, version, created, deployedTo };
    } catch (error) {
      if (!isOrchestratorError(error, 'CONFLICT') || tries === MAX_TRIES) throw error;
    }
  }
}

async function ensureRegistered(
  api: ComponentCalls,
  given: EnsuredComponent,
  metadata: ComponentMetadata,
): Promise<void> {
  const { name, kind, file } = given;
  const found: Component | undefined = await api.get(name).catch((error: unknown) => {
    if (isOrchestratorError(error, 'NOT_FOUND')) return undefined;
    throw error;
  });
  if (!found) await api.register({ name, kind, file, metadata });
  else if (found.kind !== kind)
    refuseComponent(
      `components.ensure: component \`${name}\` is a ${found.kind}, and not a ${kind}; give the ${kind} another name`,
    );
  else if (found.file !== file || !isSame(found.metadata, metadata))
    await api.update(name, { file, metadata }, { ifMatch: found.tag });
}

/** The highest of the versions with the text and the metadata. @throws INVALID_REQUEST if the version that was asked for has others */
async function findVersion(
  versions: readonly string[],
  readText: ReadText,
  { name, content, version: asked }: EnsuredComponent,
  metadata: ComponentMetadata,
): Promise<string | undefined> {
  for (const version of versions) {
    if (asked !== undefined && version !== asked) continue;
    const found = await readText(name, version);
    if (found && found.content === content && isSame(found.metadata, metadata)) return version;
    if (asked !== undefined) {
      const message = `components.ensure: component \`${name}\` has ${version} with another text or metadata, and a version never changes; write a higher \`version\``;
      throw new OrchestratorError('INVALID_REQUEST', message);
    }
  }
  return undefined;
}

/** @param versions - the highest first */
function nextVersion([highest]: readonly string[]): string {
  if (highest === undefined) return 'v1.0.0';
  const [major, minor, patch = '0'] = highest.slice(1).split('.');
  return `v${major}.${minor}.${Number(patch) + 1}`;
}

function isSame(a: ComponentMetadata, b: ComponentMetadata): boolean {
  return equalJson(a as Json, b as Json);
}
