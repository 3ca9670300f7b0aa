/** The context that an operation receives for one attempt. Its expensive parts are created on first use. */

import { OrchestratorError } from '../../base/errors.ts';
import { canonicalJson, copyJson, formatPath, type Json, type JsonObject } from '../../base/json/json.ts';
import { isPromise } from '../../base/maybe-promise.ts';
import type { CompiledAgentStep } from '../../compiled/compiled-ensemble.ts';
import { type ExpressionScope, NO_FIELDS } from '../../compiled/expression-scope.ts';
import { keyAt } from '../../execution/seed.ts';
import type { Evaluate } from '../../expression/evaluation.ts';
import { type Logger, SILENT } from '../../host/logger.port.ts';
import type { ExecutionInfo, OperationContext } from '../../operation/operation.port.ts';
import { ASYNC_SCHEMA, issuePath } from '../../operation/standard-schema.port.ts';
import { cancellationError, isAtOnce } from '../cancellation-scope.ts';
import type { RunScope } from '../run-scope.ts';
import type { Attempt } from './attempt.ts';
import { callAgent, type PartPlace, runPart } from './attempt-parts.ts';

export class AttemptContext implements OperationContext {
  readonly config: JsonObject;
  readonly #step: CompiledAgentStep;
  readonly #scope: RunScope;
  readonly #key: string;
  readonly #attempt: Attempt;
  readonly #evaluatedInput: Json | undefined;
  #input: Json | undefined;
  #logger: Logger | undefined;
  #controller: AbortController | undefined;
  #abortedWith: unknown;
  #forget: (() => void) | undefined;
  #place: PartPlace | undefined;
  #isReleased = false;

  /** @param step - the step of the attempt, with the texts of components in its config */
  constructor(attempt: Attempt, step: CompiledAgentStep) {
    const { scope, key } = attempt;
    this.#step = step;
    this.#scope = scope;
    this.#key = key;
    this.#attempt = attempt;
    this.#evaluatedInput = step.input?.(scope.begin(key, 'input'));
    const fixed = step.takesPrompt && scope.findPrompt() !== undefined ? undefined : step.staticConfig;
    this.config = fixed ?? evaluateConfig(step, scope, key, this.#evaluatedInput ?? scope.run.input);
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
    const { number: attempt, span } = this.#attempt;
    const about = { ...logged, agent: this.#step.name, attempt, key: this.#key, ...span?.logged };
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
    return keyAt(this.#scope.run.accepted.seed, this.#key);
  }

  get execution(): ExecutionInfo {
    const { id, ensemble, trigger } = this.#scope.run.accepted;
    return { id, ensemble, agent: this.#step.name, attempt: this.#attempt.number, hops: trigger.hops ?? 0 };
  }

  // Functions of their own, so that an operation can take them out of the context.
  get step(): OperationContext['step'] {
    return (part, run) => withoutUnhandledRejection(runPart(this.#parts, part, run));
  }

  get callAgent(): OperationContext['callAgent'] {
    return (name, input, part) => withoutUnhandledRejection(callAgent(this.#parts, name, input, part));
  }

  get describeAgent(): OperationContext['describeAgent'] {
    return (name) => this.#step.calls.get(name)?.description;
  }

  get render(): OperationContext['render'] {
    return (key, data) => {
      const template = this.#step.templates.get(key);
      if (!template) return undefined;
      // Random values belong to the data, so that the same data gives the same text on every attempt.
      this.#scope.begin(this.#key, `config.${key} ${canonicalJson(data)}`);
      return withData(this.#scope, data, template, (field) => {
        const what = `the text \`${key}\` reads \`${field}\`, which the data does not have`;
        const remedy = `add the field, or write another value: {{ ${field} || '...' }}`;
        throw new OrchestratorError('INVALID_INPUT', `${what}; ${remedy}`);
      }) as string;
    };
  }

  get transaction(): OperationContext['transaction'] {
    const { transact } = this.#scope.run.journal;
    if (!transact) return undefined;
    if (this.#isOver && !this.#attempt.transaction)
      throw new OrchestratorError('INVALID_REQUEST', 'the attempt is over: its transaction can not begin any more');
    if (this.#step.setState)
      throw new OrchestratorError(
        'INVALID_REQUEST',
        `agent \`${this.#step.name}\` changes the state with \`setState\`, and can't use a transaction; change the state in another step`,
      );
    this.#attempt.transaction ??= transact();
    return this.#attempt.transaction;
  }

  get emitText(): OperationContext['emitText'] {
    return (text) => {
      if (!this.#isOver) this.#scope.run.emit?.('agent.delta', { agent: this.#step.name, key: this.#key, text });
    };
  }

  get #parts(): PartPlace {
    this.#attempt.parts ??= new Map();
    this.#place ??= this.#createPlace(this.#attempt.parts);
    return this.#place;
  }

  #createPlace(kept: PartPlace['kept']): PartPlace {
    const isOver = () => this.#isOver;
    const isClosed = () => this.isAborted || this.#isStopped;
    return {
      step: this.#step,
      scope: this.#scope,
      key: this.#key,
      signal: this.signal,
      asked: new Set(),
      kept,
      span: this.#attempt.span,
      get isOver() {
        return isOver();
      },
      get isClosed() {
        return isClosed();
      },
    };
  }

  get #isOver(): boolean {
    return this.#isReleased || this.isAborted || this.#scope.cancellation.closed;
  }

  /** Whether the run was stopped, and gives no more time. */
  get #isStopped(): boolean {
    const { closed, reason } = this.#scope.cancellation;
    return closed || (reason !== undefined && isAtOnce(reason));
  }

  /** The operation has ended: removes its listener. */
  release(): void {
    this.#isReleased = true;
    this.#forget?.();
  }

  /** Whether the time of the attempt ran out. */
  get isAborted(): boolean {
    return this.#abortedWith !== undefined;
  }

  abort(reason: unknown): void {
    this.#abortedWith = reason;
    void this.#attempt.transaction?.rollBack();
    this.#controller?.abort(reason);
  }
}

/** An operation that does not await a part must not end the process when the part fails. */
function withoutUnhandledRejection<T>(result: Promise<T>): Promise<T> {
  result.catch(() => {});
  return result;
}

function withData(
  scope: RunScope,
  data: JsonObject,
  evaluate: Evaluate<ExpressionScope>,
  refuseMissing?: (field: string) => never,
): Json {
  scope.data = data;
  scope.refuseMissing = refuseMissing;
  try {
    return evaluate(scope);
  } finally {
    scope.data = NO_FIELDS;
    scope.refuseMissing = undefined;
  }
}

function evaluateConfig(step: CompiledAgentStep, scope: RunScope, key: string, input: Json): JsonObject {
  const isMap = typeof input === 'object' && input !== null && !Array.isArray(input);
  const data = isMap ? (input as JsonObject) : NO_FIELDS;
  let config = copyJson(withData(scope.begin(key, 'config'), data, step.config)) as JsonObject;
  const prompt = step.takesPrompt ? scope.findPrompt() : undefined;
  if (prompt !== undefined) config = { ...config, prompt: prompt.text };
  const result = step.operation.config?.['~standard'].validate(config);
  if (!result) return config;
  if (isPromise(result)) {
    Promise.resolve(result).catch(() => {});
    throw new OrchestratorError('NOT_CONFIGURED', `operation \`${step.operation.name}\`: ${ASYNC_SCHEMA}`);
  }
  if (!result.issues) return result.value as JsonObject;
  const problems = result.issues.map((issue) => `${formatPath(['config', ...issuePath(issue)])}: ${issue.message}`);
  throw new OrchestratorError(
    'INVALID_INPUT',
    `the config of agent \`${step.name}\` can't be used: ${problems.join('; ')}`,
  );
}
