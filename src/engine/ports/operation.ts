/** The operation port: what one agent does. */

import type { Json, JsonObject } from '../json.ts';
import type { Logger } from './logger.ts';
import type { StandardSchema } from './standard-schema.ts';

/** A value, or a promise of it. A store or operation that needs no I/O answers at once, which keeps the hot path free of turns. */
export type MaybePromise<T> = T | Promise<T>;

/** Which run an agent works for. */
export interface ExecutionInfo {
  readonly id: string;
  readonly ensemble: string;
  readonly agent: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
}

/** What an operation is handed for one attempt. */
export interface OperationContext<Config = JsonObject> {
  /** The agent's config with every expression evaluated, checked by the operation's schema. */
  readonly config: Config;
  /** The agent's input with every expression evaluated. */
  readonly input: Json;
  /** `env` and `secrets` as handed to `createOrchestrator`. */
  readonly env: Readonly<Record<string, string>>;
  /** Aborts at the attempt's timeout, when the run is cancelled, times out or is no longer needed. */
  readonly signal: AbortSignal;
  /** Derived from execution, step and item: equal on every retry and after a resume. */
  readonly idempotencyKey: string;
  readonly logger: Logger;
  readonly execution: ExecutionInfo;
}

/** A problem in an agent's config that only the operation can see. */
export interface ConfigIssue {
  /** Path inside the config. */
  readonly path: readonly (string | number)[];
  readonly message: string;
  /** The value that was meant, if one is near. */
  readonly suggestion?: string;
  /** What the config asks for can't be had: nothing else of it is checked. */
  readonly alone?: boolean;
}

export interface Operation<Config = JsonObject> {
  readonly name: string;
  /** Checked at load where a value holds no expression, and on the evaluated config before each attempt. */
  readonly config?: StandardSchema<unknown, Config>;
  /** Called at load with the config as written (expressions are still text): problems that the schema can't see. */
  check?(config: JsonObject): readonly ConfigIssue[];
  /** Keys of the config whose values come back in what it gives: no secret may stand there. */
  readonly shows?: readonly string[];
  /** What a process must have to run this agent, such as `script:score`. */
  needs?(config: JsonObject): readonly string[];
  /**
   * One attempt. What it gives must be JSON. What it throws fails the agent: an `OrchestratorError` keeps its code, details
   * and `retryable`; anything else is `AGENT_FAILED`, and retryable.
   */
  run(context: OperationContext<Config>): MaybePromise<unknown>;
}

/** Any operation. Its own schema checks its config before it runs, so no type outside can say more than `any` does. */
// biome-ignore lint/suspicious/noExplicitAny: see above
export type AnyOperation = Operation<any>;
