/** What `createOrchestrator` takes, and the checks that it and the calls of it make of their options. */

import type { EnsembleSource } from './define.ts';
import type { FunctionTable } from './engine/expression/functions/function-table.ts';
import type { AgentDefinition } from './engine/model/ensemble.ts';
import type { Clock } from './engine/ports/clock.ts';
import type { ExecutionEngine } from './engine/ports/execution-engine.ts';
import type { HttpClient } from './engine/ports/http.ts';
import type { Logger } from './engine/ports/logger.ts';
import type { AnyOperation } from './engine/ports/operation.ts';
import type { Storage } from './engine/ports/storage.ts';
import { suggestName } from './engine/suggest-name.ts';
import type { Script } from './operations/code.ts';
import type { Binding } from './operations/storage.ts';

export interface OrchestratorOptions<E extends readonly EnsembleSource[] = readonly EnsembleSource[]> {
  /** YAML texts, objects, or what `defineEnsemble` gave. */
  readonly ensembles?: E;
  /** Agents that any ensemble may name. */
  readonly agents?: readonly AgentDefinition[];
  /** Scripts by name, for `operation: code`. */
  readonly scripts?: Readonly<Record<string, Script>>;
  /** Operations beside the built-in ones. */
  readonly operations?: readonly AnyOperation[];
  /** Pure functions that expressions may call, beside the built-in ones. */
  readonly functions?: FunctionTable;
  /** Default `memoryStorage()`. */
  readonly storage?: Storage;
  /**
   * Key-value and object stores by name, for `operation: storage`. `kv` and `objects` are the configured storage's own, unless
   * they are given here.
   */
  readonly bindings?: Readonly<Record<string, Binding>>;
  /** Default `embeddedEngine()`. */
  readonly engine?: ExecutionEngine;
  /** Outbound HTTP; default `fetchHttp()`. */
  readonly http?: HttpClient;
  /** Default `systemClock()`. */
  readonly clock?: Clock;
  /** What `${env.X}` may read; the process environment never by itself. */
  readonly env?: Readonly<Record<string, string>>;
  /** Read like `env`, and kept out of outputs, state, events, errors and logs. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Lets expressions make links by which people give signals, with `signalUrl()`. Without it, such an ensemble is refused. */
  readonly signalLinks?: SignalLinksOptions;
  /** The word in token values (`sk-<brand>-...`) and header names. Default `service`. */
  readonly brand?: string;
  /**
   * Whether this process starts what `schedule` triggers ask for, beside others that do. Default true; they begin with `ready()`
   * or the first start, and in `runDue()`.
   */
  readonly schedules?: boolean;
  /** For how long executions are kept after their end, ms. Older ones are deleted in the background. Default 30 days. */
  readonly retention?: number;
  /** Default: silent. */
  readonly logger?: Logger;
}

export interface SignalLinksOptions {
  /** The public address of the mounted handler, its `basePath` included, such as `https://flows.example/service`. */
  readonly url: string;
  /**
   * What links are signed with: at least 32 characters that nobody can guess. Of a list, the first one signs, and links of all
   * are good.
   */
  readonly secret: string | readonly string[];
}

const KNOWN: Readonly<Record<keyof OrchestratorOptions, true>> = {
  ensembles: true,
  agents: true,
  scripts: true,
  operations: true,
  functions: true,
  storage: true,
  bindings: true,
  engine: true,
  http: true,
  clock: true,
  env: true,
  secrets: true,
  signalLinks: true,
  brand: true,
  schedules: true,
  retention: true,
  logger: true,
};

/** What is handed in for a port, by some of its verbs. */
const PORTS: Readonly<Record<string, readonly [port: string, verbs: readonly string[]]>> = {
  storage: ['a Storage such as memoryStorage()', ['commit', 'close']],
  engine: ['an ExecutionEngine such as embeddedEngine()', ['attach']],
  http: ['an HttpClient such as fetchHttp()', ['send']],
  clock: ['a Clock such as systemClock()', ['now', 'setTimer']],
  logger: ['a Logger such as console', ['debug', 'info', 'warn', 'error']],
};

/** @throws TypeError for a key that is no option, and for values of a wrong kind */
export function checkOptions(options: OrchestratorOptions): void {
  if (typeof options !== 'object' || options === null)
    throw new TypeError('createOrchestrator takes an object of options');
  refuseUnknownKeys(options, Object.keys(KNOWN), 'createOrchestrator');
  for (const key of ['ensembles', 'agents', 'operations'] as const) {
    if (options[key] !== undefined && !Array.isArray(options[key])) throw misuse(`\`${key}\` must be an array`);
  }
  for (const [key, [port, verbs]] of Object.entries(PORTS)) {
    const given = options[key as keyof OrchestratorOptions] as Record<string, unknown> | null | undefined;
    if (given !== undefined && !verbs.every((verb) => typeof given?.[verb] === 'function'))
      throw misuse(`\`${key}\` must be ${port}, with ${verbs.join(', ')}`);
  }
  for (const key of ['scripts', 'bindings', 'env', 'secrets', 'functions'] as const) {
    const given: unknown = options[key];
    if (given !== undefined && (typeof given !== 'object' || given === null || Array.isArray(given)))
      throw misuse(`\`${key}\` must be an object of names and what they stand for`);
  }
  for (const [i, operation] of (options.operations ?? []).entries()) {
    if (typeof operation?.name !== 'string' || typeof operation.run !== 'function')
      throw misuse(`\`operations[${i}]\` must be what defineOperation({ name, run }) gives`);
  }
  for (const [name, script] of Object.entries(options.scripts ?? {})) {
    if (typeof script !== 'function') throw misuse(`script \`${name}\` must be a function`);
  }
  for (const [name, binding] of Object.entries(options.bindings ?? {})) {
    if (binding?.kind !== 'kv' && binding?.kind !== 'objects')
      throw misuse(`binding \`${name}\` must be a KvStore or an ObjectStore`);
  }
  for (const key of ['env', 'secrets'] as const) {
    for (const [name, value] of Object.entries(options[key] ?? {})) {
      if (typeof value !== 'string') throw misuse(`\`${key}.${name}\` must be a string`);
    }
  }
  const { retention, schedules } = options;
  if (schedules !== undefined && typeof schedules !== 'boolean') {
    throw misuse(`\`schedules\` must be true or false, not ${String(schedules)}`);
  }
  if (retention !== undefined && !(Number.isFinite(retention) && retention > 0)) {
    throw misuse(`\`retention\` must be a positive number of ms, not ${String(retention)}`);
  }
  if (options.brand !== undefined && !/^[A-Za-z][A-Za-z0-9]{0,31}$/.test(options.brand)) {
    throw misuse('`brand` must be one word of up to 32 letters and digits');
  }
  if (options.signalLinks !== undefined) checkSignalLinks(options.signalLinks);
  for (const name of Object.keys(options.secrets ?? {})) {
    if (Object.hasOwn(options.env ?? {}, name)) throw misuse(`\`${name}\` is in \`env\` and in \`secrets\`; keep one`);
  }
}

function misuse(what: string): TypeError {
  return new TypeError(`createOrchestrator: ${what}`);
}

function checkSignalLinks(options: SignalLinksOptions): void {
  const what = 'createOrchestrator: `signalLinks`';
  if (typeof options !== 'object' || options === null) throw new TypeError(`${what} must be { url, secret }`);
  refuseUnknownKeys(options, ['url', 'secret'], what);
  if (typeof options.url !== 'string' || !/^https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/.test(options.url)) {
    throw new TypeError(
      `${what}: \`url\` must be the public address of the mounted handler, such as 'https://flows.example/service', without a query`,
    );
  }
  const secrets = secretsOf(options);
  if (secrets.length === 0 || !secrets.every((secret) => typeof secret === 'string' && secret.length >= 32)) {
    throw new TypeError(`${what}: \`secret\` must be text of at least 32 characters, or a list of such texts`);
  }
}

/** The secrets that links may be signed with; the first one signs. */
export function secretsOf({ secret }: SignalLinksOptions): readonly string[] {
  return typeof secret === 'string' ? [secret] : Array.isArray(secret) ? secret : [];
}

/** @throws TypeError for what is no object; or that names the first unknown key, and the nearest known one */
export function refuseUnknownKeys(options: object, known: readonly string[], what: string): void {
  if (typeof options !== 'object' || options === null) throw new TypeError(`${what}: options must be an object`);
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    const near = suggestName(key, known);
    throw new TypeError(`${what}: \`${key}\` is no option of this version${near ? `; did you mean \`${near}\`?` : ''}`);
  }
}

/** Before anything is stored: what is wrong would be noticed in the middle of the run. @throws TypeError */
export function checkExecuteOptions(options: { readonly signal?: AbortSignal; readonly timeout?: number }): void {
  refuseUnknownKeys(options, ['signal', 'timeout', 'trigger', 'events'], 'execute');
  const { signal, timeout } = options;
  if (timeout !== undefined && !(Number.isFinite(timeout) && timeout > 0))
    throw new TypeError(`execute: \`timeout\` must be a positive number of milliseconds, not ${timeout}`);
  if (signal !== undefined && typeof signal?.addEventListener !== 'function')
    throw new TypeError('execute: `signal` must be an AbortSignal, such as that of `new AbortController()`');
}
