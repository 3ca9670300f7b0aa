/** A storage whose answers come later, each after a turn of the event loop: as a database's would. */

import type { Storage } from '../../src/engine/ports/storage.ts';

/** @param inner - does the work, when its turn has come */
export function laterStorage(inner: Storage): Storage {
  const later = async <T>(call: () => T | Promise<T>): Promise<T> => {
    await new Promise((resolve) => setImmediate(resolve));
    return call();
  };
  return {
    ...inner,
    accept: (execution) => later(() => inner.accept(execution)),
    commit: (batch) => later(() => inner.commit(batch)),
    getExecution: (id) => later(() => inner.getExecution(id)),
    listExecutions: (query) => later(() => inner.listExecutions(query)),
    listSteps: (id, page) => later(() => inner.listSteps(id, page)),
    readState: (ensemble) => later(() => inner.readState(ensemble)),
    putDefinition: (definition) => later(() => inner.putDefinition(definition)),
    getDefinition: (version) => later(() => inner.getDefinition(version)),
    close: () => later(() => inner.close()),
  };
}
