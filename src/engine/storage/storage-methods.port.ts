/** The methods of the parts of a storage as data, for code that wraps every method of a storage. */

import type { StorageParts } from './storage.port.ts';

/** Without the methods that a part may lack. */
type Methods<Part> = {
  readonly [Name in Exclude<keyof Part, 'kind'> as Part extends Record<Name, unknown> ? Name : never]: true;
};

/** A method of a port that is missing here is a compile error. */
const METHODS: { readonly [Name in keyof StorageParts]: Methods<StorageParts[Name]> } = {
  workers: { register: true, renew: true, unregister: true, reclaimFromDead: true, listHeld: true },
  executions: {
    ...{ claim: true, take: true, poll: true, countQueued: true, requestCancel: true, purge: true, delete: true },
    ...{
      getPinned: true,
      repin: true,
      putLimits: true,
      closeLimits: true,
      takeSlot: true,
      freeSlot: true,
      limitWaits: true,
      pause: true,
      resume: true,
      pauseAll: true,
      resumeAll: true,
    },
    ...{ getAccepted: true, getStatus: true, get: true, list: true, findEnded: true, countDescendants: true },
    ...{ findByKey: true, countOpen: true, countAccepted: true },
    ...{ listSteps: true, getStep: true, getSteps: true, skipSteps: true, listEndedWaits: true },
  },
  signals: { put: true, list: true, find: true },
  state: { read: true, write: true },
  schedules: { read: true, advance: true },
  definitions: { put: true, get: true },
  documents: { read: true, write: true, list: true },
  deliveries: { receivers: true, claim: true, settle: true, requeue: true, get: true, list: true, purge: true },
  usage: { charged: true, running: true },
  rates: { take: true, peek: true },
  tokens: { put: true, findByDigest: true, get: true, list: true, delete: true, touch: true },
  tallies: { fold: true, read: true },
  kv: { get: true, put: true, delete: true, list: true },
  objects: { get: true, put: true, delete: true, list: true },
};

/** Any method of a part. */
export type StorageMethod = (...args: unknown[]) => unknown;

/**
 * Creates the parts of a storage that does the same for many methods, such as a storage that wraps another one.
 *
 * @param create - creates one method, such as `claim` of the part `executions`
 * @example
 * ```ts
 * import { memoryStorage } from 'ensemble-orchestrator';
 * import { callPart, createParts, type Storage } from 'ensemble-orchestrator/adapter';
 *
 * const calls: string[] = [];
 * const memory = memoryStorage();
 * const parts = createParts((part, method) => (...args) => {
 *   calls.push(`${part}.${method}`);
 *   return callPart(memory, part, method, args);
 * });
 * const watched: Storage = { ...memory, ...parts };
 * await watched.kv.put('key', 1);
 * console.log(calls); // [ 'kv.put' ]
 * ```
 */
export function createParts(create: (part: keyof StorageParts, method: string) => StorageMethod): StorageParts {
  const parts: Record<string, object> = {};
  for (const [part, methods] of Object.entries(METHODS)) {
    const made: Record<string, unknown> = part === 'kv' || part === 'objects' ? { kind: part } : {};
    for (const method of Object.keys(methods)) made[method] = create(part as keyof StorageParts, method);
    parts[part] = made;
  }
  return parts as unknown as StorageParts;
}

/** Calls a method of a part. @returns what the method returns */
export function callPart(parts: StorageParts, part: keyof StorageParts, method: string, args: unknown[]): unknown {
  const target = parts[part];
  return Reflect.apply(Reflect.get(target, method), target, args);
}
