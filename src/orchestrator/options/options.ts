/** The options of `createOrchestrator`, and the checks of these options and of the options of its methods. */

import type { ModelServerOptions } from '../../adapters/models/model-server-options.ts';
import type { AgentSource, EnsembleSource } from '../../authoring/define.ts';
import { checkLimits, isPrincipal, type LimitsOptions } from '../../engine/access/rules/plans.ts';
import type { Principal } from '../../engine/access/token.ts';
import {
  checkedLater,
  duration,
  flag,
  hasMethods,
  isRecord,
  like,
  type OptionCheck,
  type OptionChecks,
  optional,
  readOptions,
  refuseUnknownKeys,
  requiredOption,
  someText,
  withMethods,
} from '../../engine/base/read-options.ts';
import { DURATION_RULE, type Duration, isDuration } from '../../engine/base/time/duration.ts';
import type { ComponentSource } from '../../engine/component/component-source.port.ts';
import type { TemplateEngine } from '../../engine/component/template-engine.port.ts';
import { NAME_PATTERN, NAME_RULE } from '../../engine/ensemble/name.ts';
import { isTraceparent, TRACEPARENT_RULE } from '../../engine/events/trace-context.ts';
import type { DryRunOptions } from '../../engine/execution/execution.ts';
import type { ExecutionEngine } from '../../engine/execution/execution-engine.port.ts';
import { MAX_HELD_AT_ONCE } from '../../engine/execution/limits/flow-limit.ts';
import {
  areTags,
  isIdempotencyKey,
  isOwnId,
  START_RULES,
  type StartIdentity,
} from '../../engine/execution/start-once.ts';
import type { FunctionTable } from '../../engine/expression/functions/function-table.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { HttpClient } from '../../engine/host/http.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { Telemetry } from '../../engine/host/telemetry.port.ts';
import type { MailSender } from '../../engine/operation/mail.port.ts';
import type { ModelProvider } from '../../engine/operation/model.port.ts';
import type { AnyOperation } from '../../engine/operation/operation.port.ts';
import type { PdfRenderer } from '../../engine/operation/pdf.port.ts';
import type { SmsSender } from '../../engine/operation/sms.port.ts';
import type { McpClient, ToolServerOptions } from '../../engine/operation/tool-server.port.ts';
import { SIGNAL_LINK_STATES, type SignalPageTexts } from '../../engine/signal/signal-page.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import type { Script } from '../../operations/code/script.ts';
import type { Binding } from '../../operations/storage/storage-operation.ts';
import { checkMailSender } from './mail.ts';
import { checkModel } from './models.ts';
import { checkToolServer } from './tool-server-options.ts';

export interface OrchestratorOptions<E extends readonly EnsembleSource[] = readonly EnsembleSource[]> {
  /** YAML texts, objects, or results of `defineEnsemble`. */
  readonly ensembles?: E | undefined;
  /** Agents that all ensembles can use. */
  readonly agents?: readonly AgentSource[] | undefined;
  /** Scripts by name, for `operation: code`. */
  readonly scripts?: Readonly<Record<string, Script>> | undefined;
  /** Operations in addition to the built-in ones. */
  readonly operations?: readonly AnyOperation[] | undefined;
  /** Pure functions for expressions, in addition to the built-in ones. */
  readonly functions?: FunctionTable | undefined;
  /** Default `memoryStorage()`. */
  readonly storage?: Storage | undefined;
  /**
   * Key-value stores, object stores and SQL databases by name, for `operation: storage`. By default, `kv` and `objects` are those of
   * the configured storage, and there is no SQL database.
   */
  readonly bindings?: Readonly<Record<string, Binding>> | undefined;
  /** Tool servers by name, for `operation: tools`. */
  readonly mcpServers?: Readonly<Record<string, ToolServerOptions>> | undefined;
  /** The client for tool servers with `transport: mcp`, from `ensemble-orchestrator/mcp`. */
  readonly mcp?: McpClient | undefined;
  /** Default `embeddedEngine()`. */
  readonly engine?: ExecutionEngine | undefined;
  /**
   * Language models by the name of their provider, for `operation: think`. An entry with a `url` is a server with the
   * `chat/completions` API. Its requests go through `http`, and its key and headers are masked like `secrets`.
   */
  readonly models?: Readonly<Record<string, ModelProvider | ModelServerOptions>> | undefined;
  /** Mail senders by the name of their provider, for `operation: email`. `close()` closes them. */
  readonly mail?: Readonly<Record<string, MailSender>> | undefined;
  /** SMS senders by name, for `operation: sms`, such as `twilioSms(...)` of `ensemble-orchestrator/twilio`. */
  readonly sms?: Readonly<Record<string, SmsSender>> | undefined;
  /** The renderer for `operation: pdf`, such as `embeddedPdf()` from `ensemble-orchestrator/pdf`. */
  readonly pdf?: PdfRenderer | undefined;
  /** Where prompts, templates, configs and queries are kept that are versioned apart from code. Default: the storage. */
  readonly components?: ComponentSource | undefined;
  /** The language of stored templates, such as `liquidTemplates()` of `ensemble-orchestrator/liquid`. Default: `{{ ... }}` and `${...}`. */
  readonly templates?: TemplateEngine | undefined;
  /** Outbound HTTP. Default `fetchHttp()`. */
  readonly http?: HttpClient | undefined;
  /** Default `systemClock()`. */
  readonly clock?: Clock | undefined;
  /** The values of `${env.X}`. The environment of the process is never read automatically. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Read like `env`. Their values never appear in outputs, state, events, errors and logs. */
  readonly secrets?: Readonly<Record<string, string>> | undefined;
  /** Lets expressions create links with `signalUrl()`, by which people send signals. Without it, an ensemble that calls it is refused. */
  readonly signalLinks?: SignalLinksOptions | undefined;
  /** The word in token values (`sk-<brand>-...`) and header names. Default `service`. */
  readonly brand?: string | undefined;
  /**
   * Whether this process serves `schedule` triggers. Several processes may serve them. Default true: the process begins with `ready()`
   * or the first start, and in `runDue()`.
   */
  readonly schedules?: boolean | undefined;
  /** How much callers may do: plans, requests of an address, and where requests are counted. Default: plan `free` for tokens. */
  readonly limits?: LimitsOptions | undefined;
  /** Limits by name that several ensembles share: how many of their executions are held at once, over all processes. Default: none. */
  readonly sharedLimits?: Readonly<Record<string, SharedLimit>> | undefined;
  /** How long executions are kept after their end: milliseconds, or text. Older ones are deleted in the background. Default `30d`. */
  readonly retention?: Duration | undefined;
  /** Default: warnings and errors on `console`, each on one line. With `false`, nothing is logged. */
  readonly logger?: Logger | false | undefined;
  /** What is kept of the errors of scripts and operations. */
  readonly errors?: ErrorsOptions | undefined;
  /** Who traces and measures what happens, such as `openTelemetry()` of `ensemble-orchestrator/otel`. Default: nobody. */
  readonly telemetry?: Telemetry | undefined;
}

export interface SharedLimit {
  /** The number of slots, 1 to 100,000. */
  readonly concurrency: number;
}

export interface ErrorsOptions {
  /**
   * Whether the record of a failed agent, and of its execution, has the `stack` and the `cause` of what was thrown, with secrets
   * masked. The log always has them. Default false; `ensemble serve`, `ensemble run` and `createTestOrchestrator` set it to true.
   */
  readonly stack?: boolean | undefined;
}

export interface SignalLinksOptions {
  /** The public address of the mounted handler, its `basePath` included, such as `https://flows.example/service`. */
  readonly url: string;
  /**
   * Signs the links: at least 32 characters that nobody can guess. The first of a list signs new links, and links signed with any of
   * the list are valid.
   */
  readonly secret: string | readonly string[];
  /** The texts of the pages, in your language. Default: English. */
  readonly texts?: SignalPageTexts | undefined;
}

/** The options of an orchestrator whose outbound requests have one client. */
export type ConnectedOptions = OrchestratorOptions & { readonly http: HttpClient };

/** How long ended executions and deliveries are kept. */
export const DEFAULT_RETENTION: Duration = '30d';
/** The default of `brand`. */
export const DEFAULT_BRAND = 'service';

const LIST = optional('an array', Array.isArray);
const RECORD = optional('an object with names as keys', isRecord);
const TEXTS: OptionCheck = (given) => {
  const other = Object.entries(given ?? {}).find(([, value]) => typeof value !== 'string');
  return RECORD(given) ?? (other && `must have a string for each name; \`${other[0]}\` has another value`);
};
const LOGGER = ['debug', 'info', 'warn', 'error'];

const CHECKS: OptionChecks<OrchestratorOptions> = {
  ...{ ensembles: LIST, agents: LIST, operations: LIST },
  ...{
    scripts: RECORD,
    bindings: RECORD,
    mcpServers: RECORD,
    models: RECORD,
    mail: RECORD,
    sms: RECORD,
    sharedLimits: RECORD,
  },
  ...{ functions: RECORD, env: TEXTS, secrets: TEXTS },
  storage: (value) =>
    typeof value === 'string'
      ? "must be a Storage; for a file, write `sqliteStorage({ path: 'FILE' })` with `sqliteStorage` from 'ensemble-orchestrator/sqlite'"
      : withMethods('a Storage such as memoryStorage()', 'commit', 'close')(value),
  engine: withMethods('an ExecutionEngine such as embeddedEngine()', 'attach'),
  mcp: withMethods('an McpClient of `ensemble-orchestrator/mcp`', 'connect'),
  pdf: withMethods('a PdfRenderer of `ensemble-orchestrator/pdf`', 'render'),
  components: withMethods('a ComponentSource, with read and move', 'read', 'move'),
  templates: withMethods('a TemplateEngine of `ensemble-orchestrator/liquid`', 'compile'),
  http: withMethods('an HttpClient such as fetchHttp()', 'send'),
  clock: withMethods('a Clock such as systemClock()', 'now', 'setTimer'),
  logger: optional(
    `false or a Logger such as console, with ${LOGGER.join(', ')}`,
    (given) => given === false || hasMethods(given, LOGGER),
  ),
  signalLinks: optional('{ url, secret }', isRecord),
  brand: optional('one word of up to 32 letters and digits', like(/^[A-Za-z][A-Za-z0-9]{0,31}$/)),
  schedules: flag,
  limits: checkedLater,
  retention: duration(),
  errors: optional('{ stack }', isRecord),
  telemetry: withMethods('the result of openTelemetry() of `ensemble-orchestrator/otel`', 'attach'),
};

/** Whether an entry of `operations` is a call such as `code()` of the entry for Workers. */
export function isBuiltIn(operation: unknown): boolean {
  const { make, run } = (operation ?? {}) as { readonly make?: unknown; readonly run?: unknown };
  return typeof make === 'function' && run === undefined;
}

/** @throws TypeError for an unknown key, and for values of a wrong type */
export function checkOptions(options: OrchestratorOptions): void {
  readOptions('createOrchestrator', options, CHECKS);
  for (const [i, operation] of (options.operations ?? []).entries()) {
    if (isBuiltIn(operation))
      throw misuse(
        `\`operations[${i}]\`: \`${operation.name}\` is built in here; a list of all operations is for createOrchestrator of ensemble-orchestrator/workers`,
      );
    if (typeof operation?.name !== 'string' || typeof operation.run !== 'function')
      throw misuse(`\`operations[${i}]\` must be a result of defineOperation({ name, run })`);
    if (operation.config !== undefined && typeof operation.config?.['~standard']?.validate !== 'function')
      throw misuse(
        `\`config\` of operation \`${operation.name}\` must be a Standard Schema, such as one of zod, valibot or arktype`,
      );
  }
  checkEntries(options);
  if (options.errors !== undefined) readOptions('createOrchestrator: `errors`', options.errors, { stack: flag });
  if (options.limits !== undefined) checkLimits(options.limits);
  if (options.signalLinks !== undefined) checkSignalLinks(options.signalLinks);
  for (const name of Object.keys(options.secrets ?? {})) {
    if (Object.hasOwn(options.env ?? {}, name)) throw misuse(`\`${name}\` is in \`env\` and in \`secrets\`; keep one`);
  }
}

/** The entries of the options that are records. */
function checkEntries(options: OrchestratorOptions): void {
  for (const [name, script] of Object.entries(options.scripts ?? {})) {
    if (typeof script !== 'function') throw misuse(`script \`${name}\` must be a function`);
  }
  for (const [name, binding] of Object.entries(options.bindings ?? {})) {
    if (!['kv', 'objects', 'sql'].includes(binding?.kind))
      throw misuse(`binding \`${name}\` must be a KvStore, an ObjectStore or an SqlDatabase`);
  }
  for (const [name, given] of Object.entries(options.models ?? {})) checkModel(name, given);
  for (const [name, given] of Object.entries(options.mail ?? {})) checkMailSender(name, given);
  for (const [name, sender] of Object.entries(options.sms ?? {})) {
    if (typeof sender?.send !== 'function')
      throw misuse(`\`sms.${name}\` must be an SmsSender with send, such as twilioSms(...)`);
  }
  for (const [name, limit] of Object.entries(options.sharedLimits ?? {})) {
    if (!NAME_PATTERN.test(name))
      throw misuse(`\`sharedLimits\`: ${JSON.stringify(name)} is not a name (${NAME_RULE})`);
    readOptions(`createOrchestrator: \`sharedLimits.${name}\``, limit, {
      concurrency: requiredOption(
        `a whole number from 1 to ${MAX_HELD_AT_ONCE}`,
        (given) => Number.isInteger(given) && (given as number) >= 1 && (given as number) <= MAX_HELD_AT_ONCE,
      ),
    });
  }
  for (const [name, server] of Object.entries(options.mcpServers ?? {})) checkToolServer(name, server, options.mcp);
}

function misuse(what: string): TypeError {
  return new TypeError(`createOrchestrator: ${what}`);
}

function checkSignalLinks(options: SignalLinksOptions): void {
  const what = 'createOrchestrator: `signalLinks`';
  readOptions(what, options, {
    url: requiredOption(
      "the public address of the mounted handler, such as 'https://flows.example/service', without a query",
      like(/^https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/),
    ),
    secret: checkedLater,
    texts: checkedLater,
  });
  const secrets = secretsOf(options);
  if (secrets.length === 0 || !secrets.every((secret) => typeof secret === 'string' && secret.length >= 32)) {
    throw new TypeError(`${what}: \`secret\` must be text of at least 32 characters, or a list of such texts`);
  }
  if (options.texts !== undefined) checkPageTexts(options.texts, `${what}.texts`);
}

function checkPageTexts(texts: SignalPageTexts, what: string): void {
  const { states = {} } = readOptions(what, texts, {
    lang: optional("the tag of a language, such as 'de'", like(/^[A-Za-z0-9-]{2,35}$/)),
    confirm: someText,
    states: optional('an object with states as keys', isRecord),
  });
  refuseUnknownKeys(states, SIGNAL_LINK_STATES, `${what}.states`);
  for (const [state, page] of Object.entries(states))
    if (typeof page?.title !== 'string' || typeof page.text !== 'string')
      throw new TypeError(`${what}.states.${state}: must be { title, text }`);
}

/** The secrets of signed links. The first one signs new links. */
export function secretsOf({ secret }: SignalLinksOptions): readonly string[] {
  return typeof secret === 'string' ? [secret] : Array.isArray(secret) ? secret : [];
}

const EXECUTE_KEYS = [
  'signal',
  'timeout',
  'trigger',
  'hops',
  'traceparent',
  'tracestate',
  'events',
  'id',
  'idempotencyKey',
  'idempotencyScope',
  'tags',
  'principal',
  'overLimit',
  'dryRun',
  'transaction',
];

/** @throws TypeError for anything but the result of `tokens.verify()` */
export function checkPrincipal(principal: Principal | undefined): void {
  if (principal !== undefined && !isPrincipal(principal))
    throw new TypeError(
      'execute: `principal` must have a `tokenId` and a `plan`, such as the result of tokens.verify()',
    );
}

/** Checks the options of a start before anything is stored, not in the middle of the run. @throws TypeError */
export function checkExecuteOptions(
  options: StartIdentity & {
    readonly signal?: AbortSignal;
    readonly timeout?: Duration;
    readonly hops?: number;
    readonly traceparent?: string;
    readonly tracestate?: string;
    readonly principal?: Principal;
    readonly overLimit?: 'queue' | 'refuse';
    readonly dryRun?: boolean | DryRunOptions;
  },
): void {
  refuseUnknownKeys(options, EXECUTE_KEYS, 'execute');
  const { signal, timeout, hops, id, idempotencyKey, idempotencyScope, tags, overLimit } = options;
  const { traceparent, tracestate } = options;
  if (timeout !== undefined && !isDuration(timeout))
    throw new TypeError(`execute: \`timeout\` ${DURATION_RULE}, above 0, not ${String(timeout)}`);
  if (signal !== undefined && typeof signal?.addEventListener !== 'function')
    throw new TypeError('execute: `signal` must be an AbortSignal, such as that of `new AbortController()`');
  if (hops !== undefined && !(Number.isInteger(hops) && hops >= 0))
    throw new TypeError('execute: `hops` must be a whole number from 0');
  if (traceparent !== undefined && !isTraceparent(traceparent)) throw new TypeError(`execute: ${TRACEPARENT_RULE}`);
  if (tracestate !== undefined && typeof tracestate !== 'string')
    throw new TypeError('execute: `tracestate` must be text');
  if (id !== undefined && !isOwnId(id)) throw new TypeError(`execute: ${START_RULES.id}`);
  if (idempotencyKey !== undefined && !isIdempotencyKey(idempotencyKey))
    throw new TypeError(`execute: ${START_RULES.idempotencyKey}`);
  if (idempotencyScope !== undefined && !isIdempotencyKey(idempotencyScope))
    throw new TypeError(`execute: ${START_RULES.idempotencyKey.replace('Key', 'Scope')}`);
  checkPrincipal(options.principal);
  if (overLimit !== undefined && overLimit !== 'queue' && overLimit !== 'refuse')
    throw new TypeError(`execute: \`overLimit\` must be 'queue' or 'refuse', not ${JSON.stringify(overLimit)}`);
  if (tags !== undefined && !areTags(tags)) throw new TypeError(`execute: ${START_RULES.tags}`);
  if (options.dryRun) checkDryRun(options.dryRun, options);
}

function checkDryRun(given: true | DryRunOptions, { id, idempotencyKey }: StartIdentity): void {
  if (id !== undefined || idempotencyKey !== undefined)
    throw new TypeError(
      'execute: a dry run takes no `id` and no `idempotencyKey`: the real start under it would find the dry run',
    );
  if (given === true) return;
  readOptions('execute: `dryRun`', given, {
    like: optional('the id of an execution', (value) => typeof value === 'string'),
    runScripts: optional('true or false', (value) => typeof value === 'boolean'),
  });
}
