/**
 * The conformance suites: the contracts of storages, engines and adapters as tests, for their authors.
 *
 * @module ensemble-orchestrator/conformance
 */

import { declareEngineSuite, type EngineSuiteOptions } from '../conformance/engine-suite.ts';
import { createOrchestrator, type Orchestrator } from '../orchestrator/create-orchestrator.ts';
import type { OrchestratorOptions } from '../orchestrator/options/options.ts';

export {
  type ComponentSourceHolder,
  type ComponentSuiteOptions,
  componentSuite,
} from '../conformance/component-suite.ts';
export { type DataStores, type DataSuiteOptions, dataSuite } from '../conformance/data-suite.ts';
export type {
  EngineProcess,
  EngineProcessOptions,
  EngineWorld,
  WorldReader,
} from '../conformance/engine-suite/world/engine-world.ts';
export type { SuiteStore } from '../conformance/engine-suite/world/storage-world.ts';
export type {
  EngineSuiteOptions,
  StorageEngineSuiteOptions,
  WorldEngineSuiteOptions,
} from '../conformance/engine-suite.ts';
export { type HttpSuiteOptions, httpSuite, type SuiteRunner } from '../conformance/http-suite.ts';
export {
  type LimitStoreHolder,
  type LimitStoreSuiteOptions,
  limitStoreSuite,
} from '../conformance/limit-store-suite.ts';
export type { MailWorld, ReceivedMail } from '../conformance/mail-suite/context.ts';
export { type MailSuiteOptions, mailSuite } from '../conformance/mail-suite.ts';
export { type StorageSuiteOptions, storageSuite } from '../conformance/storage-suite.ts';
export { type TokenHolder, type TokenSuiteOptions, tokenSuite } from '../conformance/token-suite.ts';
export type { SimulatedProcess } from '../testing-kit/processes/process-control.ts';

/**
 * Declares the tests of the engine suite: ensembles run on your storage. Their process dies before and after every commit, another
 * process resumes the execution, and the record must be the same as without a crash. The suite uses a manual clock: no test sleeps.
 *
 * @param options - see {@link EngineSuiteOptions}
 * @example
 * ```ts no-run
 * import { memoryStorage } from 'ensemble-orchestrator';
 * import { engineSuite } from 'ensemble-orchestrator/conformance';
 * import { describe, it } from 'vitest';
 *
 * engineSuite({
 *   name: 'memoryStorage',
 *   create() {
 *     const storage = memoryStorage({ shared: true });
 *     return { connect: () => storage };
 *   },
 *   workers: 'many',
 *   test: { describe, it },
 * });
 * ```
 */
export function engineSuite(options: EngineSuiteOptions): void {
  declareEngineSuite(options, (parts) => createOrchestrator(parts as OrchestratorOptions) as Orchestrator);
}
