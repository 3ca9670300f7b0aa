/** A storage that counts the calls of its methods. */

import type { Storage } from '../../src/engine/storage/storage.port.ts';

export interface WatchedStorage {
  readonly storage: Storage;
  /** How often each method was called since the last call of `calls`, such as `executions.get`; only methods that were called. */
  calls(): Record<string, number>;
}

export function watchedStorage(inner: Storage): WatchedStorage {
  let counts: Record<string, number> = {};
  const watch = <T extends object>(target: T, path: string): T =>
    new Proxy(target, {
      get(_target, key) {
        const value: unknown = Reflect.get(target, key);
        const name = path + String(key);
        if (typeof value === 'object' && value !== null) return watch(value, `${name}.`);
        if (typeof value !== 'function') return value;
        return (...given: unknown[]) => {
          counts[name] = (counts[name] ?? 0) + 1;
          return Reflect.apply(value, target, given);
        };
      },
    });
  return {
    storage: watch(inner, ''),
    calls() {
      const last = counts;
      counts = {};
      return last;
    },
  };
}
