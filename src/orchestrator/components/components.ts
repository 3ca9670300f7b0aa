/**
 * Versioned prompts, templates, configs and queries, as the public `orchestrator.components` (the specification's Component and Component
 * versions).
 */

import { messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import {
  type ComponentContent,
  type ComponentKind,
  type ComponentMetadata,
  type ComponentVersion,
  compareVersions,
  type Deployment,
  MAX_CONTENT,
  type ResolvedComponent,
} from '../../engine/component/component.ts';
import {
  readFilePath,
  readKind,
  readMetadata,
  readName,
  readNote,
  readVersion,
  refuseComponent,
} from '../../engine/component/component-fields.ts';
import type {
  ComponentSource,
  ResolveComponent,
  StoredComponent,
} from '../../engine/component/component-source.port.ts';
import { deploymentTag } from '../../engine/component/split.ts';
import type { TemplateEngine } from '../../engine/component/template-engine.port.ts';
import {
  compileComponentText,
  HAS_TAGS,
  readComponentConfig,
  type TextLanguage,
} from '../../engine/definition/compile/config/compile-references.ts';
import { NAME_PATTERN } from '../../engine/ensemble/name.ts';
import type { FunctionTable } from '../../engine/expression/functions/function-table.ts';
import { ExpressionSyntaxError } from '../../engine/expression/syntax/expression-syntax-error.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import { decodeCursor, encodeCursor, pageLimit } from '../../engine/storage/cursor.ts';
import { alwaysChanged, type ChangeOptions, refuseOtherVersion } from '../changes.ts';
import type { Page } from '../definitions/definitions.ts';
import type { ComponentCache } from './component-cache.ts';
import { DEPLOYMENT_KEYS, type NewDeployment, newDeployment, readEnvironment } from './new-deployment.ts';
import { latestOf, noComponent } from './resolve-component.ts';

/** A component, as it is registered. A change of it can expect its `tag` (`ifMatch`). */
export interface Component extends Omit<StoredComponent, 'versions' | 'deployments'> {
  /** The version that `latest` is. Absent: it has no version. */
  readonly latest?: string;
}

export interface NewComponent {
  readonly name: string;
  readonly kind: ComponentKind;
  /** The file that has its text, relative to the project, with `/`. It is a note: nothing reads it here. */
  readonly file?: string | undefined;
  readonly metadata?: ComponentMetadata | undefined;
}

export interface NewComponentVersion {
  /** Such as `v1.0.0`. */
  readonly version: string;
  readonly content: string;
  /** Why there is a new version. */
  readonly message?: string | undefined;
  /** Who creates it. */
  readonly actor?: string | undefined;
}

export interface ComponentListOptions {
  /** Default 100, at most 250. A larger number counts as 250. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
}

/** A component, the text that it must have, and where it must be deployed. */
export interface EnsuredComponent extends NewComponent {
  readonly content: string;
  /** The version that has this text. Without it, a text that no version has becomes the next patch, beginning with `v1.0.0`. */
  readonly version?: string | undefined;
  /** Environments that get the version if they have none. What is deployed stays. */
  readonly to?: string | readonly string[] | undefined;
  /** Who creates and deploys. */
  readonly actor?: string | undefined;
}

/** What a component has now. */
export interface EnsureResult {
  readonly name: string;
  /** The version with the text. */
  readonly version: string;
  /** Whether this call created the version. */
  readonly created: boolean;
  /** The environments to which this call deployed it. */
  readonly deployedTo: readonly string[];
}

/** The calls of {@link Components} that `ensure` is made of. */
export type ComponentCalls = Omit<Components, 'ensure'>;

/**
 * Components, whose versions are deployed apart from code. A deployment counts at once in this process, and within a second in every other
 * one that uses the same source. An execution keeps the versions that it has used.
 */
export interface Components {
  /**
   * Registers components that are not there, creates a version for each text that none has, and deploys it to environments that have
   * none. A call with the same list changes nothing, so an app calls it at each start, in each process. What was deployed since then stays.
   *
   * @returns for each component the version with its text, and what the call did
   * @throws INVALID_REQUEST, also if the `version` that was asked for has another text, and for a component of another kind
   */
  ensure(components: readonly EnsuredComponent[]): Promise<readonly EnsureResult[]>;
  /** @throws INVALID_REQUEST; CONFLICT if there is a component with this name */
  register(component: NewComponent): Promise<Component>;
  /**
   * Replaces the file and the metadata. Versions keep the metadata with which they were created.
   * @throws INVALID_REQUEST; NOT_FOUND; CONFLICT if `ifMatch` is another tag
   */
  update(name: string, change: Omit<NewComponent, 'name' | 'kind'>, options?: ChangeOptions): Promise<Component>;
  /** @throws NOT_FOUND */
  get(name: string): Promise<Component>;
  /** In the order of their names. @throws INVALID_CURSOR; INVALID_REQUEST for an invalid limit */
  list(page?: ComponentListOptions): Promise<Page<'components', Component>>;
  /**
   * Creates a version, which never changes.
   * @throws INVALID_REQUEST for a version that is not `vMAJOR.MINOR.PATCH`, and for a text that its kind can't have; NOT_FOUND; CONFLICT if
   *   the version exists
   */
  createVersion(name: string, version: NewComponentVersion): Promise<ComponentVersion>;
  /** The highest first. @throws NOT_FOUND */
  versions(name: string): Promise<readonly ComponentVersion[]>;
  /**
   * Deploys a version to an environment, or as `latest`; several versions as a split; or a version in steps, as a rollout with a guard.
   * `ifMatch` is what the environment must have: `none`, its version, or the `ETag` of its deployment over HTTP.
   * @throws INVALID_REQUEST; NOT_FOUND; VERSION_NOT_FOUND; CONFLICT if another change of the same environment came first
   */
  deploy(name: string, deployment: NewDeployment, options?: ChangeOptions): Promise<Deployment>;
  /** What each environment has, by name. @throws NOT_FOUND */
  deployments(name: string): Promise<readonly Deployment[]>;
  /** From now on, the environment has no version. @throws NOT_FOUND, also for an environment without a version; CONFLICT as `deploy` */
  undeploy(
    name: string,
    environment: string,
    options?: ChangeOptions,
  ): Promise<{ readonly environment: string; readonly undeployed: true }>;
  /**
   * Deploys the version that the environment had before. A further rollback goes one version further back.
   * @param about - `from`: the version to roll back. If the environment has another one by now, nothing changes
   * @throws NOT_FOUND for an environment without a version; CONFLICT if it had none before, if it has not the version `from`, and as
   *   `deploy`
   */
  rollback(
    name: string,
    about: Pick<NewDeployment, 'to' | 'message' | 'actor'> & { readonly from?: string | undefined },
    options?: ChangeOptions,
  ): Promise<Deployment>;
  /**
   * The version and the text to which a reference such as `prompt://greet@production` leads now.
   * @param options - `key` decides between the versions of a split: the value of its expression
   * @throws INVALID_REQUEST, also for a split without a `key`; VERSION_NOT_FOUND
   */
  resolve(reference: string, options?: { readonly key?: string }): Promise<ResolvedComponent>;
}

export interface ComponentsDependencies {
  readonly source: ComponentSource;
  readonly cache: ComponentCache;
  readonly clock: Clock;
  readonly resolve: ResolveComponent;
  readonly functions: FunctionTable | undefined;
  readonly templates: TemplateEngine | undefined;
}

export function createComponents({
  source,
  cache,
  clock,
  resolve,
  functions,
  templates,
}: ComponentsDependencies): ComponentCalls {
  const find = async (name: string): Promise<StoredComponent> => {
    // Not from the cache: a change builds on it.
    const found = NAME_PATTERN.test(name) ? await source.read(name) : undefined;
    if (!found) throw noComponent(name);
    return found;
  };

  const move = async (
    { name, deployments }: StoredComponent,
    environment: string,
    deployment: Deployment | undefined,
  ): Promise<void> => {
    const expected = deployments.find((one) => one.environment === environment);
    const isMoved = await source.move(name, { environment, expected, deployment });
    cache.forget(name);
    if (isMoved) return;
    const now = (await find(name)).deployments.find((one) => one.environment === environment);
    const what = now ? shownNow(now) : 'it has no version now';
    const message = `environment \`${environment}\` of component \`${name}\` was changed meanwhile: ${what}; look at it, and try again`;
    throw new OrchestratorError('CONFLICT', message, { details: now ? { version: now.version } : {} });
  };

  /** What another tool has tagged may be no text of its kind. @throws INVALID_REQUEST */
  const checkText = async (name: string, version: string) => {
    const text = await cache.content(name, version);
    try {
      if (text) readContent(text.kind, text.content, text.metadata, { functions, templates });
    } catch (error) {
      refuseComponent(`${name} ${version} can't be deployed: ${messageOf(error)}`);
    }
  };

  const deploy = async (component: StoredComponent, given: NewDeployment, isRollback = false): Promise<Deployment> => {
    const deployment = newDeployment(component, given, { now: clock.now(), functions, isRollback });
    const { version, split = { [version]: 100 } } = deployment;
    for (const one of Object.keys(split)) await checkText(component.name, one);
    await move(component, deployment.environment, deployment);
    return deployment;
  };

  return {
    async register(given) {
      refuseUnknownKeys(given, ['name', 'kind', 'file', 'metadata'], 'components.register');
      const name = readName(given.name);
      const kind = readKind(given.kind);
      const file = readFilePath(given.file);
      const metadata = readMetadata(given.metadata);
      const registration = { name, kind, metadata, ...(file !== undefined && { file }) };
      const made = await source.register(registration, undefined, clock.now());
      if (!made)
        throw new OrchestratorError(
          'CONFLICT',
          `there is already a component \`${name}\`; update it: ensemble component add --replace`,
        );
      cache.forget(name);
      return toComponent(made);
    },
    async update(name, given, options = {}) {
      refuseUnknownKeys(given, ['file', 'metadata'], 'components.update');
      refuseUnknownKeys(options, ['ifMatch'], 'components.update');
      const file = readFilePath(given.file);
      const metadata = readMetadata(given.metadata);
      const found = await find(name);
      refuseOtherVersion(`component \`${name}\``, options, found.tag);
      const registration = { name, kind: found.kind, metadata, ...(file !== undefined && { file }) };
      const made = await source.register(registration, found.tag, clock.now());
      if (!made) throw alwaysChanged(`component \`${name}\``);
      cache.forget(name);
      return toComponent(made);
    },
    get: async (name) => toComponent(await find(name)),
    async list(given = {}) {
      refuseUnknownKeys(given, ['limit', 'cursor'], 'components.list');
      const size = pageLimit(given.limit);
      const after = given.cursor === undefined ? undefined : decodeCursor(given.cursor, 'components', NAME_PATTERN);
      const found = await source.list({ limit: size + 1, ...(after !== undefined && { after }) });
      const page = found.slice(0, size).map(toComponent);
      const last = page.at(-1);
      const isMore = found.length > size && last;
      return { components: page, ...(isMore && { nextCursor: encodeCursor(last.name, 'components') }) };
    },
    async createVersion(name, given) {
      refuseUnknownKeys(given, ['version', 'content', 'message', 'actor'], 'components.createVersion');
      const version = readVersion(given.version);
      const message = readNote('message', given.message);
      const by = readNote('actor', given.actor);
      const { kind, metadata, versions } = await find(name);
      const taken = () =>
        new OrchestratorError(
          'CONFLICT',
          `component \`${name}\` has version ${version}, and a version never changes; create a higher one`,
        );
      if (versions.some((one) => one.version === version)) throw taken();
      const content = readContent(kind, given.content, metadata, { functions, templates });
      const made = {
        ...{ version, createdAt: clock.now() },
        ...(message !== undefined && { message }),
        ...(by !== undefined && { by }),
      };
      if (!(await source.addVersion(name, made, content))) throw taken();
      cache.forget(name);
      return made;
    },
    versions: async (name) => [...(await find(name)).versions].sort((a, b) => compareVersions(b.version, a.version)),
    async deploy(name, given, options = {}) {
      refuseUnknownKeys(given, DEPLOYMENT_KEYS, 'components.deploy');
      refuseUnknownKeys(options, ['ifMatch'], 'components.deploy');
      readEnvironment(given.to);
      if (given.split === undefined) readVersion(given.version);
      const component = await find(name);
      refuseOther(component, given.to, options);
      return deploy(component, given);
    },
    deployments: async (name) =>
      [...(await find(name)).deployments].sort((a, b) => (a.environment < b.environment ? -1 : 1)),
    async undeploy(name, environment, options = {}) {
      refuseUnknownKeys(options, ['ifMatch'], 'components.undeploy');
      const component = await find(name);
      refuseOther(component, environment, options);
      deployedIn(component, environment);
      await move(component, environment, undefined);
      return { environment, undeployed: true };
    },
    async rollback(name, given, options = {}) {
      refuseUnknownKeys(given, ['to', 'from', 'message', 'actor'], 'components.rollback');
      refuseUnknownKeys(options, ['ifMatch'], 'components.rollback');
      const component = await find(name);
      refuseOther(component, given.to, options);
      const { from, ...about } = given;
      const deployed = deployedIn(component, readEnvironment(given.to));
      if (from !== undefined) refuseOtherFrom(component.name, deployed, readVersion(from));
      const { previous } = deployed;
      if (previous !== undefined) return deploy(component, { ...about, version: previous }, true);
      const message = `environment \`${given.to}\` of component \`${name}\` had no other version before; deploy one`;
      throw new OrchestratorError('CONFLICT', message);
    },
    async resolve(reference, options = {}) {
      refuseUnknownKeys(options, ['key'], 'components.resolve');
      const { key } = options;
      if (typeof reference !== 'string')
        return refuseComponent('a reference must be text, such as `prompt://greet@production`');
      if (key !== undefined && (typeof key !== 'string' || key === ''))
        return refuseComponent('`key` must be text, and not empty');
      return (await resolve(reference, key)).component;
    },
  };
}

/** @throws CONFLICT if the environment has another version than the expected one */
function refuseOther({ name, deployments }: StoredComponent, environment: string, options: ChangeOptions): void {
  const found = deployments.find((one) => one.environment === environment);
  refuseOtherVersion(`environment \`${environment}\` of component \`${name}\``, options, deploymentTag(found));
}

/** Two people may roll back the same version: the second one must not go back further. @throws CONFLICT */
function refuseOtherFrom(name: string, deployed: Deployment, from: string): void {
  const { environment, version, split } = deployed;
  if (split ? Object.hasOwn(split, from) : version === from) return;
  const message = `environment \`${environment}\` of component \`${name}\` has not ${from}: ${shownNow(deployed)}; look at it first`;
  throw new OrchestratorError('CONFLICT', message, { details: { version } });
}

/** For messages about a change that came too late. */
function shownNow({ version, by }: Deployment): string {
  return `it has ${version} now${by === undefined ? '' : `, by ${by}`}`;
}

/** @throws NOT_FOUND */
function deployedIn({ name, deployments }: StoredComponent, environment: string): Deployment {
  const found = deployments.find((one) => one.environment === environment);
  if (found) return found;
  const known = deployments.map((one) => `\`${one.environment}\``).join(', ') || 'none';
  const message = `environment \`${environment}\` of component \`${name}\` has no version; environments with one: ${known}`;
  throw new OrchestratorError('NOT_FOUND', message);
}

function toComponent(stored: StoredComponent): Component {
  const { versions: _versions, deployments: _deployments, ...component } = stored;
  const latest = latestOf(stored);
  return { ...component, ...(latest !== undefined && { latest }) };
}

/** @throws INVALID_REQUEST for a text that can't be one of its kind */
function readContent(
  kind: ComponentKind,
  content: unknown,
  metadata: ComponentMetadata,
  language: TextLanguage,
): ComponentContent {
  if (typeof content !== 'string' || content.trim() === '')
    return refuseComponent(`\`content\` must be the text of the ${kind}`);
  if (content.length > MAX_CONTENT)
    return refuseComponent(`\`content\` has ${content.length} characters, and at most ${MAX_CONTENT} are allowed`);
  try {
    if (kind === 'config') readComponentConfig(content);
    else if (language.templates || kind !== 'template' || !HAS_TAGS.test(content))
      // A process that only creates versions may have no language for templates with tags.
      compileComponentText(kind, content, false, language);
  } catch (error) {
    if (error instanceof ExpressionSyntaxError)
      refuseComponent(`\`content\` can't be read as a ${kind}: ${error.message}`);
    throw error;
  }
  return { kind, content, metadata };
}
