/** A storage that fails at one of its calls, in one of the ways in which a storage can fail. */

import type { Ledger } from '../../src/adapters/testing/engine-suite/ledger.ts';
import type { CommitEntry } from '../../src/engine/model/stored-execution.ts';
import type { Storage } from '../../src/engine/ports/storage.ts';

export const MODES = [
  'throws before it is applied',
  'is applied, then throws',
  'never answers',
  'is applied, and never answers',
  'fails for ever',
  'stores the first entries of a batch, then throws',
] as const;

/** Of an outage: the storage is away from that call on, until it is healed. */
export const AWAY = ['fails for ever', 'is applied, then fails for ever', 'never answers from then on'] as const;

export type Mode = (typeof MODES)[number] | (typeof AWAY)[number];

export interface FaultyStorage {
  readonly storage: Storage;
  /** From now on calls are counted; the `at`-th fails. */
  arm(at: number, mode: Mode): void;
  /** It answers from now on. */
  heal(): void;
  /** Calls since it was armed. */
  readonly calls: number;
  /** The method whose call failed. */
  readonly failed: string | undefined;
}

export class StorageFault extends Error {
  constructor(method: string) {
    super(`the storage failed at ${method}`);
  }
}

const isAway = (mode: Mode) => (AWAY as readonly Mode[]).includes(mode);

const NEVER = new Promise<never>(() => {});

/** @param ledger - told of what is stored, whether or not the caller hears of it */
export function faultyStorage(inner: Storage, ledger: Ledger): FaultyStorage {
  let fault: { readonly at: number; readonly mode: Mode } | undefined;
  let calls = 0;
  let failed: string | undefined;

  const noted = (args: readonly unknown[], value: unknown) => {
    ledger.noteCommit(1, args[1] as readonly CommitEntry[], value as never);
    return value;
  };

  const apply = (port: object, method: string, call: (...args: unknown[]) => unknown, args: unknown[]): unknown => {
    const given = Reflect.apply(call, port, args);
    if (method !== 'commit') return given;
    return given instanceof Promise ? given.then((value) => noted(args, value)) : noted(args, given);
  };

  const fail = (method: string, mode: Mode, args: unknown[], run: (args: unknown[]) => unknown): unknown => {
    failed ??= method;
    const thrown = new StorageFault(method);
    // As the storage itself does: at once where it answers at once.
    const behind = (given: unknown, then: () => unknown) => (given instanceof Promise ? given.then(then) : then());
    const refuse = (): never => {
      throw thrown;
    };
    switch (mode) {
      case 'is applied, then throws':
      case 'is applied, then fails for ever':
        return behind(run(args), refuse);
      case 'never answers':
      case 'never answers from then on':
        return NEVER;
      case 'is applied, and never answers':
        return behind(run(args), () => NEVER);
      case 'stores the first entries of a batch, then throws': {
        const batch = args[1] as readonly CommitEntry[];
        return behind(run([args[0], batch.slice(0, batch.length >> 1)]), refuse);
      }
      default:
        return refuse();
    }
  };

  const wrap = <P extends object>(port: P, path: string): P =>
    new Proxy({} as P, {
      get(_empty, key) {
        const value: unknown = Reflect.get(port, key);
        if (typeof value !== 'function') {
          const isPort = typeof value === 'object' && value !== null && key !== 'capabilities';
          return isPort ? wrap(value, `${path}${String(key)}.`) : value;
        }
        const method = path + String(key);
        return (...args: unknown[]) => {
          const run = (given: unknown[]) => apply(port, method, value as never, given);
          if (!fault) return run(args);
          calls += 1;
          const { at, mode } = fault;
          if (calls < at || (calls > at && !isAway(mode))) return run(args);
          if (mode.startsWith('stores the first') && (method !== 'commit' || (args[1] as unknown[]).length < 2))
            return run(args);
          return fail(method, mode, args, run);
        };
      },
      has: (_empty, key) => key in port,
    });

  return {
    storage: wrap(inner, ''),
    arm(at, mode) {
      fault = { at, mode };
      calls = 0;
      failed = undefined;
    },
    heal() {
      fault = undefined;
    },
    get calls() {
      return calls;
    },
    get failed() {
      return failed;
    },
  };
}
