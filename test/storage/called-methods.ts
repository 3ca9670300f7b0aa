/** Counts which methods of a storage are called, for tests that call each one. */

import type { Storage, StorageParts } from '../../src/engine/storage/storage.port.ts';
import { callPart, createParts } from '../../src/engine/storage/storage-methods.port.ts';

/** @returns the parts of the storage, and the methods of the port that nobody has called yet */
export function calledMethods(inner: Storage): { readonly parts: StorageParts; readonly left: ReadonlySet<string> } {
  const left = new Set<string>();
  const parts = createParts((part, method) => {
    left.add(`${part}.${method}`);
    return (...args) => {
      left.delete(`${part}.${method}`);
      return callPart(inner, part, method, args);
    };
  });
  return { parts, left };
}
