/** A storage that can be opened again, and a fault that shows when it is: the next handle repeats the calls of the earlier ones. */

import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { MaybePromise } from '../../src/engine/operation/operation.port.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { callPart, createParts } from '../../src/engine/storage/storage-methods.port.ts';
import { changeStorage, type StorageChanges } from '../../src/testing-kit/processes/change-storage.ts';

/** A call of a method, such as `kv.put`, or of `commit`. */
export interface Call {
  readonly method: string;
  readonly args: readonly unknown[];
}

export interface Fault {
  /** What is repeated instead of a call. Undefined: nothing. */
  readonly repeat?: (call: Call) => Call | undefined;
  /** What the next handle answers. */
  readonly answer?: (storage: Storage) => StorageChanges;
}

export interface ReplayedStorage {
  readonly create: () => Storage;
  readonly reopen: () => MaybePromise<Storage>;
}

export function replayedStorage({ repeat = (call) => call, answer = () => ({}) }: Fault): ReplayedStorage {
  let calls: Call[] = [];
  const open = (memory: Storage): Storage => {
    const record = (method: string, args: readonly unknown[]) => {
      calls.push({ method, args });
      return apply(memory, { method, args });
    };
    return {
      ...memory,
      ...createParts(
        (part, method) =>
          (...args) =>
            record(`${part}.${method}`, args),
      ),
      commit: (...args) => record('commit', args) as ReturnType<Storage['commit']>,
    };
  };
  return {
    create() {
      calls = [];
      return open(memoryStorage());
    },
    async reopen() {
      const memory = memoryStorage();
      for (const call of calls) {
        const repeated = repeat(call);
        try {
          if (repeated) await apply(memory, repeated);
        } catch {
          // A call that was refused is refused again.
        }
      }
      return changeStorage(open(memory), answer(memory));
    },
  };
}

function apply(storage: Storage, { method, args }: Call): unknown {
  const [part, name] = method.split('.') as [Parameters<typeof callPart>[1], string | undefined];
  return name === undefined
    ? storage.commit(...(args as Parameters<Storage['commit']>))
    : callPart(storage, part, name, [...args]);
}
