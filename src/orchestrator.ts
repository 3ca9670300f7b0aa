/** `createOrchestrator()`: the one place where the engine, the operations and the adapters are put together. */

import { systemClock } from './adapters/clock/system-clock.ts';
import { embeddedEngine } from './adapters/engine/embedded-engine.ts';
import { fetchHttp } from './adapters/http/fetch-http.ts';
import { answersInTime } from './adapters/storage/answers-in-time.ts';
import { memoryStorage } from './adapters/storage/memory-storage.ts';
import type { EnsembleSource, EnsembleTypes } from './define.ts';
import { createTokens, type Tokens } from './engine/access/tokens.ts';
import type { CompileHost } from './engine/definition/compile-host.ts';
import { signalUrlFunction } from './engine/definition/signal-url.ts';
import { OrchestratorError } from './engine/errors.ts';
import { createMasking } from './engine/execution/mask-secrets.ts';
import { extendFunctions } from './engine/expression/functions/builtin-functions.ts';
import type { FunctionTable } from './engine/expression/functions/function-table.ts';
import type { EventKind } from './engine/model/event.ts';
import type { Execution } from './engine/model/execution.ts';
import { createIdSource } from './engine/model/id.ts';
import { createEmitter, type EventListener } from './engine/notification/emitter.ts';
import type { Logger } from './engine/ports/logger.ts';
import { MASKING } from './engine/ports/masking.ts';
import type { AnyOperation } from './engine/ports/operation.ts';
import { suggestName } from './engine/suggest-name.ts';
import { createEnsembles, type Ensembles } from './ensembles.ts';
import { createExecutions, type Executions } from './executions.ts';
import {
  type LoadedEnsemble,
  loadEnsembles,
  loadSharedAgent,
  logWarnings,
  readSharedAgents,
} from './load-definitions.ts';
import { apiOperation } from './operations/api.ts';
import { codeOperation } from './operations/code.ts';
import { storageOperation } from './operations/storage.ts';
import { checkOptions, type OrchestratorOptions, secretsOf } from './options.ts';
import { createRestore } from './restore-definitions.ts';
import { createRunner, type ExecuteOptions, type ExecutionHandle, type Runner } from './runner.ts';
import { createSchedules, runAllDue } from './schedules.ts';
import { createSignalLinks, type SignalLinks } from './signal-links.ts';

type Types = Readonly<Record<string, { readonly input: unknown; readonly output: unknown }>>;
type InputArguments<T, N> = N extends keyof T
  ? T[N] extends { readonly input: infer I }
    ? Record<never, never> extends I
      ? [input?: I, options?: ExecuteOptions]
      : [input: I, options?: ExecuteOptions]
    : never
  : [input?: unknown, options?: ExecuteOptions];
type OutputFor<T, N> = N extends keyof T ? (T[N] extends { readonly output: infer O } ? O : unknown) : unknown;
type NameFor<T> = (keyof T & string) | (string & Record<never, never>);

export interface Orchestrator<T = Types> {
  /**
   * Runs an ensemble and gives its finished record. A run that failed is given back, not thrown.
   *
   * @throws NOT_FOUND for an unknown name, INVALID_INPUT when the input doesn't fit `inputs` (nothing is stored then)
   */
  execute<N extends NameFor<T>>(name: N, ...rest: InputArguments<T, N>): Promise<Execution<OutputFor<T, N>>>;
  /** Begins a run, and gives a handle once it is stored. @throws as {@link Orchestrator.execute} */
  start<N extends NameFor<T>>(name: N, ...rest: InputArguments<T, N>): Promise<ExecutionHandle<OutputFor<T, N>>>;
  /** Runs one shared agent: `input` is the agent's, the output is the agent's output. @throws as {@link Orchestrator.execute} */
  executeAgent(name: string, input?: unknown, options?: ExecuteOptions): Promise<Execution<unknown>>;
  /** Begins a run of one shared agent. @throws as {@link Orchestrator.execute} */
  startAgent(name: string, input?: unknown, options?: ExecuteOptions): Promise<ExecutionHandle>;
  /** Calls `listener` for each event of a kind. A listener that throws breaks nothing. @returns forgets the listener */
  on<K extends EventKind>(event: K, listener: EventListener<K>): () => void;
  readonly ensembles: Ensembles;
  readonly executions: Executions;
  readonly tokens: Tokens;
  /** The links that `signalUrl()` makes; undefined without the option `signalLinks`. */
  readonly signalLinks: SignalLinks | undefined;
  /**
   * Resolves when the orchestrator works: its storage answers, and what is queued, due or left behind there is taken up.
   * Without it, the first start does the same.
   *
   * @throws CONFLICT when the storage is one that a single process works on, and another one does
   */
  ready(): Promise<void>;
  /**
   * Does what is due now, and waits for it: for a host that keeps no process alive, such as a cron trigger.
   *
   * @param options - `limit`: at most so many executions (default 100)
   * @returns the instant (Unix ms) at which something is due next; none when nothing is
   */
  runDue(options?: { readonly limit?: number }): Promise<{ readonly nextDueAt?: number }>;
  /**
   * Takes nothing new, and waits up to `grace` ms (default 25,000) for the runs at work. What is left then is given back, so
   * that another process goes on with it, or this one when it is started again; in memory storage, where nobody could, it is
   * cancelled. Closes the storage. A second call gives the same promise.
   */
  close(options?: { readonly grace?: number }): Promise<void>;
}

/** A call of the storage that has no answer by then may or may not have had its effect. */
const STORAGE_TIMEOUT_MS = 10_000;
const DEFAULT_RETENTION_MS = 30 * 86_400_000;
const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Creates an orchestrator. It checks everything it is given, and does nothing else: no I/O, no timer, no randomness.
 *
 * @throws INVALID_DEFINITION with every problem of a definition in `details.issues`; NOT_CONFIGURED when a definition needs what
 *   the options don't give; TypeError for options of a wrong kind
 *
 * @example
 * ```ts
 * import { createOrchestrator } from 'ensemble-orchestrator';
 *
 * const orchestrator = createOrchestrator({
 *   ensembles: [`
 * name: greet
 * flow:
 *   - agent: hello
 *     operation: code
 *     config: { script: hello }
 * outputs:
 *   text: \${hello.output}
 * `],
 *   scripts: { hello: ({ input }) => `Hello ${input.who}` },
 * });
 *
 * const run = await orchestrator.execute('greet', { who: 'Ada' });
 * console.log(run.status, run.output); // completed { text: 'Hello Ada' }
 * ```
 */
export function createOrchestrator<const E extends readonly EnsembleSource[] = readonly EnsembleSource[]>(
  options: OrchestratorOptions<E> = {},
): Orchestrator<EnsembleTypes<E>> {
  checkOptions(options);
  const clock = options.clock ?? systemClock();
  const storage = answersInTime(options.storage ?? memoryStorage(), clock, STORAGE_TIMEOUT_MS);
  const linkSecrets = options.signalLinks && secretsOf(options.signalLinks);
  const secrets = [...Object.values(options.secrets ?? {}), ...(linkSecrets ?? [])];
  const masking = createMasking(secrets, linkSecrets !== undefined);
  const logger = options.logger ? masking.logger(options.logger) : SILENT;
  const host = compileHost({ ...options, clock, storage });
  const ensembles = loadEnsembles(options.ensembles ?? [], host);
  logWarnings(ensembles.values(), logger);
  const agents = new Map<string, LoadedEnsemble>();
  for (const [name, agent] of host.sharedAgents) if (!agent.routes) agents.set(name, loadSharedAgent(agent, host));

  const events = createEmitter(clock, logger);
  const ids = createIdSource();
  const restore = createRestore({ ensembles, agents, host });
  const runner = createRunner({
    clock,
    storage,
    logger,
    mask: masking.text,
    events,
    ids,
    env: host.env,
    engine: options.engine ?? embeddedEngine(),
    retentionMs: options.retention ?? DEFAULT_RETENTION_MS,
    restore,
    find: (name) => ensemble(name),
  });
  const ensemble = (name: string) => find(ensembles, 'ensemble', name);
  const agent = (name: string) => find(agents, 'agent', name);
  const schedules =
    options.schedules === false ? undefined : createSchedules(ensembles.values(), { storage, clock, logger, runner });
  // The first start begins to serve them.
  const starting = (): Runner => {
    schedules?.begin(false);
    return runner;
  };
  let closing: Promise<void> | undefined;

  const orchestrator: Orchestrator<Types> = {
    execute: (name, input?: unknown, opts?: ExecuteOptions) =>
      starting().execute(() => ensemble(name), input, opts) as never,
    start: (name, input?: unknown, opts?: ExecuteOptions) =>
      starting().start(() => ensemble(name), input, opts) as never,
    executeAgent: (name, input, opts) => starting().execute(() => agent(name), input, opts),
    startAgent: (name, input, opts) => starting().start(() => agent(name), input, opts),
    on: (event, listener) => events.on(event, listener),
    ensembles: createEnsembles(ensembles, ensemble, clock),
    executions: createExecutions({ storage, clock, runner, ids, restore }),
    tokens: createTokens({ store: storage.tokens, clock, ids, brand: options.brand ?? 'service' }),
    signalLinks: linkSecrets && createSignalLinks({ secrets: linkSecrets, storage, clock, engine: runner.engine }),
    async ready() {
      await storage.getDefinition('-');
      await runner.engine.open();
      await schedules?.begin(true);
    },
    runDue({ limit = 100 } = {}) {
      if (!Number.isSafeInteger(limit) || limit < 1) {
        return Promise.reject(new TypeError(`runDue: limit must be a whole number of at least 1, not ${limit}`));
      }
      return schedules ? runAllDue(schedules, runner.engine, limit) : runner.engine.runDue(limit);
    },
    close({ grace = 25_000 } = {}) {
      schedules?.stop();
      closing ??= runner.engine.close(grace).finally(() => storage.close());
      return closing;
    },
  };
  return Object.assign(orchestrator, { [MASKING]: masking }) as unknown as Orchestrator<EnsembleTypes<E>>;
}

/** What definitions are compiled against: built-in and given operations, shared agents, variables. */
export function compileHost(options: OrchestratorOptions): CompileHost {
  const operations = new Map<string, AnyOperation>();
  const clock = options.clock ?? systemClock();
  const storage = options.storage ?? memoryStorage();
  const builtIn: AnyOperation[] = [
    apiOperation({ http: options.http ?? fetchHttp(), now: () => clock.now() }),
    codeOperation(options.scripts ?? {}),
    storageOperation({
      bindings: { kv: storage.kv, objects: storage.objects, ...options.bindings },
      now: () => clock.now(),
    }),
  ];
  for (const operation of builtIn) operations.set(operation.name, operation);
  for (const operation of options.operations ?? []) {
    if (operations.has(operation.name))
      throw new TypeError(
        `createOrchestrator: operation \`${operation.name}\` is there already; give yours another name`,
      );
    operations.set(operation.name, operation);
  }
  return {
    operations,
    sharedAgents: readSharedAgents(options.agents ?? []),
    env: Object.freeze({ ...options.env, ...options.secrets }),
    secretNames: new Set(Object.keys(options.secrets ?? {})),
    functions: functionsOf(options),
  };
}

function functionsOf({ functions, signalLinks }: OrchestratorOptions): FunctionTable | undefined {
  if (!signalLinks) return functions && extendFunctions(functions);
  const [secret = ''] = secretsOf(signalLinks);
  const signalUrl = signalUrlFunction(signalLinks.url.replace(/\/+$/, ''), secret);
  return extendFunctions(functions ?? {}, { signalUrl });
}

function find(all: ReadonlyMap<string, LoadedEnsemble>, what: string, name: string): LoadedEnsemble {
  const found = all.get(name);
  if (found) return found;
  const near = typeof name === 'string' ? suggestName(name, all.keys()) : undefined;
  throw new OrchestratorError(
    'NOT_FOUND',
    `there is no ${what} \`${name}\`${near ? `; did you mean \`${near}\`?` : ''}`,
  );
}
