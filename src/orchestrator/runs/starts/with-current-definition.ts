/** Starts an execution with the current definition of an ensemble, also if the definition is changed in the meantime. */

import { isPromise, type MaybePromise } from '../../../engine/base/maybe-promise.ts';
import { StaleDefinitionError } from '../../../engine/execution/execution-engine.port.ts';
import type { ExpectedDocument } from '../../../engine/execution/stored-execution.ts';
import { alwaysChanged } from '../../changes.ts';
import type { LoadedEnsemble } from '../../definitions/load-definitions.ts';

/** Finds the definition to run. It is called again if the definition has changed. */
export type Find = () => MaybePromise<LoadedEnsemble>;

/** How often a definition is loaded again that was changed meanwhile. */
const MAX_TRIES = 20;

/** @param maxTries - for a caller that may not fail because of changes, `Infinity` @throws what `find` and `start` throw; CONFLICT if the definition is changed all the time */
export async function withCurrentDefinition<T>(
  find: Find,
  forget: (document: ExpectedDocument) => void,
  start: (ensemble: LoadedEnsemble) => Promise<T>,
  maxTries = MAX_TRIES,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    const found = find();
    const ensemble = isPromise(found) ? await found : found;
    const { expects } = ensemble;
    if (!expects) return start(ensemble);
    try {
      return await start(ensemble);
    } catch (thrown) {
      if (!(thrown instanceof StaleDefinitionError)) throw thrown;
      forget(expects);
      if (tries === maxTries) throw alwaysChanged(`${expects.kind} \`${expects.name}\``);
    }
  }
}
