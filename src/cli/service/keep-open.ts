/** A storage that several orchestrators of one process use, one after the other. */

import type { Storage } from '../start.ts';

/**
 * Returns the storage, whose `close` does nothing. It counts as shared: an orchestrator that is closed leaves its executions to the next
 * one, also where the storage is in memory.
 */
export function keepOpen(storage: Storage): Storage {
  const own = { capabilities: { ...storage.capabilities, shared: true }, close() {} };
  // Methods run with the storage itself as `this`, so that classes with private fields work.
  return new Proxy({} as Storage, {
    get(_empty, key) {
      if (Object.hasOwn(own, key)) return own[key as keyof typeof own];
      const value: unknown = Reflect.get(storage, key);
      return typeof value === 'function' ? value.bind(storage) : value;
    },
    has: (_empty, key) => key in storage,
  });
}
