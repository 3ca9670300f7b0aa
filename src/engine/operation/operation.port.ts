/** The operation port: what one agent does. */

import type { Json, JsonObject } from '../base/json/json.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { ExecutionError } from '../execution/execution.ts';
import type { Logger } from '../host/logger.port.ts';
import type { NeededValue } from './needed-value.ts';
import type { AnySchema, StandardSchema } from './standard-schema.port.ts';

export type { MaybePromise } from '../base/maybe-promise.ts';
export type { NeededValue } from './needed-value.ts';

/** The execution, agent and attempt that an operation runs for. */
export interface ExecutionInfo {
  readonly id: string;
  readonly ensemble: string;
  readonly agent: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /**
   * How many executions called each other over HTTP before this one. A call that may lead back to this service has one more in its
   * header `X-Ensemble-Hops`, so that a loop ends.
   */
  readonly hops: number;
}

/** A part of an attempt whose result is stored on its own. */
export interface OperationPart {
  /** What the part is: a call of a language model or of a tool, or a message that is sent. */
  readonly kind: 'model' | 'tool' | 'send';
  /** Its number among the parts of its kind, counted from 1. The same part has the same number on every attempt, and no other part has it. */
  readonly number: number;
  /** For the list of steps and the events: the model, or the tool. */
  readonly name: string;
  /** For telemetry: the provider of the model. */
  readonly provider?: string;
}

/** How an agent ended that an operation called. */
export type AgentAnswer =
  | { readonly output: Json; readonly error?: undefined }
  | { readonly output?: undefined; readonly error: ExecutionError };

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
  /**
   * Runs one part of the attempt, and stores what it returns, which must be JSON. If the part is stored already, by an earlier attempt
   * or before a crash, it does not run again: what is stored is returned. If it still runs for an earlier attempt that failed, it is
   * waited for. A part that throws is not stored. Every part must be awaited: none begins after the operation has ended.
   *
   * @throws what `run` throws; INVALID_OUTPUT for a result that can't be stored; the reason of `signal` if the run was stopped
   */
  step(part: OperationPart, run: () => MaybePromise<unknown>): Promise<Json>;
  /**
   * Runs an agent that `Operation.calls` names, with its own retries and timeout. Its result is stored as that of a step, in place of
   * the part's.
   *
   * @param part - of the kind `tool`
   * @param input - what its expressions read as `${input}`
   */
  callAgent(name: string, input: Json, part: OperationPart): Promise<AgentAnswer>;
  /** The description of an agent that `Operation.calls` names. */
  describeAgent(name: string): string | undefined;
  /**
   * The text of a config key that `Operation.texts` calls a template, with the values of `data` for its `{{ ... }}`. `context.config`
   * has the same text with the fields of the agent's input as data.
   *
   * @param key - a key of the config, or a path with dots, as in `Operation.texts`
   * @returns undefined if the config lacks the key, or its value is not a template but comes whole from one `${...}`
   * @throws INVALID_INPUT for a `{{ ... }}` that is null because `data` lacks a field that it reads
   */
  render(key: string, data: JsonObject): string | undefined;
  /**
   * A transaction of the storage: what it writes is stored together with the result of the step, or not at all. Undefined if the storage
   * has none, and where results are not stored by themselves (`durability: none`, dry runs).
   * @throws INVALID_REQUEST in a step with `setState`
   */
  readonly transaction?: StepTransaction | undefined;
  /** Sends text to the listeners of `agent.delta` and the streams of events, at once. It is not stored. */
  emitText(text: string): void;
}

/** A transaction that ends with the result of a step. It begins with its first statement. */
export interface StepTransaction {
  /**
   * Runs one statement on the database of the storage. Statements run one after the other.
   * @param text - with `$1`, `$2`, ... for the values
   * @param values - JSON. Objects and lists are bound as JSON text
   * @returns the rows, with bytes in base64, integers beyond 2^53 and decimals as text, instants as ISO 8601 text; and how many were
   *   changed or read
   * @throws the error of the driver. Then the attempt fails, also if the script catches it
   */
  query(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: readonly JsonObject[]; readonly count: number }>;
}

/** An agent that an operation may call. */
export interface AgentCall {
  readonly agent: string;
  /** Path of its name inside the config. */
  readonly path: readonly (string | number)[];
  /** The JSON Schema of what it is called with. Undefined: anything. */
  readonly input?: JsonObject | undefined;
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
  /** The config is right, but the host lacks an option, which the message names. The definition is refused with `NOT_CONFIGURED`. */
  readonly notConfigured?: boolean;
}

export interface Operation<Config = JsonObject> {
  readonly name: string;
  /** Checks values without expressions at load, and the evaluated config before each attempt. */
  readonly config?: StandardSchema<unknown, Config>;
  /**
   * Called at load with the config as written, in which expressions are still text. Returns the problems that the schema can't find.
   * @param fromComponents - the keys with values that come from components
   */
  check?(config: JsonObject, fromComponents?: ReadonlySet<string>): readonly ConfigIssue[];
  /** Keys of the config whose values are part of the output. Their values must not contain secrets. */
  readonly shows?: readonly string[];
  /**
   * How the text of some config keys is read, in addition to its `${...}`:
   *
   * | | `{{ ... }}` | `${...}` inside text |
   * |---|---|---|
   * | `template` | filled in as text | as everywhere |
   * | `html` | filled in, with `& < > " '` escaped | inserted as it is |
   * | `sql` | is plain text | becomes a bound parameter: the evaluated config has an `SqlStatement` under the key |
   *
   * A value that comes whole from one `${...}` is text that is not read again; under `sql` it is refused at load.
   */
  readonly texts?: Readonly<Record<string, 'template' | 'html' | 'sql'>>;
  /**
   * Whether `{{ ... }}` of this config read the agent's input alone, and `render` is not called. Then a name that is neither a field of
   * the input nor a name of the flow is refused at load. Default: any name may be a field of other data.
   */
  readsOnlyInput?(config: JsonObject): boolean;
  /** Set if `context.input` is not read. Then an `input` of its agents is warned about at load. */
  readonly ignoresInput?: boolean;
  /**
   * The JSON Schema or Standard Schema of what the operation returns, or a function of the config as written, in which expressions are
   * still text. Undefined: any value. A definition that reads another field is refused when it is loaded; the value itself is not checked.
   * `additionalProperties: false` says that the object has no other fields. `x-countOf` of a number names the list of the same object that it counts.
   */
  readonly output?: AnySchema | ((config: JsonObject) => AnySchema | undefined) | undefined;
  /** The schema of `context.input`, as for `output`. An `input` that it never accepts is refused when the definition is loaded. */
  readonly input?: AnySchema | ((config: JsonObject) => AnySchema | undefined) | undefined;
  /** The values of the config where null would do harm: they are refused at load if they may be null, and when a step runs if they are. */
  needsValues?(config: JsonObject): readonly NeededValue[];
  /** What a process needs to run this agent, such as `script:score`. */
  needs?(config: JsonObject): readonly string[];
  /** The agents that `context.callAgent` may run, found at load in the config as written. */
  calls?(config: JsonObject): readonly AgentCall[];
  /**
   * Makes one attempt. The result must be JSON. A thrown value fails the attempt: an `OrchestratorError` keeps its code, `details`
   * and `retryable`. Any other value becomes `AGENT_FAILED`, and is retryable.
   */
  run(context: OperationContext<Config>): MaybePromise<unknown>;
}

/** Any operation. Its own schema checks its config before it runs, so a more precise type than `any` would add nothing. */
// biome-ignore lint/suspicious/noExplicitAny: see above
export type AnyOperation = Operation<any>;
