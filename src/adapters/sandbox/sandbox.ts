/** Scripts from source text that run without access to the host, in QuickJS compiled to WebAssembly. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json } from '../../engine/base/json/json.ts';
import {
  duration,
  isTextList,
  type OptionChecks,
  optional,
  readOptions,
  wholeNumber,
} from '../../engine/base/read-options.ts';
import { type Duration, toMs } from '../../engine/base/time/duration.ts';
import type { OperationContext } from '../../engine/operation/operation.port.ts';
import { loadQuickJs } from './load-quickjs.ts';
import { type Answer, type GuestLine, type Job, type Limits, runSource } from './run-source.ts';
import { createThreads } from './threads.ts';

/** Limits of sandboxed scripts, and what they may read. */
export interface SandboxOptions {
  /** The longest time of one call, in ms of the real clock, 1 to 60,000. Default 1000. */
  readonly timeout?: Duration | undefined;
  /** The most memory of one call, in bytes, 1 MiB to 1 GiB. Default 64 MiB. */
  readonly memoryBytes?: number | undefined;
  /** The largest stack of one call, in bytes, 16 KiB to 512 KiB. Default 256 KiB. */
  readonly stackBytes?: number | undefined;
  /** The names in `env` and `secrets` that the scripts may read in their `env`. Default: none. */
  readonly env?: readonly string[] | undefined;
  /**
   * How many threads run scripts, 0 to 64. Default 2. Calls wait while all threads work. With 0, scripts run in the thread of the host:
   * they block it, and nothing can stop a single call of a built-in function that takes long.
   */
  readonly threads?: number | undefined;
  /** The compiled `quickjs-wasi/quickjs.wasm`, a `WebAssembly.Module`, for hosts that can't read files. It needs `threads: 0`. */
  readonly wasm?: object | undefined;
}

/** What a sandboxed script takes from the context of its host: the same object that any script receives. */
export type SandboxContext = Pick<
  OperationContext,
  'input' | 'config' | 'env' | 'signal' | 'idempotencyKey' | 'logger' | 'execution'
>;

/** Why a text is not a script. */
export interface SourceProblem {
  readonly message: string;
  /** Counted from 1. */
  readonly line?: number;
  /** Counted from 1. */
  readonly column?: number;
}

/** Makes scripts from source text. */
export interface Sandbox {
  /**
   * @param source - a module: `export default (context) => output`. It can't import
   * @param name - of the script, for messages and stacks. Default `script`
   * @returns a script for the option `scripts` of `createOrchestrator`
   */
  script(source: string, name?: string): (context: SandboxContext) => Promise<Json>;
  /** Compiles a text without running it. @returns the first problem; undefined for a text without syntax errors */
  check(source: string): Promise<SourceProblem | undefined>;
}

type Run = (job: Job, onLine: (line: GuestLine) => void, signal?: AbortSignal) => Promise<Answer>;

const MIB = 1024 * 1024;

/**
 * Creates a sandbox. Every call of a script gets a new QuickJS machine with memory of its own, which ends with the call.
 *
 * @throws TypeError for an option that is unknown or wrong
 */
export function sandbox(options: SandboxOptions = {}): Sandbox {
  const { env, limits, threads } = settingsOf(options);
  const run = threads === 0 ? runHere(options.wasm as WebAssembly.Module | undefined) : createThreads(threads);
  return Object.freeze({
    script(source: string, name = 'script') {
      if (typeof source !== 'string') throw invalidSandboxOption('a script is made from text');
      return async (context: SandboxContext) => {
        context.signal.throwIfAborted();
        const job: Job = { name, source, context: toText(context, env), limits };
        const onLine = ({ level, fields, message }: GuestLine) => context.logger[level](JSON.parse(fields), message);
        return toOutput(await run(job, onLine, context.signal), job);
      };
    },
    async check(source: string) {
      const job: Job = { name: 'script', source: String(source), limits };
      const answer = await run(job, () => {});
      if (answer.kind === 'compiled' || answer.kind === 'output') return undefined;
      if (answer.kind !== 'syntax') return { message: toError(answer, job).message };
      const { kind: _kind, ...problem } = answer;
      return problem;
    },
  });
}

function runHere(given: WebAssembly.Module | undefined): Run {
  let loading: ReturnType<typeof loadQuickJs> | undefined;
  return async (job, onLine) => {
    loading ??= loadQuickJs(given);
    return runSource(await loading, job, onLine);
  };
}

function toText({ input, config, env, idempotencyKey, execution }: SandboxContext, names: readonly string[]): string {
  const allowed = Object.fromEntries(names.filter((name) => Object.hasOwn(env, name)).map((name) => [name, env[name]]));
  return JSON.stringify({ input, config, env: allowed, idempotencyKey, execution });
}

function toOutput(answer: Answer, job: Job): Json {
  if (answer.kind === 'output') return answer.output as Json;
  throw toError(answer, job);
}

function toError(answer: Exclude<Answer, { kind: 'output' }>, { name, limits }: Job): Error {
  const what = `sandboxed script \`${name}\``;
  const failed = (message: string) => new OrchestratorError('AGENT_FAILED', `${what} ${message}`);
  switch (answer.kind) {
    case 'thrown':
      return toThrown(answer);
    case 'time':
      return new OrchestratorError(
        'TIMEOUT',
        `${what} ran longer than ${limits.timeoutMs} ms; give it less work, or raise \`timeout\` of the sandbox`,
        { details: { timeoutMs: limits.timeoutMs }, retryable: true },
      );
    case 'not-json': {
      const where = answer.path === '' ? 'the output' : `\`${answer.path}\` in the output`;
      return new OrchestratorError('INVALID_OUTPUT', `${where} of ${what} ${answer.message}`);
    }
    case 'memory':
      return failed(
        `needed more than ${limits.memoryBytes} bytes of memory; give it less data, or raise \`memoryBytes\` of the sandbox`,
      );
    case 'unsettled':
      return failed('waits for a promise that nothing settles; a sandbox has no timers, network or other events');
    case 'no-script':
      return failed(`exports ${answer.found} by default; write \`export default (context) => output\``);
    case 'syntax': {
      const place = answer.line === undefined ? '' : ` (line ${answer.line}, column ${answer.column ?? 1})`;
      return failed(`can't be compiled: ${answer.message}${place}; correct its text`);
    }
    default:
      return failed(`failed in the sandbox itself; it nests code, values or calls too deeply`);
  }
}

// An error of the script, as the orchestrator sees one of any other script. `retryable: false` in it prevents a retry.
function toThrown({ name, message, stack, code, details, retryable }: Extract<Answer, { kind: 'thrown' }>): Error {
  const given = { ...(details as object | undefined), ...(code !== undefined && { code }) };
  const error =
    retryable === false
      ? new OrchestratorError('AGENT_FAILED', message, { details: given })
      : Object.assign(new Error(message), { details: given });
  error.stack = `${name ?? 'Error'}: ${message}${stack === undefined ? '' : `\n${stack}`}`;
  return error;
}

const CHECKS: OptionChecks<SandboxOptions> = {
  timeout: duration(1, 60_000),
  memoryBytes: wholeNumber(MIB, 1024 * MIB),
  stackBytes: wholeNumber(16 * 1024, 512 * 1024),
  env: optional('a list of names', isTextList),
  threads: wholeNumber(0, 64),
  wasm: optional(
    "a WebAssembly.Module: `import wasm from 'quickjs-wasi/quickjs.wasm'`",
    (value) => value instanceof WebAssembly.Module,
  ),
};

function settingsOf(options: SandboxOptions): { env: readonly string[]; limits: Limits; threads: number } {
  const { wasm, env = [], threads = wasm === undefined ? 2 : 0 } = readOptions('sandbox', options, CHECKS);
  if (wasm !== undefined && threads !== 0) throw new TypeError('sandbox: `wasm` needs `threads: 0`');
  return {
    env: [...env],
    threads,
    limits: {
      timeoutMs: toMs(options.timeout ?? 1000),
      memoryBytes: options.memoryBytes ?? 64 * MIB,
      stackBytes: options.stackBytes ?? 256 * 1024,
    },
  };
}

function invalidSandboxOption(message: string): OrchestratorError {
  return new OrchestratorError('INVALID_REQUEST', `sandbox: ${message}`);
}
