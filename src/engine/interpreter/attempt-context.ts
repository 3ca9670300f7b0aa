/** The context that an operation receives for one attempt. Its expensive parts are created on first use. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { issuePath } from '../ports/standard-schema.ts';
import type { CompiledAgentStep } from '../compiled/compiled-ensemble.ts';
import { OrchestratorError } from '../base/errors.ts';
import { copyJson, formatPath, type Json, type JsonObject } from '../base/json.ts';
import { isPromise } from '../base/maybe-promise.ts';
import { type Logger, SILENT } from '../ports/logger.ts';
import type { ExecutionInfo, OperationContext } from '../ports/operation.ts';
import { cancellationError } from './cancellation-scope.ts';
import type { RunScope } from './run-scope.ts';

export class AttemptContext implements OperationContext {
  readonly config: JsonObject;
  readonly #step: CompiledAgentStep;
  readonly #scope: RunScope;
  readonly #key: string;
  readonly #attempt: number;
  readonly #evaluatedInput: Json | undefined;
  #input: Json | undefined;
  #logger: Logger | undefined;
  #controller: AbortController | undefined;
  #abortedWith: unknown;
  #forget: (() => void) | undefined;

  constructor(step: CompiledAgentStep, scope: RunScope, key: string, attempt: number) {
    this.#step = step;
    this.#scope = scope;
    this.#key = key;
    this.#attempt = attempt;
    this.#evaluatedInput = step.input?.(scope.begin(key, 'input'));
    const fixed = step.takesPrompt && scope.findPrompt() !== undefined ? undefined : step.staticConfig;
    this.config = fixed ?? evaluateConfig(step, scope, key);
  }

  // A copy, or a frozen value: a script that changes its input must not change a stored result.
  get input(): Json {
    if (this.#evaluatedInput === undefined) return this.#scope.run.frozenInput;
    if (this.#input === undefined) this.#input = copyJson(this.#evaluatedInput);
    return this.#input;
  }

  get env(): Readonly<Record<string, string>> {
    return this.#scope.run.env;
  }

  get logger(): Logger {
    this.#logger ??= this.#boundLogger();
    return this.#logger;
  }

  /** Each line of a script has the fields of the library's own lines. */
  #boundLogger(): Logger {
    const { ports, logged } = this.#scope.run;
    const about = { ...logged, agent: this.#step.name, attempt: this.#attempt, key: this.#key };
    return ports.logger?.child?.(about) ?? ports.logger ?? SILENT;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      const controller = new AbortController();
      this.#controller = controller;
      if (this.#abortedWith !== undefined) controller.abort(this.#abortedWith);
      this.#forget = this.#scope.cancellation.onStop((reason) => controller.abort(cancellationError(reason)));
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

  /** The attempt is over: removes its listener. */
  release(): void {
    this.#forget?.();
  }

  /** Whether the time of the attempt ran out. */
  get isAborted(): boolean {
    return this.#abortedWith !== undefined;
  }

  abort(reason: unknown): void {
    this.#abortedWith = reason;
    this.#controller?.abort(reason);
  }
}

function evaluateConfig(step: CompiledAgentStep, scope: RunScope, key: string): JsonObject {
  let config = copyJson(step.config(scope.begin(key, 'config'))) as JsonObject;
  const prompt = step.takesPrompt ? scope.findPrompt() : undefined;
  if (prompt !== undefined) config = { ...config, prompt };
  const result = step.operation.config?.['~standard'].validate(config);
  if (!result || isPromise(result)) return config;
  if (!result.issues) return result.value as JsonObject;
  const problems = result.issues.map((issue) => `${formatPath(['config', ...issuePath(issue)])}: ${issue.message}`);
  throw new OrchestratorError(
    'INVALID_INPUT',
    `the config of agent \`${step.name}\` can't be used: ${problems.join('; ')}`,
  );
}
