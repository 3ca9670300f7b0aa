/** The conformance suite of the storage port: what each `Storage` must do, for any test runner with `describe` and `it`. */

import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { Storage } from '../../engine/ports/storage.ts';
import type { SuiteRunner } from './http-suite.ts';
import { acceptCases, commitCases, replacingCases } from './storage-suite/commits.ts';
import type { StorageCase } from './storage-suite/context.ts';
import { listingCases, recordCases, valueCases } from './storage-suite/records.ts';
import { definitionCases, stateCases } from './storage-suite/state-and-definitions.ts';

export interface StorageSuiteOptions {
  readonly name: string;
  /** A store that is fresh and empty; called once a test, and closed behind it. */
  readonly create: () => MaybePromise<Storage>;
  readonly test: SuiteRunner;
}

/**
 * Declares the suite's tests: one for each promise of the `Storage` port. They take answers at once and promises alike.
 *
 * @param options - see {@link StorageSuiteOptions}
 * @example
 * ```ts no-run
 * import { memoryStorage } from 'ensemble-orchestrator';
 * import { storageSuite } from 'ensemble-orchestrator/testing';
 * import { describe, it } from 'vitest';
 *
 * storageSuite({ name: 'memoryStorage', create: () => memoryStorage(), test: { describe, it } });
 * ```
 */
export function storageSuite(options: StorageSuiteOptions): void {
  const { describe, it } = options.test;
  const declare: StorageCase = (name, body) => {
    it(name, async () => {
      const storage = await options.create();
      try {
        await body(storage);
      } finally {
        await storage.close();
      }
    });
  };
  describe(`${options.name} as a Storage`, () => {
    for (const cases of [
      acceptCases,
      commitCases,
      replacingCases,
      recordCases,
      valueCases,
      listingCases,
      stateCases,
      definitionCases,
    ]) {
      cases(declare);
    }
  });
}
