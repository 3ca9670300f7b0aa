/** Components: names, versions, environments and references (the specification's Component versions). */

import type { Json } from '../base/json/json.ts';
import { NAME_PATTERN, NAME_RULE } from '../ensemble/name.ts';

export type ComponentKind = 'prompt' | 'template' | 'config' | 'query';
export const COMPONENT_KINDS: readonly ComponentKind[] = ['prompt', 'template', 'config', 'query'];

/** What is known about a component besides its text. All of it is optional. */
export interface ComponentMetadata {
  readonly description?: string;
  /** Of a prompt: the defaults of the `think` agents that use it. */
  readonly provider?: string;
  readonly model?: string;
  readonly temperature?: number;
  readonly maxTokens?: number;
  /** The fields that the text reads. An agent that uses it must have each of them in its input, not null, or the field has a default. */
  readonly variables?: readonly (string | ComponentVariable)[];
  /** The ensembles and agents that use it. For people only. */
  readonly usedBy?: readonly string[];
  readonly tags?: readonly string[];
  readonly owner?: string;
}

/** A field that a text reads, and its value where the input lacks it or has null. */
export interface ComponentVariable {
  readonly name: string;
  readonly default?: Json;
}

export const METADATA_KEYS = [
  ...(['description', 'provider', 'model', 'owner'] as const),
  ...(['temperature', 'maxTokens'] as const),
  ...(['variables', 'usedBy', 'tags'] as const),
] as const satisfies readonly (keyof ComponentMetadata)[];

/** The text of a version, with what was known about the component when the version was created. It never changes. */
export interface ComponentContent {
  readonly kind: ComponentKind;
  readonly content: string;
  readonly metadata: ComponentMetadata;
}

/** A version of a component. Instants are Unix ms. */
export interface ComponentVersion {
  readonly version: string;
  readonly createdAt: number;
  /** Why it was created. */
  readonly message?: string;
  /** Who created it. */
  readonly by?: string;
}

/** The share of each version, in percent. They add up to 100. */
export type Split = Readonly<Record<string, number>>;

/** The version that an environment has. Instants are Unix ms. */
export interface Deployment {
  /** The name of the environment, or `latest`. */
  readonly environment: string;
  /** The version; of several, the one with the largest share. */
  readonly version: string;
  /** The share of each version, in percent. Absent: the version has all. */
  readonly split?: Split;
  /** The expression whose value decides which version of a split an execution gets. Absent: the id of the execution. */
  readonly splitBy?: string;
  /** The split is a rollout, which advances and rolls back by itself. */
  readonly rollout?: Rollout;
  readonly deployedAt: number;
  /** Who deployed it. */
  readonly by?: string;
  /** Why. */
  readonly message?: string;
  /** The version that the environment had before, to which a rollback leads. */
  readonly previous?: string;
  /** The versions before that one, the newest first: those that further rollbacks lead to. At most 20. */
  readonly earlier?: readonly string[];
}

/** A version that replaces another one in steps, while a guard holds. */
export interface Rollout {
  /** The version that is rolled out. */
  readonly version: string;
  /** Such as `failureRate < 2%`: of the executions that used the version in this step. */
  readonly guard: string;
  /** The shares of the version, in percent. The last one is 100. */
  readonly steps: readonly number[];
  /** The index of the current step. */
  readonly step: number;
  /** The shortest time of a step, ms. */
  readonly everyMs: number;
}

/** A version of a component that an execution used, and the reference that led to it. */
export interface UsedComponent {
  readonly kind: ComponentKind;
  readonly name: string;
  /** What the reference asked for: a version, `latest` or an environment. */
  readonly ref: string;
  readonly version: string;
  /** The shares of the versions when the reference was resolved, if the environment had several. */
  readonly split?: Split;
}

/** A version of a component with its text. */
export interface ResolvedComponent extends ComponentContent, UsedComponent {}

export const LATEST = 'latest';
/** The `environment` of the traffic of an ensemble. */
export const TRAFFIC = 'traffic';
/** The largest text of a version, in UTF-16 units. */
export const MAX_CONTENT = 1024 * 1024;
const VERSION_PATTERN = /^v(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})$/;
const ENVIRONMENT_PATTERN = /^[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-])){0,63}$/;
/** Looks like a version, so it must not be the name of an environment. */
const LIKE_VERSION = /^v?\d+(?:\.|$)/;

/** @returns why a value can't be the name of a component */
export function componentNameProblem(name: unknown): string | undefined {
  return typeof name === 'string' && NAME_PATTERN.test(name) ? undefined : `must be a name: ${NAME_RULE}`;
}

/** @returns why a value can't be a version */
export function versionProblem(version: unknown): string | undefined {
  if (isVersion(version)) return undefined;
  const hint = typeof version === 'string' && isVersion(`v${version}`) ? `; write \`v${version}\`` : '';
  return `must be a version such as \`v1.0.0\`${hint}`;
}

/** @returns why a value can't be an environment. `latest` can: a deployment to it is allowed */
export function environmentProblem(environment: unknown): string | undefined {
  if (typeof environment !== 'string' || !ENVIRONMENT_PATTERN.test(environment) || environment.endsWith('.lock'))
    return 'must be the name of an environment, such as `production`: letters, digits, `.`, `_` or `-`';
  return LIKE_VERSION.test(environment) ? 'must be the name of an environment, and looks like a version' : undefined;
}

export function isVersion(text: unknown): text is string {
  return typeof text === 'string' && VERSION_PATTERN.test(text);
}

/** Orders versions, the lowest first. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.slice(1).split('.').map(Number)) as [number[], number[]];
  for (let i = 0; i < 3; i++) if (left[i] !== right[i]) return (left[i] as number) - (right[i] as number);
  return 0;
}

/** A reference `<kind>://<name>@<ref>`. */
export interface ComponentReference {
  readonly kind: ComponentKind;
  readonly name: string;
  /** A version, `latest`, or the name of an environment. */
  readonly ref: string;
}

const REFERENCE = /^(prompt|template|config|query):\/\//;

/** Whether a value is meant as a reference. It may be an invalid one. */
export function isReference(value: unknown): value is string {
  return typeof value === 'string' && REFERENCE.test(value);
}

/** Reads a reference whose expressions are evaluated. */
export function readReference(text: string): { readonly reference: ComponentReference } | { readonly problem: string } {
  const kind = REFERENCE.exec(text)?.[1];
  if (kind === undefined) return { problem: 'must be a reference such as `prompt://greet@production`' };
  const rest = text.slice(kind.length + 3);
  const at = rest.indexOf('@');
  const name = at < 0 ? rest : rest.slice(0, at);
  if (!NAME_PATTERN.test(name)) return { problem: `must name a component after \`${kind}://\`: ${NAME_RULE}` };
  const ref = at < 0 ? '' : rest.slice(at + 1);
  if (ref === '') return { problem: `must say which version, such as \`${kind}://${name}@production\`` };
  if (!isVersion(ref) && environmentProblem(ref) !== undefined)
    return { problem: `must end with a version such as \`v1.0.0\`, \`latest\`, or the name of an environment` };
  return { reference: { kind: kind as ComponentKind, name, ref } };
}
