/**
 * The testing kit: an orchestrator with a manual clock, stubbed HTTP, and the conformance suites.
 *
 * @module ensemble-orchestrator/testing
 */

import { type ManualClock, manualClock } from '../adapters/clock/manual-clock.ts';
import { memoryStorage } from '../adapters/storage/memory/memory-storage.ts';
import type { AgentSource, EnsembleSource, EnsembleTypes, TypedOptions } from '../authoring/define.ts';
import type { Execution } from '../engine/execution/execution.ts';
import type { ExecutionHistory } from '../engine/execution/execution-history.ts';
import { createOrchestrator, type Orchestrator } from '../orchestrator/create-orchestrator.ts';
import { checkOptions, type OrchestratorOptions } from '../orchestrator/options/options.ts';
import type { ExecutionHandle } from '../orchestrator/runs/handles.ts';
import type { ExecuteOptions, RetryOptions } from '../orchestrator/runs/starts/execute-options.ts';
import { type ReplayResult, replayHistory } from '../testing-kit/replay/replay-history.ts';
import { type StubHttp, stubHttp } from '../testing-kit/stub-http.ts';
import { type Script, type ScriptStub, stubbedScripts } from '../testing-kit/stub-script.ts';
import { startTestProcess, type TestProcess } from '../testing-kit/test-process.ts';

export { type ManualClock, type ManualClockOptions, manualClock } from '../adapters/clock/manual-clock.ts';
export { type KeptMail, type MemoryMail, type MemoryMailOptions, memoryMail } from '../adapters/mail/memory-mail.ts';
export { memoryKv, memoryObjects } from '../adapters/storage/memory/data.ts';
export { type FakeAnswer, type FakeModel, type FakeReply, fakeModel } from '../testing-kit/fake-model.ts';
export { type KeptSms, type MemorySms, type MemorySmsOptions, memorySms } from '../testing-kit/memory-sms.ts';
export type { ReplayDifference, ReplayResult } from '../testing-kit/replay/replay-history.ts';
export {
  type StubAnswer,
  type StubCall,
  type StubHttp,
  type StubReply,
  stubHttp,
} from '../testing-kit/stub-http.ts';
export { type StubPdf, type StubPdfOptions, stubPdf } from '../testing-kit/stub-pdf.ts';
export type { ScriptCall, ScriptStub } from '../testing-kit/stub-script.ts';

export interface TestOrchestratorOptions<E extends readonly EnsembleSource[] = readonly EnsembleSource[]>
  extends Omit<OrchestratorOptions<E>, 'clock'> {
  /** Default `manualClock()`. */
  readonly clock?: ManualClock | undefined;
  /** Default true: time advances automatically while a result is awaited and no step is in flight. */
  readonly autoAdvance?: boolean | undefined;
}

/** Options of the process that follows a crash. Those that are left out stay. `scripts` are added to those of the crashed process. */
export type AfterCrash = Omit<TestOrchestratorOptions, 'clock' | 'storage'>;

export interface TestOrchestrator<T> extends Orchestrator<T> {
  /** The same object, for destructuring. */
  readonly orchestrator: Orchestrator<T>;
  readonly clock: ManualClock;
  /** The option `http`. Default: an empty `stubHttp()`. */
  readonly http: StubHttp;
  /** Waits for the end of an execution that another process started, and returns its record. @throws NOT_FOUND */
  result(id: string): Promise<Execution<unknown>>;
  /**
   * Replaces a script, for the calls from now on. The stub stays over a crash.
   * @throws TypeError for a name that is not registered, with the nearest one
   */
  stubScript(name: string, script: Script): ScriptStub;
  /**
   * Ends the process of this orchestrator as `kill -9` does. What was stored stays; nothing else is stored, released or cancelled. What a
   * script still does has no effect on the store. Starts that wait for a result are rejected, and this orchestrator refuses all
   * further calls.
   *
   * @param changes - options of the next process, such as the next version of a script
   * @returns the orchestrator of the next process, with the same storage, clock and HTTP client. It has begun to resume the unfinished
   *   executions, without waiting for a lease
   */
  crash(changes?: AfterCrash): Promise<TestOrchestrator<T>>;
}

/**
 * Creates an orchestrator for tests, with memory storage, stubbed HTTP and a manual clock. While an `execute()` or a `result()` is
 * awaited and no step is in flight, the clock jumps to the next due instant. Retries after 1, 2 and 4 seconds take milliseconds, and
 * the record says 7,000 ms.
 *
 * A step that never ends is in flight: to reach its timeout, call `clock.advance(ms)`. When nothing is due and the execution waits
 * for a signal without a `timeout`, `execute()` rejects with the name of the signal.
 *
 * @param options - the options of `createOrchestrator`. `clock` is a manual clock. Without `logger`, nothing is logged
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
export function createTestOrchestrator<
  const E extends readonly EnsembleSource[] = readonly EnsembleSource[],
  const A extends readonly AgentSource[] = readonly AgentSource[],
  S extends Readonly<Record<string, Script>> = Record<never, never>,
>(options?: TypedOptions<TestOrchestratorOptions<E>, E, A, S>): TestOrchestrator<EnsembleTypes<E>>;
export function createTestOrchestrator(options: TestOrchestratorOptions = {}): TestOrchestrator<never> {
  return startProcess(options, new Map()) as unknown as TestOrchestrator<never>;
}

function startProcess(
  options: TestOrchestratorOptions,
  stubs: Map<string, readonly Script[]>,
): TestOrchestrator<Record<string, never>> {
  const { autoAdvance = true, clock = manualClock(), http = stubHttp(), storage = memoryStorage(), ...rest } = options;
  const { scripts: given = {}, operations = [], bindings, models, mail, sms, pdf } = rest;
  // Before they are wrapped: a wrapped port has every member.
  checkOptions({ ...rest, clock, http, storage });
  const { scripts, stub } = stubbedScripts(given, stubs);
  const process = startTestProcess({
    clock,
    storage,
    http,
    autoAdvance,
    scripts,
    operations,
    bindings,
    models,
    mail,
    sms,
    pdf,
  });
  const inner = createOrchestrator({ errors: { stack: true }, logger: false, ...rest, ...process.ports });
  const { awaited } = process;
  let closing: Promise<void> | undefined;
  // A dry run has a time of its own, and on this clock only its bound: it must not be reached.
  const unlessDry = <T>(
    result: Promise<T>,
    opts: ExecuteOptions | undefined,
    why?: () => Promise<Error | undefined>,
  ) => (opts?.dryRun ? result : awaited(result, why));
  const driven = (handle: ExecutionHandle, opts?: ExecuteOptions) => ({
    ...handle,
    result: () => unlessDry(handle.result(), opts),
  });
  const unsentSignal = async () => {
    const { executions } = await inner.executions.list({ status: 'waiting' });
    for (const { id, ensemble, waitingFor } of executions) {
      const wait = waitingFor?.find(({ kind }) => kind === 'signal');
      if (!wait) continue;
      const facts = `execution ${id} of \`${ensemble}\` waits at ${wait.key} for the signal \`${wait.name}\`, which nobody sends`;
      return new Error(
        `${facts}: begin it with \`start\`, and call \`executions.signal(id, '${wait.name}', payload)\``,
      );
    }
    return undefined;
  };
  const ended = async (id: string) => {
    for await (const _event of inner.executions.events(id));
    return inner.executions.get(id);
  };
  const orchestrator = {
    ...inner,
    execute: (name: string, input?: unknown, opts?: ExecuteOptions) =>
      unlessDry(inner.execute(name, input, opts), opts, unsentSignal),
    executeAgent: (name: string, input?: unknown, opts?: ExecuteOptions) =>
      unlessDry(inner.executeAgent(name, input, opts), opts),
    start: async (name: string, input?: unknown, opts?: ExecuteOptions) =>
      driven(await inner.start(name, input, opts), opts),
    startAgent: async (name: string, input?: unknown, opts?: ExecuteOptions) =>
      driven(await inner.startAgent(name, input, opts), opts),
    executions: {
      ...inner.executions,
      retry: async (id: string, opts?: RetryOptions) => driven(await inner.executions.retry(id, opts)),
    },
    // A run that waits delays the close until its grace period is over, and only this kit advances the time.
    close(opts?: { readonly grace?: number | string }) {
      if (process.crashed) return Promise.resolve();
      // A call that was refused closes nothing: the next one may.
      closing ??= awaited(inner.close(opts).finally(process.leave)).catch((error: unknown) => {
        closing = undefined;
        throw error;
      });
      return closing;
    },
    clock,
    http: http as StubHttp,
    result: (id: string) => awaited(ended(id)),
    stubScript: stub,
    async crash(changes: AfterCrash = {}) {
      for (const kept of ['clock', 'storage']) {
        if (kept in changes) throw new TypeError(`crash: \`${kept}\` stays the same after a crash; leave it out`);
      }
      await process.crash();
      const after = { ...options, ...changes, scripts: { ...given, ...changes.scripts }, clock, storage };
      const next = startProcess({ http, ...after }, stubs);
      await next.ready();
      return next;
    },
  };
  return throwAfterCrash(Object.assign(orchestrator, { orchestrator }) as never, process);
}

/** The members that a crashed orchestrator still has. */
const AFTER_A_CRASH: readonly PropertyKey[] = ['clock', 'http', 'close', 'stubScript'];

/** The same object, whose members throw after the crash: a call would never be answered. */
function throwAfterCrash<O extends { orchestrator: object }>(orchestrator: O, process: TestProcess): O {
  const refused = new Proxy(orchestrator, {
    get(target, key) {
      if (process.crashed && typeof key === 'string' && key in target && !AFTER_A_CRASH.includes(key))
        throw process.crashed;
      return Reflect.get(target, key);
    },
  });
  orchestrator.orchestrator = refused;
  return refused;
}

/** Options of `createOrchestrator`. A replay has a clock, a storage and an engine of its own. */
export type ReplayOptions<E extends readonly EnsembleSource[] = readonly EnsembleSource[]> = Omit<
  OrchestratorOptions<E>,
  'clock' | 'storage' | 'engine' | 'schedules'
>;

/**
 * Replays a recorded execution against the definitions of today. No operation is called: each step has the result that was recorded
 * under its key. Random values and instants are those of the recorded execution.
 *
 * @param history - the result of `executions.history(id)`, which may have been stored as JSON
 * @param options - the definitions of today, as for `createOrchestrator`
 * @returns whether today's definition goes the recorded way to the recorded end. If not, where the two part, and why
 * @throws NOT_FOUND if there is no ensemble of that name; TypeError for a value that is not a history; what `createOrchestrator` throws
 *
 * @example
 * ```ts
 * import { createTestOrchestrator, replay } from 'ensemble-orchestrator/testing';
 *
 * const scripts = { charge: () => 'ch_1', invoice: () => 7 };
 * const before = 'name: order\nflow:\n  - { agent: charge, operation: code, config: { script: charge } }';
 * const after = `${before}\n  - { agent: invoice, operation: code, config: { script: invoice } }`;
 *
 * const orchestrator = createTestOrchestrator({ ensembles: [before], scripts });
 * const { id } = await orchestrator.execute('order');
 * const history = await orchestrator.executions.history(id);
 *
 * console.log(await replay(history, { ensembles: [before], scripts })); // { matches: true }
 * const result = await replay(history, { ensembles: [after], scripts });
 * console.log(result.matches || result.reason); // today's definition has agent `invoice` at flow[1], and nothing was recorded there
 * ```
 */
export function replay<const E extends readonly EnsembleSource[] = readonly EnsembleSource[]>(
  history: ExecutionHistory,
  options: ReplayOptions<E>,
): Promise<ReplayResult> {
  return replayHistory(
    history,
    (own) => createOrchestrator({ ...(options as OrchestratorOptions), ...own }) as Orchestrator,
  );
}
