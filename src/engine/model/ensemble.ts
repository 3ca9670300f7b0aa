/** The ensemble as data: what a definition says once its older spellings are read into the current form. */

import type { Json, JsonObject } from '../json.ts';

export interface EnsembleDefinition {
  readonly name: string;
  readonly description?: string;
  readonly trigger?: readonly TriggerDefinition[];
  readonly flow: readonly StepDefinition[];
  readonly agents?: readonly AgentDefinition[];
  /** Declared input fields, or a JSON Schema (`type: object` at its top). Fields that are not declared pass through. */
  readonly inputs?: Readonly<Record<string, InputField>> | (JsonObject & { readonly type: string });
  /** Output name to an expression, or to any value with expressions in it. */
  readonly outputs?: JsonObject;
  readonly notifications?: readonly NotificationDefinition[];
  /** State kept between executions; `initial` holds until something is set. */
  readonly state?: { readonly initial: JsonObject };
  /** Milliseconds from the start, waits included; then the run is `timed_out`. */
  readonly timeout?: number;
  readonly execution?: ExecutionSettings;
}

export interface ExecutionSettings {
  /** `step` (default) stores each agent's result when it is there; `none` stores them together when the run ends. */
  readonly durability?: 'step' | 'none';
}

export type InputType = 'string' | 'number' | 'integer' | 'boolean' | 'object' | 'array' | 'any';

export interface InputField {
  /** Default `any`. */
  readonly type?: InputType;
  readonly required?: boolean;
  readonly default?: Json;
  readonly enum?: readonly Json[];
  readonly description?: string;
}

export interface RetryDefinition {
  /** All attempts, the first included; 1 to 100. */
  readonly maxAttempts: number;
  /** `exponential` (default) waits 1, 2, 4 s, then doubling to 60 s; `fixed` and `linear` (times the attempt) use `delay`. */
  readonly backoff?: 'exponential' | 'fixed' | 'linear';
  /** Milliseconds; for `fixed` and `linear`. Default 1,000. */
  readonly delay?: number;
}

/** What an agent does when a step names it. */
export interface AgentBehaviour {
  readonly description?: string;
  readonly operation?: string;
  readonly config?: JsonObject;
  readonly input?: Json;
  readonly condition?: string | boolean;
  readonly retry?: RetryDefinition;
  /** Milliseconds for one attempt. */
  readonly timeout?: number;
  readonly continueOnError?: boolean;
  /** State key to an expression over the state and the agent's own output; commits with its result. */
  readonly setState?: JsonObject;
  /** Makes it a router: the first entry whose condition holds, or the default, gives the target. */
  readonly routes?: readonly RouteDefinition[];
}

export interface AgentDefinition extends AgentBehaviour {
  readonly name: string;
}

export interface RouteDefinition {
  readonly condition?: string | boolean;
  readonly default?: boolean;
  /** An agent to run. */
  readonly member?: string;
  /** The prompt of the next `think` agent that names none. */
  readonly prompt?: string;
}

export interface AgentStep extends AgentBehaviour {
  readonly agent: string;
  /** The name that its result has; the agent's own name by default. */
  readonly name?: string;
}

export interface IfStep {
  readonly if: string | boolean;
  readonly then: readonly StepDefinition[];
  readonly else?: readonly StepDefinition[];
}

export interface ForeachStep {
  /** An expression that gives an array (or an array with expressions in it); at most 100,000 items. */
  readonly foreach: Json;
  readonly steps: readonly StepDefinition[];
  /** The name that its result has: an array, in item order, of the last step's output. */
  readonly name?: string;
  /** The item's name inside; default `item`. */
  readonly as?: string;
  /** Items in flight at once; default 1. */
  readonly concurrency?: number;
  /** A guard read after each item; when it holds, no new item begins. */
  readonly breakWhen?: string | boolean;
  /** `false` keeps no outputs: the result is the number of items done. */
  readonly collect?: boolean;
  readonly condition?: string | boolean;
  readonly continueOnError?: boolean;
}

export interface ParallelStep {
  /** Steps that run at the same time, one branch each. */
  readonly parallel: readonly StepDefinition[];
  /** When the block is done: `all` (default), `any` (the first that succeeds), `first` (the first that ends, however it does). */
  readonly waitFor?: 'all' | 'any' | 'first';
  /** Branches in flight at once; all by default. */
  readonly concurrency?: number;
  /** The name that its result has: an object of the branches' outputs by name; for `any` and `first` `{ winner, output }`. */
  readonly name?: string;
  readonly condition?: string | boolean;
  readonly continueOnError?: boolean;
}

export interface SwitchStep {
  /** An expression; its value, as text, chooses a case. */
  readonly switch: string | boolean;
  readonly cases: Readonly<Record<string, readonly StepDefinition[]>>;
  readonly default?: readonly StepDefinition[];
}

export interface WhileStep {
  /** A guard, read before each round. */
  readonly while: string | boolean;
  readonly steps: readonly StepDefinition[];
  /** Rounds after which it fails; default 1,000. */
  readonly maxIterations?: number;
}

export interface TryStep {
  readonly try: readonly StepDefinition[];
  /** Runs when `try` failed; `${error.code}`, `.message`, `.agent` say how. */
  readonly catch?: readonly StepDefinition[];
  /** Runs behind both, whatever came of them, also when the run is cancelled or out of time. */
  readonly finally?: readonly StepDefinition[];
}

export interface SleepStep {
  /** How long: milliseconds, a text such as `90s` or `1h30m`, an expression that gives one of these; or `{ until }`, an instant. */
  readonly sleep: number | string | { readonly until: number | string };
  readonly name?: string;
  readonly condition?: string | boolean;
}

export interface WaitStep {
  /** The name of the signal that it waits for. */
  readonly wait: string;
  /** How long at most: milliseconds, a text such as `24h`, or an expression that gives one of these. Default: without end. */
  readonly timeout?: number | string;
  /** What becomes of it when no signal came in time: it fails with `TIMEOUT` (default), or the flow goes on with null. */
  readonly onTimeout?: 'fail' | 'continue';
  /** The name that its result has: the payload of the signal. */
  readonly name?: string;
  readonly condition?: string | boolean;
}

export interface EnsembleStep {
  /** The ensemble that runs, as an execution of its own. */
  readonly ensemble: string;
  /** What it is given; `{}` by default. */
  readonly input?: Json;
  /** The name that its result has; by default the ensemble's. */
  readonly name?: string;
  /** It is started and not waited for; the result is its `executionId`. */
  readonly detached?: boolean;
  /** How long it may take at most: milliseconds, a text such as `10m`, or an expression that gives one of these. */
  readonly timeout?: number | string;
  readonly condition?: string | boolean;
  readonly continueOnError?: boolean;
}

export type StepDefinition =
  | AgentStep
  | IfStep
  | ForeachStep
  | ParallelStep
  | SwitchStep
  | WhileStep
  | TryStep
  | SleepStep
  | WaitStep
  | EnsembleStep;

export interface WebhookTrigger {
  readonly type: 'webhook';
  readonly path: string;
  readonly methods?: readonly string[];
  readonly public?: boolean;
  readonly auth?: JsonObject & { readonly type: 'bearer' | 'signature' | 'basic' | 'oauth' };
  readonly async?: boolean;
  readonly maxBodyBytes?: number;
  readonly accept?: readonly ('json' | 'form' | 'text')[];
}

export interface ScheduleTrigger {
  readonly type: 'schedule';
  /** Minute, hour, day of the month, month, day of the week; with seconds before them, six fields. */
  readonly cron: string;
  /** An IANA name; default `UTC`. */
  readonly timezone?: string;
  /** When it is due while the run before is not over: `skip` (default) drops it, `queue` starts it behind that. */
  readonly overlap?: 'skip' | 'queue';
  /** What was due while no process ran: `once` (default) starts the last of it, `skip` nothing. */
  readonly catchUp?: 'once' | 'skip';
  /** The input of each run; it has no expressions in it. */
  readonly input?: Json;
}

export type TriggerDefinition = WebhookTrigger | ScheduleTrigger;

export interface WebhookNotification {
  readonly type: 'webhook';
  readonly events: readonly string[];
  readonly url: string;
  readonly secret?: string;
  readonly retries?: number;
  readonly timeout?: number;
  readonly standard?: boolean;
}

export interface EmailNotification {
  readonly type: 'email';
  readonly events: readonly string[];
  readonly to: readonly string[];
  readonly from: string;
  readonly subject?: string;
  readonly provider?: string;
}

export type NotificationDefinition = WebhookNotification | EmailNotification;
