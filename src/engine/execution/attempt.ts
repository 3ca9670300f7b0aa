/** One attempt of one agent: evaluates what it is handed, runs the operation, and makes a record of how it came out. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { issuePath } from '../definition/compile-agent.ts';
import type { CompiledAgentStep } from '../definition/compiled-ensemble.ts';
import { isOrchestratorError, messageOf, OrchestratorError } from '../errors.ts';
import { copyJson, formatPath, type Json, JsonError, type JsonObject } from '../json.ts';
import type { ExecutionError } from '../model/execution.ts';
import type { Logger } from '../ports/logger.ts';
import type { ExecutionInfo, MaybePromise, OperationContext } from '../ports/operation.ts';
import type { HaltReason } from './halt.ts';
import type { RunScope } from './run.ts';

/** How long a step that was signalled may still finish and have its result stored. */
export const HALT_GRACE_MS = 25_000;

/** How an attempt came out. `halted`: the run stopped it, and there is nothing to store. */
export type AttemptResult =
  | { readonly kind: 'completed'; readonly output: Json }
  | { readonly kind: 'failed'; readonly error: ExecutionError; readonly retryable: boolean; readonly retryAfterMs: number }
  | { readonly kind: 'halted' };

const HALTED: AttemptResult = { kind: 'halted' };

/** Runs one attempt. Answers at once when the operation does. */
export function runAttempt(step: CompiledAgentStep, scope: RunScope, key: string, attempt: number): MaybePromise<AttemptResult> {
  let context: AttemptContext;
  let given: unknown;
  try {
    context = new AttemptContext(step, scope, key, attempt);
    given = step.operation.run(context);
  } catch (thrown) {
    return failed(step, scope, thrown);
  }
  if (!isPromise(given)) return completed(step, scope, given);
  const pending = given;
  return new Promise((resolve) => settle(pending, step, scope, context, resolve));
}

function settle(
  pending: PromiseLike<unknown>,
  step: CompiledAgentStep,
  scope: RunScope,
  context: AttemptContext,
  resolve: (result: AttemptResult) => void,
): void {
  const { clock } = scope.run.ports;
  let cancelTimer: (() => void) | undefined;
  let settled = false;
  const finish = (result: AttemptResult) => {
    if (settled) return;
    settled = true;
    cancelTimer?.();
    forget();
    resolve(result);
  };
  const forget = scope.halt.onStop((reason) => {
    context.abort(haltError(reason));
    cancelTimer?.();
    if (reason === 'timed_out') finish(HALTED);
    else cancelTimer = clock.setTimer(HALT_GRACE_MS, () => finish(HALTED));
  });
  if (step.timeoutMs !== undefined) {
    const { timeoutMs } = step;
    cancelTimer = clock.setTimer(timeoutMs, () => {
      const error = new OrchestratorError('TIMEOUT', `agent \`${step.name}\` took longer than ${timeoutMs} ms`, { retryable: true });
      context.abort(error);
      finish(failed(step, scope, error));
    });
  }
  pending.then(
    (value) => finish(completed(step, scope, value)),
    (thrown) => finish(scope.halt.reason === undefined ? failed(step, scope, thrown) : HALTED),
  );
}

export function haltError(reason: HaltReason): OrchestratorError {
  if (reason === 'timed_out') return new OrchestratorError('TIMEOUT', 'the execution ran out of time');
  if (reason === 'cancelled') return new OrchestratorError('EXECUTION_CANCELLED', 'the execution was cancelled');
  return new OrchestratorError('EXECUTION_CANCELLED', 'another step of the block failed');
}

function completed(step: CompiledAgentStep, scope: RunScope, value: unknown): AttemptResult {
  try {
    return { kind: 'completed', output: copyJson(value) };
  } catch (thrown) {
    if (!(thrown instanceof JsonError)) return failed(step, scope, thrown);
    const { path, message } = thrown.problem;
    const what = path ? `\`${path}\` in what agent \`${step.name}\` gave` : `what agent \`${step.name}\` gave`;
    return failed(step, scope, new OrchestratorError('INVALID_OUTPUT', `${what} ${message}`));
  }
}

/** Turns anything thrown into a failure; what the library does not know may pass when it is tried again. */
export function failed(step: Pick<CompiledAgentStep, 'name'>, scope: RunScope, thrown: unknown): AttemptResult {
  const known = isOrchestratorError(thrown);
  const code = known ? thrown.code : 'AGENT_FAILED';
  const message = truncate(scope.run.ports.mask(messageOf(thrown)));
  const retryAfter = known ? thrown.details.retryAfterMs : undefined;
  return {
    kind: 'failed',
    error: { code, message, agent: step.name },
    retryable: known ? thrown.retryable : true,
    retryAfterMs: typeof retryAfter === 'number' && retryAfter > 0 ? retryAfter : 0,
  };
}

const MAX_MESSAGE = 4096;

function truncate(message: string): string {
  return message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 3)}...` : message;
}

export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}

// Most operations read two or three of these: what costs something is made when it is asked for.
class AttemptContext implements OperationContext {
  readonly config: JsonObject;
  readonly #step: CompiledAgentStep;
  readonly #scope: RunScope;
  readonly #key: string;
  readonly #attempt: number;
  readonly #given: Json;
  #input: Json | undefined;
  #controller: AbortController | undefined;
  #abortedWith: unknown;

  constructor(step: CompiledAgentStep, scope: RunScope, key: string, attempt: number) {
    this.#step = step;
    this.#scope = scope;
    this.#key = key;
    this.#attempt = attempt;
    this.#given = step.input ? step.input(scope.begin(`${key}|input`)) : scope.run.input;
    const fixed = step.takesPrompt && scope.run.prompt !== undefined ? undefined : step.staticConfig;
    this.config = fixed ?? evaluateConfig(step, scope, key);
  }

  // A copy of its own: what a script does to its input changes no stored result.
  get input(): Json {
    if (this.#input === undefined) this.#input = copyJson(this.#given);
    return this.#input;
  }

  get env(): Readonly<Record<string, string>> {
    return this.#scope.run.env;
  }

  get logger(): Logger {
    return this.#scope.run.ports.logger;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#abortedWith !== undefined) this.#controller.abort(this.#abortedWith);
    }
    return this.#controller.signal;
  }

  get idempotencyKey(): string {
    return bytesToHex(sha256(utf8ToBytes(`${this.#scope.run.accepted.id}|${this.#key}`))).slice(0, 32);
  }

  get execution(): ExecutionInfo {
    const { id, ensemble } = this.#scope.run.accepted;
    return { id, ensemble, agent: this.#step.name, attempt: this.#attempt };
  }

  abort(reason: unknown): void {
    this.#abortedWith = reason;
    this.#controller?.abort(reason);
  }
}

function evaluateConfig(step: CompiledAgentStep, scope: RunScope, key: string): JsonObject {
  let config = copyJson(step.config(scope.begin(`${key}|config`))) as JsonObject;
  const { prompt } = scope.run;
  if (step.takesPrompt && prompt !== undefined) config = { ...config, prompt };
  const result = step.operation.config?.['~standard'].validate(config);
  if (!result || result instanceof Promise) return config;
  if (!result.issues) return result.value as JsonObject;
  const problems = result.issues.map((issue) => `${formatPath(['config', ...issuePath(issue)])}: ${issue.message}`);
  throw new OrchestratorError('INVALID_INPUT', `the config of agent \`${step.name}\` can't be used: ${problems.join('; ')}`);
}
