/** The testing kit: an orchestrator whose time is the test's, fakes for its ports, and the conformance suites. */

import { memoryStorage } from './adapters/storage/memory-storage.ts';
import { declareEngineSuite, type EngineSuiteOptions } from './adapters/testing/engine-suite.ts';
import { createIdleWatch } from './adapters/testing/idle-watch.ts';
import { type ManualClock, manualClock } from './adapters/testing/manual-clock.ts';
import { type StubHttp, stubHttp } from './adapters/testing/stub-http.ts';
import type { EnsembleSource, EnsembleTypes } from './define.ts';
import type { HttpClient } from './engine/ports/http.ts';
import type { OrchestratorOptions } from './options.ts';
import { createOrchestrator, type Orchestrator } from './orchestrator.ts';
import type { ExecuteOptions, ExecutionHandle } from './runner.ts';

export { type DataStores, type DataSuiteOptions, dataSuite } from './adapters/testing/data-suite.ts';
export type { SuiteStore } from './adapters/testing/engine-suite/world.ts';
export type { EngineSuiteOptions } from './adapters/testing/engine-suite.ts';
export { type FakeModel, type FakeReply, fakeModel } from './adapters/testing/fake-model.ts';
export { type HttpSuiteOptions, httpSuite, type SuiteRunner } from './adapters/testing/http-suite.ts';
export { type ManualClock, type ManualClockOptions, manualClock } from './adapters/testing/manual-clock.ts';
export { type MemoryMail, memoryMail } from './adapters/testing/memory-mail.ts';
export { type StorageSuiteOptions, storageSuite } from './adapters/testing/storage-suite.ts';
export {
  type StubAnswer,
  type StubCall,
  type StubHttp,
  type StubReply,
  stubHttp,
} from './adapters/testing/stub-http.ts';
export { type TokenHolder, type TokenSuiteOptions, tokenSuite } from './adapters/testing/token-suite.ts';
export type * from './engine/ports/mail.ts';
export type * from './engine/ports/model.ts';

export interface TestOrchestratorOptions<E extends readonly EnsembleSource[] = readonly EnsembleSource[]>
  extends Omit<OrchestratorOptions<E>, 'clock'> {
  /** Default `manualClock()`. */
  readonly clock?: ManualClock;
  /** Default true: time moves on by itself while a result is awaited and no step is in flight. */
  readonly autoAdvance?: boolean;
}

export interface TestOrchestrator<T> extends Orchestrator<T> {
  /** The same object, for those who take the parts apart. */
  readonly orchestrator: Orchestrator<T>;
  readonly clock: ManualClock;
  /** What was given as `http`; an empty `stubHttp()` otherwise. */
  readonly http: StubHttp;
}

/**
 * An orchestrator for tests: memory storage, stubbed HTTP, and a clock that jumps to the next due instant when no step is in
 * flight, while an `execute()` or a `result()` is awaited. Retries of 1, 2 and 4 seconds run in milliseconds, and the record
 * says 7,000 ms.
 *
 * A step that never ends is in flight: to see its timeout, move time by `clock.advance(ms)`.
 *
 * @param options - those of `createOrchestrator`; `clock` is a manual one
 *
 * @example
 * ```ts
 * import { createTestOrchestrator } from 'ensemble-orchestrator/testing';
 *
 * let calls = 0;
 * const orchestrator = createTestOrchestrator({
 *   ensembles: ['name: e\nflow:\n  - { agent: a, operation: code, config: { script: flaky }, retry: { maxAttempts: 4 } }'],
 *   scripts: { flaky: () => { if (++calls < 4) throw new Error('not yet'); return calls; } },
 * });
 * const run = await orchestrator.execute('e');
 * console.log(run.status, run.duration); // completed 7000
 * ```
 */
export function createTestOrchestrator<const E extends readonly EnsembleSource[] = readonly EnsembleSource[]>(
  options: TestOrchestratorOptions<E> = {},
): TestOrchestrator<EnsembleTypes<E>> {
  const { autoAdvance = true, clock = manualClock(), http = stubHttp(), ...rest } = options;
  const watch = createIdleWatch(clock);
  const inner = createOrchestrator<E>({
    ...rest,
    clock: watch.watchClock(),
    http: watch.watchPort(http as HttpClient),
    storage: watch.watchPort(rest.storage ?? memoryStorage()),
    scripts: Object.fromEntries(
      Object.entries(rest.scripts ?? {}).map(([name, script]) => [name, watch.watchCall(script)]),
    ),
    operations: (rest.operations ?? []).map((operation) => watch.watchPort(operation)),
  });
  const awaited = <R>(result: Promise<R>): Promise<R> => (autoAdvance ? watch.driveUntil(result) : result);
  const driven = (handle: ExecutionHandle) => ({ ...handle, result: () => awaited(handle.result()) });
  // The typed arguments of `inner` can't be spread through; they pass as they are.
  const calls = inner as unknown as Orchestrator;
  const orchestrator = {
    ...inner,
    execute: (name: string, input?: unknown, opts?: ExecuteOptions) => awaited(calls.execute(name, input, opts)),
    executeAgent: (name: string, input?: unknown, opts?: ExecuteOptions) =>
      awaited(calls.executeAgent(name, input, opts)),
    start: async (name: string, input?: unknown, opts?: ExecuteOptions) => driven(await calls.start(name, input, opts)),
    startAgent: async (name: string, input?: unknown, opts?: ExecuteOptions) =>
      driven(await calls.startAgent(name, input, opts)),
    executions: { ...calls.executions, retry: async (id: string) => driven(await calls.executions.retry(id)) },
    // A run that waits holds it up until its grace is over, which nobody else would bring about.
    close: (opts?: { readonly grace?: number }) => awaited(calls.close(opts)),
    clock,
    http: http as StubHttp,
  } as unknown as TestOrchestrator<EnsembleTypes<E>>;
  return Object.assign(orchestrator, { orchestrator });
}

/**
 * Declares the suite of the engine: ensembles run on a store of yours, their process dies at every commit, before it and
 * behind it, another one goes on, and both come to the same record. Time is the suite's own: no test sleeps.
 *
 * @param options - see {@link EngineSuiteOptions}
 * @example
 * ```ts no-run
 * import { memoryStorage } from 'ensemble-orchestrator';
 * import { engineSuite } from 'ensemble-orchestrator/testing';
 * import { describe, it } from 'vitest';
 *
 * engineSuite({
 *   name: 'memoryStorage',
 *   create() {
 *     const storage = memoryStorage({ shared: true });
 *     return { connect: () => storage };
 *   },
 *   owners: 'many',
 *   test: { describe, it },
 * });
 * ```
 */
export function engineSuite(options: EngineSuiteOptions): void {
  declareEngineSuite(options, (parts) => createOrchestrator(parts as OrchestratorOptions) as Orchestrator);
}
