/** What an operation is handed for one attempt; what costs something is made when it is asked for. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { issuePath } from '../definition/compile-agent.ts';
import type { CompiledAgentStep } from '../definition/compiled-ensemble.ts';
import { OrchestratorError } from '../errors.ts';
import { copyJson, formatPath, type Json, type JsonObject } from '../json.ts';
import type { Logger } from '../ports/logger.ts';
import type { ExecutionInfo, OperationContext } from '../ports/operation.ts';
import { haltError } from './halt.ts';
import type { RunScope } from './run-scope.ts';

export class AttemptContext implements OperationContext {
  readonly config: JsonObject;
  readonly #step: CompiledAgentStep;
  readonly #scope: RunScope;
  readonly #key: string;
  readonly #attempt: number;
  readonly #given: Json | undefined;
  #input: Json | undefined;
  #controller: AbortController | undefined;
  #abortedWith: unknown;
  #forget: (() => void) | undefined;

  constructor(step: CompiledAgentStep, scope: RunScope, key: string, attempt: number) {
    this.#step = step;
    this.#scope = scope;
    this.#key = key;
    this.#attempt = attempt;
    this.#given = step.input?.(scope.begin(key, 'input'));
    const fixed = step.takesPrompt && scope.findPrompt() !== undefined ? undefined : step.staticConfig;
    this.config = fixed ?? evaluateConfig(step, scope, key);
  }

  // A copy of its own, or one that can't be changed: what a script does to its input changes no stored result.
  get input(): Json {
    if (this.#given === undefined) return this.#scope.run.frozenInput;
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
      const controller = new AbortController();
      this.#controller = controller;
      if (this.#abortedWith !== undefined) controller.abort(this.#abortedWith);
      this.#forget = this.#scope.halt.onStop((reason) => controller.abort(haltError(reason)));
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

  /** The attempt is over: nothing listens for it any more. */
  release(): void {
    this.#forget?.();
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
  if (!result || result instanceof Promise) return config;
  if (!result.issues) return result.value as JsonObject;
  const problems = result.issues.map((issue) => `${formatPath(['config', ...issuePath(issue)])}: ${issue.message}`);
  throw new OrchestratorError(
    'INVALID_INPUT',
    `the config of agent \`${step.name}\` can't be used: ${problems.join('; ')}`,
  );
}
