/** Where executions are moved: what `to` and `map` name, read once for many executions. */

import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { Storage, StoredDefinition } from '../../engine/storage/storage.port.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import type { NameMap } from './same-steps.ts';

export interface TargetDependencies {
  readonly storage: Pick<Storage, 'executions' | 'definitions'>;
  /** The ensemble with its newest definition. @throws NOT_FOUND, NOT_ACTIVE, NOT_CONFIGURED */
  findNewest(name: string): MaybePromise<LoadedEnsemble>;
  /** The hash that a label or a hash names. @throws VERSION_NOT_FOUND */
  hashOf(ensemble: string, ref: string): MaybePromise<string>;
  restore(definition: StoredDefinition, ensemble: string): MaybePromise<LoadedEnsemble | string>;
}

/** Where executions are moved. */
export interface Targets {
  /** @throws NOT_FOUND, VERSION_NOT_FOUND, NOT_CONFIGURED if one of them can't be used */
  check(ensemble: string): Promise<void>;
  /** @throws as `check` */
  find(ensemble: string, target: string): Promise<LoadedEnsemble>;
  /** Undefined: the execution stays where it is. @throws as `check` */
  of(id: string, ensemble: string): Promise<{ readonly target: LoadedEnsemble; readonly names: NameMap } | undefined>;
}

/** What a `map` says of one ensemble. */
interface ReadMap {
  readonly names: NameMap;
  /** The target of the executions of a version, by its hash. */
  readonly versions: ReadonlyMap<string, string>;
}

/** @returns a function that reads what the options of a move say, once for each ensemble */
export function createReadTargets({ storage, findNewest, hashOf, restore }: TargetDependencies) {
  const { executions, definitions } = storage;

  const restoreTarget = async (ensemble: string, to: string): Promise<LoadedEnsemble> => {
    const current = await orUndefined(findNewest, ensemble);
    if (current?.compiled.stored.version === to) return current;
    const stored = await definitions.get(await hashOf(ensemble, to));
    if (!stored || stored.definition.name !== ensemble) {
      const message = `the store has no definition ${to} of ensemble \`${ensemble}\``;
      throw new OrchestratorError('VERSION_NOT_FOUND', message);
    }
    const loaded = await restore(stored, ensemble);
    if (typeof loaded !== 'string') return loaded;
    throw new OrchestratorError('NOT_CONFIGURED', `this process can't use definition ${to}: ${loaded}`);
  };

  /** The hash of a version. Undefined for any other text. */
  const versionOf = async (ensemble: string, ref: string): Promise<string | undefined> => {
    try {
      return await hashOf(ensemble, ref);
    } catch (error) {
      if (isOrchestratorError(error, 'VERSION_NOT_FOUND')) return undefined;
      throw error;
    }
  };

  /** A map has names, and versions that are moved to others. */
  const readMap = async (ensemble: string, map: NameMap = {}): Promise<ReadMap> => {
    const names: Record<string, string> = {};
    const versions = new Map<string, string>();
    for (const [from, name] of Object.entries(map)) {
      const version = await versionOf(ensemble, from);
      const isVersion = version !== undefined && (name === 'latest' || (await versionOf(ensemble, name)) !== undefined);
      if (isVersion) versions.set(version, name);
      else names[from] = name;
    }
    return { names, versions };
  };

  return ({ to, map }: { readonly to?: string | undefined; readonly map?: NameMap | undefined }): Targets => {
    const maps = new Map<string, Promise<ReadMap>>();
    const loaded = new Map<string, Promise<LoadedEnsemble>>();
    const mapOf = (ensemble: string) => kept(maps, ensemble, () => readMap(ensemble, map));
    const find = async (ensemble: string, target: string): Promise<LoadedEnsemble> =>
      // The newest may be another one by now.
      target === 'latest'
        ? findNewest(ensemble)
        : kept(loaded, `${target} ${ensemble}`, () => restoreTarget(ensemble, target));
    /** Of executions whose version the map does not have. Undefined: they are not moved. */
    const restOf = ({ versions }: ReadMap) => to ?? (versions.size > 0 ? undefined : 'latest');
    return {
      find,
      async check(ensemble) {
        const read = await mapOf(ensemble);
        const rest = restOf(read);
        for (const target of [...read.versions.values(), ...(rest === undefined ? [] : [rest])])
          await find(ensemble, target);
      },
      async of(id, ensemble) {
        const read = await mapOf(ensemble);
        const pinned = read.versions.size > 0 ? await executions.getPinned(id) : undefined;
        const target = (pinned && read.versions.get(pinned.version)) ?? restOf(read);
        return target === undefined ? undefined : { target: await find(ensemble, target), names: read.names };
      },
    };
  };
}

/** Why there is nothing to move an execution to. */
export const NO_TARGET: ReadonlySet<string> = new Set([
  'NOT_FOUND',
  'VERSION_NOT_FOUND',
  'NOT_ACTIVE',
  'NOT_CONFIGURED',
]);

async function orUndefined(find: TargetDependencies['findNewest'], name: string): Promise<LoadedEnsemble | undefined> {
  try {
    return await find(name);
  } catch (error) {
    if (isOrchestratorError(error) && NO_TARGET.has(error.code)) return undefined;
    throw error;
  }
}

/** What is known under a key, or is made now. What fails is made again. */
function kept<T>(all: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  const known = all.get(key) ?? make();
  all.set(key, known);
  known.catch(() => all.delete(key));
  return known;
}
