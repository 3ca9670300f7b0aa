/** The versions of a stored ensemble that its executions may run, loaded in this process, and the choice between them. */

import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import { copyJson, type Json } from '../../engine/base/json/json.ts';
import { LATEST_VERSION } from '../../engine/ensemble/definition-version.ts';
import {
  chosenVersion,
  namedSplit,
  nameOfVersion,
  type Traffic,
  type TrafficMark,
  versionsIn,
} from '../../engine/ensemble/traffic.ts';
import type { ExpectedDocument } from '../../engine/execution/stored-execution.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { StoredDefinition } from '../../engine/storage/storage.port.ts';
import type { ReadSplitKey } from '../components/split-key.ts';
import type { LoadedEnsemble, LoadedTraffic } from '../definitions/load-definitions.ts';

export interface TrafficLoader {
  /** The definition with a hash. */
  read(version: string): MaybePromise<StoredDefinition | undefined>;
  /** @throws INVALID_DEFINITION, NOT_CONFIGURED */
  load(definition: StoredDefinition): LoadedEnsemble;
  readonly readKey: ReadSplitKey;
}

/** An ensemble of the store, as it is now. */
export interface CurrentEnsemble {
  readonly name: string;
  readonly traffic: Traffic;
  /** The hash of its newest definition. */
  readonly version: string;
  readonly expects: ExpectedDocument;
  /** Compiles its newest definition. @throws INVALID_DEFINITION, NOT_CONFIGURED */
  load(): Promise<LoadedEnsemble>;
}

/**
 * @returns the newest version; or if this process can't run that, and its executions need not, the one with the largest share
 * @throws as `load`
 */
export async function loadTraffic(current: CurrentEnsemble, loader: TrafficLoader): Promise<LoadedEnsemble> {
  const { name, traffic: stored, version: newest, expects } = current;
  const split = namedSplit(stored);
  const { shadow } = stored;
  const mark: TrafficMark | undefined =
    split || shadow !== undefined ? { ...(split && { split }), ...(shadow !== undefined && { shadow }) } : undefined;

  let newestLoaded: Promise<LoadedEnsemble> | undefined;
  const loadNewest = () => (newestLoaded ??= current.load());

  const find = async (version: string): Promise<LoadedEnsemble | OrchestratorError> => {
    const what = `version ${nameOfVersion(stored, version)} of ensemble \`${name}\``;
    try {
      const latest = version === LATEST_VERSION || version === newest ? await loadNewest() : undefined;
      // Other shared agents in code make another version of the same definition.
      if (latest && (version === LATEST_VERSION || latest.compiled.stored.version === version)) return latest;
      const definition = await loader.read(version);
      return definition ? loader.load(definition) : new OrchestratorError('INTERNAL', `${what} is not stored`);
    } catch (error) {
      if (!isOrchestratorError(error) || error.retryable) throw error;
      return new OrchestratorError('NOT_CONFIGURED', `this process can't run ${what}: ${error.message}`);
    }
  };

  const versions = new Map<string, LoadedEnsemble | OrchestratorError>();
  for (const version of versionsIn(stored)) {
    const found = await find(version);
    // One object for all starts: what the engine makes of it is kept by it.
    versions.set(version, found instanceof OrchestratorError ? found : { ...found, expects, mark });
  }
  const beside = shadow === undefined ? undefined : await find(shadow);
  const latest = await find(LATEST_VERSION);

  const keyOf = (given: unknown): string | undefined => {
    const { splitBy } = stored;
    if (splitBy === undefined) return undefined;
    try {
      return loader.readKey(splitBy, { input: copyJson(given ?? {}) as Json, executionId: '' });
    } catch {
      // An input that can't be read is refused later, and one that the expression does not fit has no key.
      return undefined;
    }
  };
  const traffic: LoadedTraffic = {
    choose: (given, id) => loadedOrThrow(versions.get(chosenVersion(stored, name, keyOf(given) ?? id))),
    shadow: () => beside && loadedOrThrow(beside),
    lacks: [...versions.values(), beside].find((one) => one instanceof OrchestratorError),
    requestReads: new Set(
      [...versions.values()].flatMap((one) => (one instanceof OrchestratorError ? [] : [...one.compiled.requestReads])),
    ),
    lacksNewest: latest instanceof OrchestratorError ? latest : undefined,
  };
  const main = latest instanceof OrchestratorError ? loadedOrThrow(versions.get(stored.version) ?? latest) : latest;
  return { ...main, expects, mark: undefined, traffic };
}

function loadedOrThrow(found: LoadedEnsemble | OrchestratorError | undefined): LoadedEnsemble {
  if (found instanceof OrchestratorError) throw found;
  return found as LoadedEnsemble;
}
