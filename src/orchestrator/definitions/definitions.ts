/** The ensembles and the agents of an orchestrator, as the public `orchestrator.ensembles` and `orchestrator.agents`. */

import type { DefinitionVersion, VersionedDefinition } from '../../engine/ensemble/definition-version.ts';
import type { AgentDefinition, EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import type { ChangeOptions } from '../changes.ts';
import type { SetTraffic } from '../traffic/traffic.ts';

/** A definition with what is known about it. */
export interface DefinitionItem<Definition> {
  readonly name: string;
  readonly description?: string;
  /** The hash of the definition, together with the shared agents that it uses. */
  readonly version: string;
  /** The name of the version for people, such as `v2`, if it was given one. */
  readonly label?: string;
  /** Whether it can be started. A definition in code always can. */
  readonly active: boolean;
  /** `code`: passed to `createOrchestrator`, and fixed at run time. `store`: created at run time, and kept in the storage. */
  readonly source: 'code' | 'store';
  /** Unix ms. For a definition in code: when this process first used it. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly definition: Definition;
}

export type EnsembleItem = DefinitionItem<EnsembleDefinition>;
export type AgentItem = DefinitionItem<AgentDefinition>;

export interface WriteOptions {
  /** Whether the definition may have webhooks, by which others start it. If not, one that has is FORBIDDEN. Default true. */
  readonly webhooks?: boolean | undefined;
}

/** What is said about a version that is stored. */
export interface VersionOptions {
  /** The name of the version for people, such as `v2`. No other version of the definition may have it. */
  readonly label?: string | undefined;
  /** Why. */
  readonly message?: string | undefined;
  /** The commit that has the file. */
  readonly commit?: string | undefined;
  /** Who stores it. */
  readonly actor?: string | undefined;
}

export interface DefinitionRollback extends ChangeOptions, WriteOptions, Pick<VersionOptions, 'message' | 'actor'> {
  /** The label or the hash of a version. */
  readonly to: string;
}

export interface ListOptions {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  /** Only active definitions, or only those that are not. */
  readonly active?: boolean | undefined;
}

/** One page of a listing. */
export type Page<Key extends string, Item> = { readonly [K in Key]: readonly Item[] } & {
  readonly nextCursor?: string;
};

/**
 * Definitions that can be created, changed and deleted at run time. A change counts in every process that uses the storage, from
 * the next start on. Executions that have begun keep the definition with which they began.
 */
export interface Definitions<Key extends string, Item extends DefinitionItem<object>> {
  /**
   * Stores a definition: YAML text, or an object of the same shape.
   * @throws INVALID_DEFINITION; NOT_CONFIGURED; CONFLICT if the name is taken; FORBIDDEN as {@link WriteOptions} says;
   *   INVALID_REQUEST for a wrong label
   */
  create(definition: string | object, options?: WriteOptions & VersionOptions): Promise<Item>;
  /** @throws NOT_FOUND */
  get(name: string): Promise<Item>;
  /** In the order of their names. @throws INVALID_CURSOR; INVALID_REQUEST for an invalid limit */
  list(page?: ListOptions): Promise<Page<Key, Item>>;
  /**
   * Replaces a definition. `ifMatch` is the version that it must have.
   * @throws NOT_FOUND; INVALID_DEFINITION; NOT_CONFIGURED; CONFLICT for a definition in code, for another version, and for a label that
   *   another version has; FORBIDDEN as {@link WriteOptions} says; INVALID_REQUEST for a wrong label
   */
  update(
    name: string,
    definition: string | object,
    options?: ChangeOptions & WriteOptions & VersionOptions,
  ): Promise<Item>;
  /**
   * The versions that are kept, the newest first: those of the last 100 changes. A definition in code has one, and a deleted one has none.
   * @throws NOT_FOUND
   */
  versions(name: string): Promise<readonly DefinitionVersion[]>;
  /** @param ref - `latest`, a label or a hash @throws NOT_FOUND; VERSION_NOT_FOUND */
  version(name: string, ref: string): Promise<VersionedDefinition<Item['definition']>>;
  /**
   * Stores the definition of an earlier version again, as the newest one: all new executions begin with it, whatever their traffic was. It
   * uses the shared agents as they are now.
   * @throws NOT_FOUND; VERSION_NOT_FOUND; otherwise as `update`
   */
  rollback(name: string, options: DefinitionRollback): Promise<Item>;
  /** @throws NOT_FOUND; CONFLICT for a definition in code, for another version, and for an agent that a definition uses */
  delete(name: string, options?: ChangeOptions): Promise<{ readonly name: string; readonly deleted: true }>;
  /** Lets it be started again. @throws NOT_FOUND; CONFLICT for a definition in code, and for another version */
  activate(name: string, options?: ChangeOptions): Promise<Item>;
  /** From now on, starts are refused with NOT_ACTIVE. Executions that have begun continue. @throws as `activate` */
  deactivate(name: string, options?: ChangeOptions): Promise<Item>;
}

/** The ensembles, of which several versions may run side by side. */
export interface Ensembles extends Definitions<'ensembles', EnsembleItem> {
  readonly traffic: SetTraffic;
}
export type Agents = Definitions<'agents', AgentItem>;
