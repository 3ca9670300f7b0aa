/** The conformance suite of the data ports: what each `KvStore` and `ObjectStore` must do, for any runner with `describe` and `it`. */

import type { KvStore, ObjectStore } from '../../engine/ports/data.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import { type DeclareCase, keyCases, keyedObjects, keyedValues } from './data-suite/keys.ts';
import { kvCases, objectCases } from './data-suite/values.ts';
import type { SuiteRunner } from './http-suite.ts';

/** Stores under test; a whole `Storage` is one too. */
export interface DataStores {
  readonly kv?: KvStore;
  readonly objects?: ObjectStore;
  close?(): MaybePromise<void>;
}

export interface DataSuiteOptions {
  readonly name: string;
  /** Stores that are fresh and empty; called once a test, and closed behind it. */
  readonly create: () => MaybePromise<DataStores>;
  /** Which of the two `create` gives. Default both. */
  readonly kinds?: readonly ('kv' | 'objects')[];
  readonly test: SuiteRunner;
}

/**
 * Declares the suite's tests: one for each promise of the ports. They take answers at once and promises alike.
 *
 * @param options - see {@link DataSuiteOptions}
 * @example
 * ```ts no-run
 * import { memoryStorage } from 'ensemble-orchestrator';
 * import { dataSuite } from 'ensemble-orchestrator/testing';
 * import { describe, it } from 'vitest';
 *
 * dataSuite({ name: 'memoryStorage', create: () => memoryStorage(), test: { describe, it } });
 * ```
 */
export function dataSuite({ name, create, kinds = ['kv', 'objects'], test }: DataSuiteOptions): void {
  const declare =
    <S>(pick: (stores: DataStores) => S | undefined): DeclareCase<S> =>
    (title, body) => {
      test.it(title, async () => {
        const stores = await create();
        try {
          const store = pick(stores);
          if (store === undefined) throw new Error('create gave no store of this kind; say which it gives in `kinds`');
          await body(store);
        } finally {
          await stores.close?.();
        }
      });
    };
  if (kinds.includes('kv')) {
    test.describe(`${name} as a KvStore`, () => {
      keyCases(declare(({ kv }) => kv && keyedValues(kv)));
      kvCases(declare(({ kv }) => kv));
    });
  }
  if (kinds.includes('objects')) {
    test.describe(`${name} as an ObjectStore`, () => {
      keyCases(declare(({ objects }) => objects && keyedObjects(objects)));
      objectCases(declare(({ objects }) => objects));
    });
  }
}
