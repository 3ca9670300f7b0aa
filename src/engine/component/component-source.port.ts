/** Where components are kept: a storage, or a git repository. It decides nothing: names, versions and deployments are checked by the caller. */

import type { Json } from '../base/json/json.ts';
import type { WithReady } from '../host/with-ready.port.ts';
import type { MaybePromise } from '../operation/operation.port.ts';
import type {
  ComponentContent,
  ComponentKind,
  ComponentMetadata,
  ComponentVersion,
  Deployment,
  ResolvedComponent,
  UsedComponent,
} from './component.ts';

/** What a source knows of a component. Instants are Unix ms. */
export interface StoredComponent {
  readonly name: string;
  readonly kind: ComponentKind;
  /** The file that has its text, relative to the project, with `/`. */
  readonly file?: string;
  readonly metadata: ComponentMetadata;
  /** Absent: the source does not keep it. */
  readonly createdAt?: number;
  /** Absent: the source does not keep it. */
  readonly updatedAt?: number;
  /** Equal for the same kind, file and metadata. */
  readonly tag: string;
  /** In any order. */
  readonly versions: readonly ComponentVersion[];
  /** In any order. */
  readonly deployments: readonly Deployment[];
}

/** What a registration sets. */
export type Registration = Pick<StoredComponent, 'name' | 'kind' | 'file' | 'metadata'>;

/** A change of a deployment, if it is what the caller has read. */
export interface DeploymentChange {
  readonly environment: string;
  /** The deployment that the caller has read. Undefined: there was none. */
  readonly expected: Deployment | undefined;
  /** Undefined: the environment has no version any more. */
  readonly deployment: Deployment | undefined;
}

/**
 * Each method is one atomic operation. A change that is returned as made is seen by each later read of every process. A source that
 * can't be reached rejects.
 */
export interface ComponentSource extends WithReady {
  read(name: string): MaybePromise<StoredComponent | undefined>;
  /** In the order of their names. `after`: only names after this one. */
  list(page: { readonly limit: number; readonly after?: string }): MaybePromise<readonly StoredComponent[]>;
  /** The text of a version. It is the same on every call. */
  content(name: string, version: string): MaybePromise<ComponentContent | undefined>;
  /**
   * Registers a component, or replaces what is registered: not its kind, its versions or its deployments.
   * @param expected - the tag that the caller has read. Undefined: the component must be new
   * @returns undefined if the component is not what the caller has read
   */
  register(
    component: Registration,
    expected: string | undefined,
    now: number,
  ): MaybePromise<StoredComponent | undefined>;
  /** Adds a version. @returns false if the component has it, or is not registered */
  addVersion(name: string, version: ComponentVersion, content: ComponentContent): MaybePromise<boolean>;
  /** @returns false if the deployment is not what the caller has read, or the version does not exist */
  move(name: string, change: DeploymentChange): MaybePromise<boolean>;
}

/** Who asks for a component: decides which version of a split it gets. */
export interface SplitSubject {
  /** The input of the execution, which the expression of the split reads. */
  readonly input: Json;
  /** The id of the execution: the key, if the split has no expression, or its value is null. */
  readonly executionId: string;
}

/**
 * Finds the version and the text to which a reference leads now.
 * @param subject - an execution, or the key itself. Absent: a split is refused
 * @throws INVALID_REQUEST; VERSION_NOT_FOUND; what the source throws
 */
export type ResolveComponent = (reference: string, subject?: SplitSubject | string) => MaybePromise<Resolution>;

/** Where a reference leads. The same object as before, if nothing has changed. */
export interface Resolution {
  readonly component: ResolvedComponent;
  /** What the record of an execution has of it. */
  readonly used: UsedComponent;
}
