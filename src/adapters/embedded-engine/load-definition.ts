/** Loads the definitions of claimed executions. */

import type { LoadedDefinition } from '../../engine/ports/execution-engine.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { EngineState } from './engine-state.ts';

/**
 * Loads a definition. Concurrent callers share one read: hundreds of executions are claimed at once.
 * @returns the reason when this process can't run it, undefined when the definition is not stored
 */
export function loadDefinition(
  engine: EngineState,
  version: string,
  ensemble: string,
): MaybePromise<LoadedDefinition | string | undefined> {
  const { definitions } = engine.resume;
  const key = `${version} ${ensemble}`;
  const known = definitions.get(key);
  if (known !== undefined) return known;
  const found = restore(engine, version, ensemble);
  definitions.set(key, found);
  const keep = (loaded: LoadedDefinition | string | undefined) => {
    if (typeof loaded === 'object') definitions.set(key, loaded);
    else definitions.delete(key);
  };
  found.then(keep, () => definitions.delete(key));
  return found;
}

async function restore({ host, storage, withRetry }: EngineState, version: string, ensemble: string) {
  const definition = await withRetry(() => storage.definitions.get(version));
  return definition && host.restore(definition, ensemble);
}
