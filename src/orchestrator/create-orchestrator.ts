/** `createOrchestrator()`: connects the engine, the operations and the adapters. */

import { systemClock } from '../adapters/clock/system-clock.ts';
import { embeddedEngine } from '../adapters/embedded-engine/embedded-engine.ts';
import { onClock } from '../adapters/http/exchange.ts';
import { fetchHttp } from '../adapters/http/fetch-http.ts';
import { CONSOLE } from '../adapters/log/console-logger.ts';
import type { AgentSource, EnsembleSource, EnsembleTypes, OtherNames, TypedOptions } from '../authoring/define.ts';
import type { Limits } from '../engine/access/rules/limits.ts';
import type { Tokens } from '../engine/access/rules/tokens.ts';
import type { UsageReader } from '../engine/access/rules/usage.ts';
import { once } from '../engine/base/once.ts';
import { type Duration, toMs } from '../engine/base/time/duration.ts';
import type { CompileHost } from '../engine/definition/compile/triggers/compile-host.ts';
import type { EventKind } from '../engine/events/event.ts';
import { createEmitter, type EventListener } from '../engine/events/rules/emitter.ts';
import type { Execution } from '../engine/execution/execution.ts';
import { createIdSource } from '../engine/execution/id.ts';
import type { Clock } from '../engine/host/clock.port.ts';
import { loggerOf } from '../engine/host/logger.port.ts';
import { MASKING, type ServedDependencies } from '../engine/host/masking.port.ts';
import { createMasking } from '../engine/interpreter/attempt/mask-secrets.ts';
import type { ToolServers } from '../engine/operation/tool-server.port.ts';
import type { Script } from '../operations/code/script.ts';
import { createAccess } from './access.ts';
import { createMover } from './change/move.ts';
import { createClose } from './close.ts';
import { warnOfUses } from './components/check-uses.ts';
import type { Components } from './components/components.ts';
import { createComponentParts } from './components/create-component-parts.ts';
import { connectStorage } from './connect-storage.ts';
import { type Catalog, createCatalog } from './definitions/catalog.ts';
import { createDefinitions } from './definitions/create-definitions.ts';
import type { AgentItem, Agents, EnsembleItem, Ensembles } from './definitions/definitions.ts';
import { createEnsembleStates, type EnsembleStates } from './definitions/ensemble-states.ts';
import { loadEnsembles, logWarnings, readSharedAgents } from './definitions/load-definitions.ts';
import { createRestore } from './definitions/restore-definitions.ts';
import type { Kind } from './definitions/stored-definitions.ts';
import type { Deliveries } from './deliveries/deliveries.ts';
import type { Audit } from './operators/audit.ts';
import type { Jobs } from './operators/jobs.ts';
import { withAudit } from './operators/with-audit.ts';
import { type BuiltIn, everything } from './options/built-in.ts';
import { functionsOf } from './options/functions-of.ts';
import { mailSecrets } from './options/mail.ts';
import { modelSecrets } from './options/models.ts';
import {
  checkOptions,
  DEFAULT_BRAND,
  DEFAULT_RETENTION,
  type OrchestratorOptions,
  secretsOf,
} from './options/options.ts';
import { connectToolServers, registerOperations, STAND_IN, type WithStandIn } from './options/register-operations.ts';
import { toolServerSecrets } from './options/tool-server-options.ts';
import { createExecutions } from './runs/create-executions.ts';
import { createExecutionService, type ExecutionService } from './runs/execution-service.ts';
import type { Executions } from './runs/executions.ts';
import { createLimitNumbers } from './runs/flow-limits.ts';
import type { ExecutionHandle } from './runs/handles.ts';
import type { ExecuteOptions } from './runs/starts/execute-options.ts';
import type { Schedules } from './schedules/schedule-control.ts';
import { createSignalForms } from './signals/signal-forms.ts';
import { createSignalLinks, type SignalLinks } from './signals/signal-links.ts';
import { connectTelemetry } from './telemetry.ts';
import { steadyClock } from './timed/steady-clock.ts';
import { createTimedParts } from './timed/timed-parts.ts';
import { runAllDue } from './timed/timed-work.ts';
import { createTraffic, type TrafficParts } from './traffic/traffic.ts';
import type { WebhookClaims } from './webhooks/webhook-claims.ts';
import { createWebhookParts, type Webhooks } from './webhooks/webhooks.ts';

type Types = Readonly<Record<string, { readonly input: unknown; readonly output: unknown }>>;
type InputArguments<T, N> = N extends keyof T
  ? T[N] extends { readonly input: infer I }
    ? Record<never, never> extends I
      ? [input?: I, options?: ExecuteOptions]
      : [input: I, options?: ExecuteOptions]
    : never
  : [input?: unknown, options?: ExecuteOptions];
type OutputFor<T, N> = N extends keyof T ? (T[N] extends { readonly output: infer O } ? O : unknown) : unknown;
type SignalsOf<T> = T extends OtherNames
  ? string
  : T[keyof T] extends { readonly signal: infer S }
    ? S & string
    : string;
type NameFor<T> = T extends OtherNames ? (keyof T & string) | (string & Record<never, never>) : keyof T & string;

export interface Orchestrator<T = Types> {
  /**
   * Runs an ensemble and returns the record of its ended execution. A failed execution is a result: it is not thrown.
   *
   * @throws NOT_FOUND for an unknown name; INVALID_INPUT if the input does not fit `inputs`: then nothing is stored
   */
  execute<N extends NameFor<T>>(name: N, ...rest: InputArguments<T, N>): Promise<Execution<OutputFor<T, N>>>;
  /** Starts an execution, and returns its handle after it is stored. @throws as {@link Orchestrator.execute} */
  start<N extends NameFor<T>>(name: N, ...rest: InputArguments<T, N>): Promise<ExecutionHandle<OutputFor<T, N>>>;
  /** Runs one shared agent. `input` is the agent's input, and the output is the agent's output. @throws as {@link Orchestrator.execute} */
  executeAgent(name: string, input?: unknown, options?: ExecuteOptions): Promise<Execution<unknown>>;
  /** Starts an execution of one shared agent. @throws as {@link Orchestrator.execute} */
  startAgent(name: string, input?: unknown, options?: ExecuteOptions): Promise<ExecutionHandle>;
  /** Calls `listener` for each event of a kind. A listener that throws has no other effect. @returns a function that removes it */
  on<K extends EventKind | '*'>(event: K, listener: EventListener<K>): () => void;
  /** The word in token values and header names. */
  readonly brand: string;
  readonly ensembles: Ensembles;
  /** The shared agents. */
  readonly agents: Agents;
  readonly executions: Executions<SignalsOf<T>>;
  /** Who changed which executions. */
  readonly audit: Audit;
  /** What the notifications of executions send. */
  readonly deliveries: Deliveries;
  readonly tokens: Tokens;
  /** The states of ensembles. */
  readonly state: EnsembleStates;
  /** What a caller has used. */
  readonly usage: UsageReader;
  /** Counts requests against the limits of their caller, for hosts with routes of their own. The handlers of the library call it. */
  readonly limits: Limits;
  /** The webhooks that start ensembles. */
  readonly webhooks: Webhooks;
  readonly components: Components;
  /** The schedules of the ensembles that code defines. */
  readonly schedules: Schedules;
  /** Jobs that cancel, retry or delete many executions. */
  readonly jobs: Jobs;
  /** The links that `signalUrl()` creates. Undefined without the option `signalLinks`. */
  readonly signalLinks: SignalLinks | undefined;
  /**
   * Resolves when the storage answers, and the orchestrator has begun to work on executions that are queued, due, or left by other
   * processes. Without this call, the first start does the same.
   *
   * @throws CONFLICT if the storage allows one process only, and another process uses it
   */
  ready(): Promise<void>;
  /**
   * Runs what is due now, and waits for it. For a host that keeps no process alive, such as a cron trigger.
   *
   * @param options - `limit`: the largest number of executions (default 100)
   * @returns the instant (Unix ms) at which something is due next. Absent if nothing will be due
   */
  runDue(options?: { readonly limit?: number }): Promise<{ readonly nextDueAt?: number }>;
  /**
   * Accepts nothing new, and waits up to `grace` (default `25s`) for active runs. Then it releases the remaining executions:
   * another process continues them, or this one after a restart. In a memory storage they are cancelled, because no process could
   * continue them. At the end, it closes the storage. A second call returns the same promise. With `grace: 0` it waits for no step: the
   * signal of a running step is aborted, and its later result is dropped.
   */
  close(options?: { readonly grace?: Duration }): Promise<void>;
}

/**
 * Creates an orchestrator. It checks the options and loads the definitions. It does no I/O, sets no timer and draws no random numbers.
 *
 * @throws INVALID_DEFINITION with all problems of the definitions in `details.issues`; NOT_CONFIGURED if a definition needs something
 *   that the options lack; TypeError for options of a wrong type
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
export function createOrchestrator<
  const E extends readonly EnsembleSource[] = readonly EnsembleSource[],
  const A extends readonly AgentSource[] = readonly AgentSource[],
  S extends Readonly<Record<string, Script>> = Record<never, never>,
>(options?: TypedOptions<OrchestratorOptions<E>, E, A, S>): Orchestrator<EnsembleTypes<E>>;
export function createOrchestrator(given: OrchestratorOptions = {}): Orchestrator {
  return assembleOrchestrator(given, everything());
}

/** @param builtIn - the parts that the options need not name */
// Four circles, each closed by a function that is called later: the storage reports what it stored to the deliveries, which use it; the
// telemetry counts open executions, whose starts it traces; definitions are restored for the engine that `createExecutionService` makes from
// `restore`; and the first start begins the timed work, which starts executions.
export function assembleOrchestrator(given: OrchestratorOptions, builtIn: BuiltIn): Orchestrator {
  checkOptions(given);
  const linkSecrets = given.signalLinks && secretsOf(given.signalLinks);
  const masking = createMasking([...secretsIn(given), ...(linkSecrets ?? [])], linkSecrets !== undefined);
  const logger = masking.logger(loggerOf(given.logger, CONSOLE));
  const clock = steadyClock(given.clock ?? systemClock(), logger);
  const events = createEmitter(clock, logger);
  const onStored = () => deliveries.onStored();
  const connected = connectStorage(given.storage ?? builtIn.storage(), { clock, logger, events, onStored });
  const { patient, engineStorage, storage } = connected;
  const http = onClock(given.http ?? fetchHttp(), clock);
  const { tracing, options } = connectTelemetry({ ...given, http }, masking, events, () => executions.open());
  const components = createComponentParts(options, { storage, clock, logger, events });
  const toolServers = connectToolServers(options, builtIn, clock.wall);
  const host = compileHostOf({ ...options, clock: clock.wall, storage }, builtIn, toolServers);
  const ensembles = (options as WithStandIn)[STAND_IN]?.ensembles ?? loadEnsembles(options.ensembles ?? [], host);
  logWarnings(ensembles.values(), logger);
  const base = { storage, clock, logger };
  const numbers = createLimitNumbers({ ...base, ensembles, storage: patient, service: () => executionService });
  const catalog = createCatalog({ host, ensembles, storage: patient, clock, logger, putLimits: numbers.put });

  const ensembleOf = (name: string) => catalog.find('ensemble', name);
  const brand = options.brand ?? DEFAULT_BRAND;
  const ids = createIdSource();
  const { plans, requestKeys, ...access } = createAccess(options.limits, { ...base, patient, ids, brand });
  const restore = createRestore({ ...catalog, host, logger, onlyQueues: () => executionService.engine.onlyQueues });
  const traffic = createTraffic({ ...base, events, catalog, host, restore, service: () => executionService });
  const executionService: ExecutionService = createExecutionService({
    ...{ clock, storage: patient, engineStorage, logger, events, ids, tracing },
    ...{ mask: masking.text, json: masking.json, keepsStacks: options.errors?.stack === true, env: host.env },
    engine: options.engine ?? embeddedEngine(),
    ...{ plans, restore, find: ensembleOf, resolveComponent: components.resolve },
    ended: [components.ended, traffic.ended],
    retentionMs: toMs(options.retention ?? DEFAULT_RETENTION),
    forget: ({ kind, name }) => catalog.forget(kind as Kind, name),
  });
  const forms = createSignalForms(patient.definitions);
  const mover = createMover({ ...executionService, ...catalog, storage: patient, clock, env: host.env, restore });
  const stored = { storage, patient, clock, forms, catalog };
  const executions = createExecutions({ ...stored, executionService, ids, restore, mover });
  const served = { storage, clock, logger, masking, host, brand, ensembles, executionService, events, ids };
  const later = { ...served, executions, mover, tracing, more: [components.rollouts, ...traffic.timed] };
  const { work, deliveries, ...timed } = createTimedParts(options, later);
  // The first start also begins to do what is timed, but not while the caller has the only connection that can write.
  const starting = (opts?: ExecuteOptions): ExecutionService => {
    if (opts?.transaction !== undefined && storage.capabilities.oneWriter) return executionService;
    work.begin(false);
    void numbers.putAll();
    return executionService;
  };
  const called = { ...served, catalog, starting, executions };
  const { webhooks, claims } = createWebhookParts(options, { ...called, storage: patient });
  const ensemblesApi = ensemblesOf(catalog, clock, claims, traffic);

  const orchestrator: Orchestrator = {
    execute: (name, input?: unknown, opts?: ExecuteOptions) =>
      starting().execute(() => ensembleOf(name), input, opts) as never,
    start: (name, input?: unknown, opts?: ExecuteOptions) =>
      starting(opts).start(() => ensembleOf(name), input, opts) as never,
    executeAgent: (name, input, opts) => starting().execute(() => catalog.find('agent', name), input, opts),
    startAgent: (name, input, opts) => starting(opts).start(() => catalog.find('agent', name), input, opts),
    on: (event, listener) => events.on(event, listener),
    brand,
    ensembles: ensemblesApi,
    webhooks,
    agents: createDefinitions<'agents', AgentItem>('agent', 'agents', catalog, clock),
    deliveries: deliveries.api,
    components: components.api,
    ...timed,
    ...withAudit({ storage: patient, clock, ids, logger }, executions, timed.jobs),
    ...access,
    state: createEnsembleStates({ store: storage.state, clock, ensembles: ensemblesApi }),
    signalLinks:
      linkSecrets &&
      createSignalLinks({ secrets: linkSecrets, texts: options.signalLinks?.texts, clock, executionService, forms }),
    async ready() {
      await Promise.all([readyPorts(options), storage.definitions.get('-')]);
      await executionService.engine.open();
      await numbers.putAll();
      deliveries.use();
      await work.begin(true);
      await warnOfUses(ensembles.values(), components.api, logger);
    },
    runDue: async ({ limit = 100 } = {}) =>
      runAllDue(work, executionService.engine, checkDueLimit(limit), clock.toWall),
    close: createClose(options, { ...served, toolServers, deliveries, stop: work.stop }),
  };
  const own = { log: logger, events, once: requestKeys.once, deliver: deliveries.deliver, options: () => given };
  const dependencies: ServedDependencies = { ...masking, ...own };
  return Object.assign(orchestrator, { [MASKING]: dependencies }) as unknown as Orchestrator;
}

function ensemblesOf(catalog: Catalog, clock: Clock, claims: WebhookClaims, traffic: TrafficParts): Ensembles {
  const { set, removed } = traffic;
  const stored = createDefinitions<'ensembles', EnsembleItem>('ensemble', 'ensembles', catalog, clock, claims, removed);
  return { ...stored, traffic: set };
}

/** @throws TypeError */
function checkDueLimit(limit: number): number {
  if (Number.isSafeInteger(limit) && limit >= 1) return limit;
  throw new TypeError(`runDue: limit must be a whole number of at least 1, not ${limit}`);
}

/** A package that is missing is found here, and not by the step that needs it. @throws NOT_CONFIGURED */
async function readyPorts(options: OrchestratorOptions): Promise<void> {
  const { pdf, mcp, components, limits, mail = {}, bindings = {} } = options;
  const ports = [pdf, mcp, components, limits?.store, ...Object.values(mail), ...Object.values(bindings)];
  await Promise.all(ports.map((port) => port?.ready?.()));
}

/** The values of secrets, and the secrets in the options of servers and senders. */
function secretsIn({ secrets = {}, mcpServers = {}, models, mail }: OrchestratorOptions): readonly string[] {
  return [...Object.values(secrets), ...toolServerSecrets(mcpServers), ...modelSecrets(models), ...mailSecrets(mail)];
}

/** What definitions are compiled against: operations, shared agents, variables and functions. */
export function compileHost(options: OrchestratorOptions): CompileHost {
  return compileHostOf(options, everything());
}

function compileHostOf(options: OrchestratorOptions, builtIn: BuiltIn, toolServers?: ToolServers): CompileHost {
  const clock = options.clock ?? systemClock();
  const store = options.storage ?? builtIn.storage();
  const servers = toolServers ?? connectToolServers(options, builtIn, clock);
  return {
    operations: registerOperations(options, builtIn, { clock, storage: store, servers }),
    sharedAgents: readSharedAgents(options.agents ?? []),
    env: Object.freeze({ ...options.env, ...options.secrets }),
    secretNames: new Set(Object.keys(options.secrets ?? {})),
    functions: functionsOf(options),
    readAt: once(() => clock.now()),
    sharedLimits: new Map(
      Object.entries(options.sharedLimits ?? {}).map(([name, { concurrency }]) => [name, concurrency]),
    ),
    templates: options.templates,
    mailSenders: Object.keys(options.mail ?? {}),
  };
}
