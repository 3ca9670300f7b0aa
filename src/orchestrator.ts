/** `createOrchestrator()`: the one place where the engine, the operations and the adapters are put together. */

import { systemClock } from './adapters/clock/system-clock.ts';
import { embeddedEngine } from './adapters/engine/embedded-engine.ts';
import { fetchHttp } from './adapters/http/fetch-http.ts';
import { memoryStorage } from './adapters/storage/memory-storage.ts';
import type { EnsembleSource, EnsembleTypes } from './define.ts';
import { createTokens, type Tokens } from './engine/access/tokens.ts';
import type { CompileHost } from './engine/definition/compile-host.ts';
import { OrchestratorError } from './engine/errors.ts';
import { createMask, maskLogger } from './engine/execution/mask-secrets.ts';
import { extendFunctions } from './engine/expression/functions/builtin-functions.ts';
import type { EventKind } from './engine/model/event.ts';
import type { Execution } from './engine/model/execution.ts';
import { createIdSource } from './engine/model/id.ts';
import { createEmitter, type EventListener } from './engine/notification/emitter.ts';
import type { Logger } from './engine/ports/logger.ts';
import type { AnyOperation } from './engine/ports/operation.ts';
import { suggestName } from './engine/suggest-name.ts';
import { createEnsembles, type Ensembles } from './ensembles.ts';
import { createExecutions, type Executions } from './executions.ts';
import { type LoadedEnsemble, loadEnsemble, loadSharedAgent, readSharedAgents } from './load-definitions.ts';
import { apiOperation } from './operations/api.ts';
import { codeOperation } from './operations/code.ts';
import { storageOperation } from './operations/storage.ts';
import { checkOptions, type OrchestratorOptions } from './options.ts';
import { createRunner, type ExecuteOptions, type ExecutionHandle } from './runner.ts';

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
  /** Resolves when the orchestrator can work: its storage answers. */
  ready(): Promise<void>;
  /**
   * Takes nothing new, waits up to `grace` ms (default 25,000) for the runs at work, cancels those that are left, and closes the storage.
   * A second call gives the same promise.
   */
  close(options?: { readonly grace?: number }): Promise<void>;
}

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
  const storage = options.storage ?? memoryStorage();
  const mask = createMask(Object.values(options.secrets ?? {}));
  const logger = options.logger ? maskLogger(options.logger, mask) : SILENT;
  const host = compileHost({ ...options, clock, storage });
  const ensembles = loadAll(options.ensembles ?? [], host);
  const agents = new Map<string, LoadedEnsemble>();
  for (const [name, agent] of host.sharedAgents) if (!agent.routes) agents.set(name, loadSharedAgent(agent, host));

  const events = createEmitter(clock, logger);
  const ids = createIdSource();
  const runner = createRunner({
    clock,
    storage,
    logger,
    mask,
    events,
    ids,
    env: host.env,
    engine: options.engine ?? embeddedEngine(),
  });
  const ensemble = (name: string) => find(ensembles, 'ensemble', name);
  const agent = (name: string) => find(agents, 'agent', name);
  let closing: Promise<void> | undefined;

  const orchestrator: Orchestrator<Types> = {
    execute: (name, input?: unknown, opts?: ExecuteOptions) =>
      runner.execute(() => ensemble(name), input, opts) as never,
    start: (name, input?: unknown, opts?: ExecuteOptions) => runner.start(() => ensemble(name), input, opts) as never,
    executeAgent: (name, input, opts) => runner.execute(() => agent(name), input, opts),
    startAgent: (name, input, opts) => runner.start(() => agent(name), input, opts),
    on: (event, listener) => events.on(event, listener),
    ensembles: createEnsembles(ensembles, ensemble, clock),
    executions: createExecutions(storage, events, clock),
    tokens: createTokens({ store: storage.tokens, clock, ids, brand: options.brand ?? 'service' }),
    async ready() {
      await storage.getDefinition('-');
    },
    close({ grace = 25_000 } = {}) {
      closing ??= runner.close(grace).then(() => storage.close());
      return closing;
    },
  };
  return orchestrator as unknown as Orchestrator<EnsembleTypes<E>>;
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
    functions: options.functions && extendFunctions(options.functions),
  };
}

function loadAll(sources: readonly EnsembleSource[], host: CompileHost): ReadonlyMap<string, LoadedEnsemble> {
  const ensembles = new Map<string, LoadedEnsemble>();
  const webhooks = new Map<string, string>();
  for (const source of sources) {
    const loaded = loadEnsemble(source, host);
    const { name, definition } = loaded.compiled;
    if (ensembles.has(name)) throw new OrchestratorError('INVALID_DEFINITION', `two ensembles are named \`${name}\``);
    for (const trigger of definition.trigger ?? []) {
      for (const method of trigger.methods ?? ['POST']) {
        const route = `${method} ${trigger.path}`;
        const other = webhooks.get(route);
        if (other !== undefined)
          throw new OrchestratorError(
            'INVALID_DEFINITION',
            `ensembles \`${other}\` and \`${name}\` both have a trigger for ${route}`,
          );
        webhooks.set(route, name);
      }
    }
    ensembles.set(name, loaded);
  }
  return ensembles;
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
