/** What a run asks of the storage: no failure of the storage is the run's own, so each becomes the loss of its journal. */

import type { RunStorage } from '../../engine/ports/execution-engine.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { Storage } from '../../engine/ports/storage.ts';
import { lose } from './journal-parts.ts';
import type { Patience } from './patience.ts';

export function createRunStorage(storage: Storage, patiently: Patience): RunStorage {
  const ask = <T>(call: () => MaybePromise<T>): MaybePromise<T> => {
    const answer = patiently(call);
    return answer instanceof Promise ? answer.catch(lose) : answer;
  };
  return {
    readState: (ensemble) => ask(() => storage.readState(ensemble)),
    listSignals: (executionId, query) => ask(() => storage.listSignals(executionId, query)),
    getExecution: (id) => ask(() => storage.getExecution(id)),
    countDescendants: (rootId, limit) => ask(() => storage.countDescendants(rootId, limit)),
  };
}
