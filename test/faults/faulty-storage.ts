/** A storage that fails at a chosen call, in a chosen way. */

import type { History } from '../../src/conformance/engine-suite/world/history.ts';
import type { CommitEntry } from '../../src/engine/execution/stored-execution.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';

export const MODES = [
  'throws before it is applied',
  'is applied, then throws',
  'never answers',
  'is applied, and never answers',
  'fails for ever',
  'stores the first entries of a batch, then throws',
] as const;

/** The modes of an outage: the storage is unavailable from the failed call on, until `heal()`. */
export const OUTAGE_MODES = [
  'fails for ever',
  'is applied, then fails for ever',
  'never answers from then on',
] as const;

export type Mode = (typeof MODES)[number] | (typeof OUTAGE_MODES)[number];

export interface FaultyStorage {
  readonly storage: Storage;
  /** Counts calls from now on; call number `at` fails. */
  arm(at: number, mode: Mode): void;
  /** Ends the fault. */
  heal(): void;
  /** The number of calls since `arm()`. */
  readonly calls: number;
  /** The method whose call failed. */
  readonly failed: string | undefined;
}

export class StorageFault extends Error {
  constructor(method: string) {
    super(`the storage failed at ${method}`);
  }
}

const isOutage = (mode: Mode) => (OUTAGE_MODES as readonly Mode[]).includes(mode);

const NEVER = new Promise<never>(() => {});

/** @param ledger - records what is stored, whether or not the caller receives the answer */
export function faultyStorage(inner: Storage, ledger: History): FaultyStorage {
  let fault: { readonly at: number; readonly mode: Mode } | undefined;
  let calls = 0;
  let failed: string | undefined;

  const record = (args: readonly unknown[], value: unknown) => {
    ledger.addCommit(1, args[1] as readonly CommitEntry[], value as never);
    return value;
  };

  const apply = (port: object, method: string, call: (...args: unknown[]) => unknown, args: unknown[]): unknown => {
    const given = Reflect.apply(call, port, args);
    if (method !== 'commit') return given;
    return given instanceof Promise ? given.then((value) => record(args, value)) : record(args, given);
  };

  const fail = (method: string, mode: Mode, args: unknown[], run: (args: unknown[]) => unknown): unknown => {
    failed ??= method;
    const thrown = new StorageFault(method);
    // Fails as the storage answers: at once where it returns a value, later where it returns a promise.
    const after = (given: unknown, then: () => unknown) => (given instanceof Promise ? given.then(then) : then());
    const refuse = (): never => {
      throw thrown;
    };
    switch (mode) {
      case 'is applied, then throws':
      case 'is applied, then fails for ever':
        return after(run(args), refuse);
      case 'never answers':
      case 'never answers from then on':
        return NEVER;
      case 'is applied, and never answers':
        return after(run(args), () => NEVER);
      case 'stores the first entries of a batch, then throws': {
        const batch = args[1] as readonly CommitEntry[];
        return after(run([args[0], batch.slice(0, batch.length >> 1)]), refuse);
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
          if (calls < at || (calls > at && !isOutage(mode))) return run(args);
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
