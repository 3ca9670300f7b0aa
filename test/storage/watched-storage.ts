/** A storage that counts which of its verbs are called, and what they gave. */

import type { Storage } from '../../src/engine/ports/storage.ts';

export interface WatchedStorage {
  readonly storage: Storage;
  /** How often each verb was called since the last call of this; those alone that were. */
  calls(): Record<string, number>;
}

export function watchedStorage(inner: Storage): WatchedStorage {
  let counts: Record<string, number> = {};
  const storage = new Proxy(inner, {
    get(target, verb, receiver) {
      const value = Reflect.get(target, verb, receiver);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]) => {
        counts[String(verb)] = (counts[String(verb)] ?? 0) + 1;
        return Reflect.apply(value, target, given);
      };
    },
  });
  return {
    storage,
    calls() {
      const told = counts;
      counts = {};
      return told;
    },
  };
}
