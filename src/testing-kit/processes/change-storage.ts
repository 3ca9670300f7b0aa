/** A storage with some methods replaced. */

import type { Storage } from '../../engine/storage/storage.port.ts';
import { mapMembers } from '../map-members.ts';

/** Methods of the storage itself, and methods of its parts. */
export type StorageChanges = {
  readonly [Key in keyof Storage]?: Storage[Key] extends ((...args: never[]) => unknown) | undefined
    ? Storage[Key]
    : Partial<Storage[Key]>;
};

export function changeStorage(storage: Storage, changes: StorageChanges): Storage {
  return replaceMembers(storage, changes);
}

function replaceMembers<T extends object>(target: T, changes: object): T {
  return mapMembers(target, (value, key) => {
    const change: unknown = Reflect.get(changes, key);
    if (typeof change === 'object' && change !== null) return replaceMembers(value as object, change);
    if (change !== undefined) return change;
    return typeof value === 'function' ? value.bind(target) : value;
  });
}
