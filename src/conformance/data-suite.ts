/** The conformance suite of the data ports: the rules that every `KvStore`, `ObjectStore` and `SqlDatabase` must follow. It runs on any test runner with `describe` and `it`. */

import type { MaybePromise } from '../engine/operation/operation.port.ts';
import type { KvStore, ObjectStore, SqlDatabase } from '../engine/storage/data.port.ts';
import { keyCases, keyedObjects, keyedValues, reopenedKeyCases } from './data-suite/keys.ts';
import { reopenedStreamCases, streamCases } from './data-suite/streams.ts';
import { kvCases, objectCases, reopenedKvCases, reopenedObjectCases } from './data-suite/values.ts';
import { type DeclareCase, declareCases, declareOnPart } from './declare-cases.ts';
import type { SuiteRunner } from './http-suite.ts';
import { reopenedSqlCases, sqlDatabaseCases } from './sql-suite.ts';

/** The stores under test. A `Storage` is one, too. */
export interface DataStores {
  readonly kv?: KvStore;
  readonly objects?: ObjectStore;
  readonly sql?: SqlDatabase;
  close?(): MaybePromise<void>;
}

export interface DataSuiteOptions {
  readonly name: string;
  /** Opens new, empty stores. The suite calls it once per test, and closes the stores after the test. */
  readonly create: () => MaybePromise<DataStores>;
  /**
   * Opens other handles on the data of the stores that `create` opened last, after the suite has closed those. Without this option,
   * the suite leaves out the tests that open a store again.
   */
  readonly reopen?: (() => MaybePromise<DataStores>) | undefined;
  /** The kinds of stores that `create` returns. Default: `kv` and `objects`. */
  readonly kinds?: readonly ('kv' | 'objects' | 'sql')[] | undefined;
  readonly test: SuiteRunner;
}

/**
 * Declares the suite's tests: one for each rule of the ports. A store may return values or promises.
 *
 * @param options - see {@link DataSuiteOptions}
 * @example
 * ```ts no-run
 * import { memoryStorage } from 'ensemble-orchestrator';
 * import { dataSuite } from 'ensemble-orchestrator/conformance';
 * import { describe, it } from 'vitest';
 *
 * dataSuite({ name: 'memoryStorage', create: () => memoryStorage(), test: { describe, it } });
 * ```
 */
export function dataSuite(options: DataSuiteOptions): void {
  const { name, kinds = ['kv', 'objects'], reopen, test } = options;
  const it = declareCases(options);
  if (kinds.includes('kv')) {
    test.describe(`${name} as a KvStore`, () => {
      allKvCases(declareOnPart(it, kvOf));
      if (reopen) allReopenedKvCases(declareOnPart(it, kvOf));
    });
  }
  if (kinds.includes('objects')) {
    test.describe(`${name} as an ObjectStore`, () => {
      allObjectCases(declareOnPart(it, objectsOf));
      if (reopen) allReopenedObjectCases(declareOnPart(it, objectsOf));
    });
  }
  if (kinds.includes('sql')) {
    test.describe(`${name} as an SqlDatabase`, () => {
      sqlDatabaseCases(declareOnPart(it, sqlOf));
      if (reopen) reopenedSqlCases(declareOnPart(it, sqlOf));
    });
  }
}

export function allKvCases(it: DeclareCase<KvStore>): void {
  keyCases(declareOnPart(it, keyedValues));
  kvCases(it);
}

export function allReopenedKvCases(it: DeclareCase<KvStore>): void {
  reopenedKeyCases(declareOnPart(it, keyedValues));
  reopenedKvCases(it);
}

export function allObjectCases(it: DeclareCase<ObjectStore>): void {
  keyCases(declareOnPart(it, keyedObjects));
  objectCases(it);
  streamCases(it);
}

export function allReopenedObjectCases(it: DeclareCase<ObjectStore>): void {
  reopenedKeyCases(declareOnPart(it, keyedObjects));
  reopenedObjectCases(it);
  reopenedStreamCases(it);
}

function kvOf({ kv }: DataStores): KvStore {
  return kv ?? missing();
}

function objectsOf({ objects }: DataStores): ObjectStore {
  return objects ?? missing();
}

function sqlOf({ sql }: DataStores): SqlDatabase {
  return sql ?? missing();
}

function missing(): never {
  throw new Error('`create` returned no store of this kind; list the kinds that it returns in `kinds`');
}
