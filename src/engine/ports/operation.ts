/** The operation port: what one agent does. */

import type { Json, JsonObject } from '../base/json.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { Logger } from './logger.ts';
import type { StandardSchema } from './standard-schema.ts';

export type { MaybePromise } from '../base/maybe-promise.ts';

/** The execution, agent and attempt that an operation runs for. */
export interface ExecutionInfo {
  readonly id: string;
  readonly ensemble: string;
  readonly agent: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
}

/** What an operation receives for one attempt. */
export interface OperationContext<Config = JsonObject> {
  /** The agent's config, with its expressions evaluated, checked by the operation's schema. */
  readonly config: Config;
  /** The agent's input, with its expressions evaluated. */
  readonly input: Json;
  /** `env` and `secrets`, as passed to `createOrchestrator`. */
  readonly env: Readonly<Record<string, string>>;
  /** Aborts at the timeout of the attempt, and when the execution is cancelled, times out or does not need the attempt any more. */
  readonly signal: AbortSignal;
  /** Derived from the execution, the step and the item. Equal on every attempt, also after a resume. */
  readonly idempotencyKey: string;
  readonly logger: Logger;
  readonly execution: ExecutionInfo;
}

/** A problem in an agent's config that only the operation can find. */
export interface ConfigIssue {
  /** Path inside the config. */
  readonly path: readonly (string | number)[];
  readonly message: string;
  /** The nearest valid value, if there is one. */
  readonly suggestion?: string;
  /** The config asks for something that does not exist. No other problem of the config is reported. */
  readonly alone?: boolean;
}

export interface Operation<Config = JsonObject> {
  readonly name: string;
  /** Checks values without expressions at load, and the evaluated config before each attempt. */
  readonly config?: StandardSchema<unknown, Config>;
  /** Called at load with the config as written, in which expressions are still text. Returns the problems that the schema can't find. */
  check?(config: JsonObject): readonly ConfigIssue[];
  /** Keys of the config whose values are part of the output. Their values must not contain secrets. */
  readonly shows?: readonly string[];
  /** What a process needs to run this agent, such as `script:score`. */
  needs?(config: JsonObject): readonly string[];
  /**
   * Makes one attempt. The result must be JSON. A thrown value fails the attempt: an `OrchestratorError` keeps its code, `details`
   * and `retryable`. Any other value becomes `AGENT_FAILED`, and is retryable.
   */
  run(context: OperationContext<Config>): MaybePromise<unknown>;
}

/** Any operation. Its own schema checks its config before it runs, so a more precise type than `any` would add nothing. */
// biome-ignore lint/suspicious/noExplicitAny: see above
export type AnyOperation = Operation<any>;
