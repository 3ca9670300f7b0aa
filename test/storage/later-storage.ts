/** A storage that answers later, after a turn of the event loop, as a database does. */

import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { callPart, createParts } from '../../src/engine/storage/storage-methods.port.ts';

/** @param inner - does the work */
export function laterStorage(inner: Storage): Storage {
  const later = async <T>(call: () => T | Promise<T>): Promise<T> => {
    await new Promise((resolve) => setImmediate(resolve));
    return call();
  };
  const { tokens, kv, objects } = inner;
  return {
    ...inner,
    ...createParts(
      (part, method) =>
        (...args) =>
          later(() => callPart(inner, part, method, args)),
    ),
    ...{ tokens, kv, objects },
    commit: (worker, batch) => later(() => inner.commit(worker, batch)),
    close: () => later(() => inner.close()),
  };
}
