/** The ensemble as data: a definition after its older spellings were read into the current form. */

import type { Json, JsonObject } from '../base/json/json.ts';
import type { WrittenDuration } from '../base/time/duration.ts';
import type { AgentConcurrency, BatchRule, ConcurrencyRule, DebounceRule, RateRule } from './flow-control.ts';

/** The largest number of items of one `foreach`. */
export const MAX_FOREACH_ITEMS = 100_000;

export interface EnsembleDefinition {
  /** By which the ensemble is executed: a letter, then up to 63 letters, digits, `_` or `-`. */
  readonly name: string;
  /** For people. */
  readonly description?: string | undefined;
  /** What starts executions besides calls: inbound webhooks and schedules. */
  readonly trigger?: readonly TriggerDefinition[] | undefined;
  /** The steps, in the order in which they run. At most 1,000, those inside blocks included. */
  readonly flow: readonly StepDefinition[];
  /** Agents that steps of this flow name. At most 1,000. */
  readonly agents?: readonly AgentDefinition[] | undefined;
  /** Declared input fields, or a JSON Schema (`type: object` at its top). Fields that are not declared pass through. */
  readonly inputs?: Readonly<Record<string, InputField>> | (JsonObject & { readonly type: string }) | undefined;
  /** Output name to an expression, or to a value that contains expressions. */
  readonly outputs?: JsonObject | undefined;
  /** Webhooks and e-mails about events of the executions. */
  readonly notifications?: readonly NotificationDefinition[] | undefined;
  /** State that is kept between executions. `initial` is its value until a step sets it. */
  readonly state?: { readonly initial: JsonObject } | undefined;
  /** The longest time from the start, waits included. After that, the execution is `timed_out`. */
  readonly timeout?: WrittenDuration | undefined;
  /** How executions are stored. */
  readonly execution?: ExecutionSettings | undefined;
  /** How many executions may be held at once, over all processes: one rule or several. An execution runs when all of them have a free slot. */
  readonly concurrency?: readonly ConcurrencyRule[] | undefined;
  /** How many executions may begin within a time, over all processes. */
  readonly rate?: readonly RateRule[] | undefined;
  /** The longest time from the start until it begins. An execution that could not begin before that ends as `timed_out`, without having run. */
  readonly startWithin?: WrittenDuration | undefined;
  /**
   * Which of the queued executions begin first, 0 (default) to 10, or an expression over the input. One level counts as a minute of waiting,
   * so that none waits for ever.
   */
  readonly priority?: number | string | undefined;
  /** Starts that follow each other within a time make one execution. Not together with `batch`. */
  readonly debounce?: DebounceRule | undefined;
  /** Several starts make one execution, whose `input` is the list of theirs. */
  readonly batch?: BatchRule | undefined;
  /**
   * One or two expressions over the input, such as a tenant and its user: queued executions of different tenants take turns, and those of a
   * tenant's users, however many keys or users one of them has.
   */
  readonly fair?: string | readonly string[] | undefined;
  /** How many executions each process runs at once, besides all limits: 1 to 100,000. Those that wait don't count. Default: any number. */
  readonly perProcess?: number | undefined;
}

export interface ExecutionSettings {
  /** `step` (default) stores each agent's result as soon as it exists. `none` stores all results together, with the end. */
  readonly durability?: 'step' | 'none' | undefined;
}

export type InputType = 'string' | 'number' | 'integer' | 'boolean' | 'object' | 'array' | 'any';

export interface InputField {
  /** Default `any`. */
  readonly type?: InputType | undefined;
  /** `true`: an execution without the field is refused with `INVALID_INPUT`. Default false. */
  readonly required?: boolean | undefined;
  /** A value of the type, for a field that is missing or null. Not together with `required`. */
  readonly default?: Json | undefined;
  /** The allowed values. */
  readonly enum?: readonly Json[] | undefined;
  /** For people. */
  readonly description?: string | undefined;
}

export interface RetryDefinition {
  /** All attempts, the first included: 1 to 100. */
  readonly maxAttempts: number;
  /** `exponential` (default) waits `delay`, then `factor` times as long each time, at most 60 s. `fixed` waits `delay`. `linear` waits `delay` times the attempt. */
  readonly backoff?: 'exponential' | 'fixed' | 'linear' | undefined;
  /** The first wait. At most a day. Default `1s`. */
  readonly delay?: WrittenDuration | undefined;
  /** The longest wait, for `exponential` (default `60s`) and `linear` (default a day). At most a day. */
  readonly maxDelay?: WrittenDuration | undefined;
  /** For `exponential`: what each wait is multiplied by to give the next, 1 to 100. Default 2. */
  readonly factor?: number | undefined;
  /**
   * The part of each wait that varies, 0 (default) to 1: with 0.5, a wait of 4 s becomes one of 2 to 4 s. It is derived from the
   * execution, the step and the attempt, so a resumed execution gets the same wait.
   */
  readonly jitter?: number | undefined;
}

/** What an agent does when a step runs it. */
export interface AgentBehaviour {
  /** For people. */
  readonly description?: string | undefined;
  /** What the agent does: `code`, `api`, `storage`, `think`, or an operation of the option `operations`. */
  readonly operation?: string | undefined;
  /**
   * The settings of the operation. Values may contain expressions. Text such as `config://limits@production` is a stored config; as the value of
   * the key `<<`, its keys are added to those that are written here.
   */
  readonly config?: JsonObject | `config://${string}` | undefined;
  /**
   * The keys that a stored config may bring. Default: all but `url`, `script`, `auth` and `provider`; and `url` if the config that is written here has
   * no `auth`, no `headers` and reads no `env`.
   */
  readonly fromComponent?: readonly string[] | undefined;
  /** What the operation receives: any value with expressions. Default: the input of the ensemble. */
  readonly input?: Json | undefined;
  /**
   * The JSON Schema of what the operation returns. A value that does not fit fails the attempt with `INVALID_OUTPUT`, and a missing
   * property gets its `default`. Expressions must not read other fields.
   */
  readonly output?: JsonObject | undefined;
  /** A condition: an expression or a boolean. The step runs only if it holds. */
  readonly condition?: string | boolean | undefined;
  /** Whether and when a failed attempt is repeated. Default: one attempt. */
  readonly retry?: RetryDefinition | undefined;
  /** How many attempts are made at once, over all processes. Others wait for a slot; `timeout` counts from the slot. */
  readonly concurrency?: AgentConcurrency | undefined;
  /** The longest time of one attempt. */
  readonly timeout?: WrittenDuration | undefined;
  /** `true`: a failure of the agent does not end the execution. Default false. */
  readonly continueOnError?: boolean | undefined;
  /** State key to an expression over the state and the agent's own output. The new state is committed with the result. */
  readonly setState?: JsonObject | undefined;
  /** Makes the agent a router. The first entry whose condition holds, or the default, is the target. */
  readonly routes?: readonly RouteDefinition[] | undefined;
}

export interface AgentDefinition extends AgentBehaviour {
  /** By which steps and expressions name the agent. */
  readonly name: string;
}

export interface RouteDefinition {
  /** A condition: an expression or a boolean. The first entry whose condition holds is the target. */
  readonly condition?: string | boolean | undefined;
  /** `true`: the target if no condition holds. The last entry. */
  readonly default?: boolean | undefined;
  /** An agent to run. */
  readonly member?: string | undefined;
  /** The prompt of the next `think` agent that has none. */
  readonly prompt?: string | undefined;
}

export interface AgentStep extends AgentBehaviour {
  /** The agent to run: one of `agents`, a shared agent, or one that this step defines with `operation`. */
  readonly agent: string;
  /** The name of its result. Default: the agent's name. */
  readonly name?: string | undefined;
}

export interface IfStep<Step = StepDefinition> {
  /** A condition: an expression or a boolean. */
  readonly if: string | boolean;
  /** Runs if the condition holds. */
  readonly then: readonly Step[];
  /** Runs if it does not. */
  readonly else?: readonly Step[] | undefined;
}

export interface ForeachStep<Step = StepDefinition> {
  /** An expression that returns an array, or an array that contains expressions. At most 100,000 items. */
  readonly foreach: Json;
  /** Run for each item. */
  readonly steps: readonly Step[];
  /** The name of its result: an array of the last step's outputs, in item order. */
  readonly name?: string | undefined;
  /** The name of the item inside the block. Default `item`. */
  readonly as?: string | undefined;
  /** How many items run at the same time. Default 1. */
  readonly concurrency?: number | undefined;
  /** A condition, evaluated after each item. When it holds, no new item begins. */
  readonly breakWhen?: string | boolean | undefined;
  /** `false` keeps no outputs: the result is the number of completed items. */
  readonly collect?: boolean | undefined;
  /** A condition: an expression or a boolean. The step runs only if it holds. */
  readonly condition?: string | boolean | undefined;
  /** `true`: a failure of an item does not end the execution. Default false. */
  readonly continueOnError?: boolean | undefined;
}

export interface ParallelStep<Step = StepDefinition> {
  /** Steps that run at the same time. Each step is one branch. */
  readonly parallel: readonly Step[];
  /** When the block ends: with `all` branches (default), with `any` (the first that succeeds), or with the `first` that ends in any way. */
  readonly waitFor?: 'all' | 'any' | 'first' | undefined;
  /** How many branches run at the same time. Default: all. */
  readonly concurrency?: number | undefined;
  /** The name of its result: an object with the branches' outputs by name, or `{ winner, output }` for `any` and `first`. */
  readonly name?: string | undefined;
  /** A condition: an expression or a boolean. The step runs only if it holds. */
  readonly condition?: string | boolean | undefined;
  /** `true`: a failure of a branch does not end the execution. Default false. */
  readonly continueOnError?: boolean | undefined;
}

export interface SwitchStep<Step = StepDefinition> {
  /** An expression. Its value, as text, selects a case. */
  readonly switch: string | boolean;
  /** Value to the steps that run for it. */
  readonly cases: Readonly<Record<string, readonly Step[]>>;
  /** Runs if there is no case for the value. */
  readonly default?: readonly Step[] | undefined;
}

export interface WhileStep<Step = StepDefinition> {
  /** A condition, evaluated before each round. */
  readonly while: string | boolean;
  /** Run in each round. */
  readonly steps: readonly Step[];
  /** After this number of rounds the step fails. Default 1,000. */
  readonly maxIterations?: number | undefined;
}

export interface TryStep<Step = StepDefinition> {
  /** Runs first. */
  readonly try: readonly Step[];
  /** Runs if `try` failed. `${error.code}`, `.message` and `.agent` describe the failure. */
  readonly catch?: readonly Step[] | undefined;
  /** Runs after both, whether they failed or not, also if the execution is cancelled or times out. */
  readonly finally?: readonly Step[] | undefined;
}

export interface SleepStep {
  /** How long: milliseconds, text such as `90s` or `1h30m`, or an expression that returns one of these. Or `{ until }`, an instant. */
  readonly sleep: WrittenDuration | { readonly until: number | string };
  /** The name of its result: the instant (Unix ms) until which it waited. */
  readonly name?: string | undefined;
  /** A condition: an expression or a boolean. The step runs only if it holds. */
  readonly condition?: string | boolean | undefined;
}

export interface WaitStep<Signal extends string = string> {
  /** The name of the signal to wait for. */
  readonly wait: Signal;
  /** How long at most: milliseconds, text such as `24h`, or an expression that returns one of these. Default: no limit. */
  readonly timeout?: WrittenDuration | undefined;
  /** If no signal arrives in time, the step fails with `TIMEOUT` (default), or the flow continues with null. */
  readonly onTimeout?: 'fail' | 'continue' | undefined;
  /**
   * The JSON Schema of the payload, with `type: object`: the form of the signal. A payload that does not fit is refused with
   * `INVALID_INPUT`, and the wait continues. Default: any payload.
   */
  readonly fields?: JsonObject | undefined;
  /** What the form asks, for people: plain text without expressions. */
  readonly title?: string | undefined;
  /** More about it. */
  readonly text?: string | undefined;
  /** The name of its result: the payload of the signal. */
  readonly name?: string | undefined;
  /** A condition: an expression or a boolean. The step runs only if it holds. */
  readonly condition?: string | boolean | undefined;
}

export interface EnsembleStep {
  /** The ensemble to run as a child execution. */
  readonly ensemble: string;
  /** The child's input. Default `{}`. */
  readonly input?: Json | undefined;
  /** The name of its result. Default: the name of the ensemble. */
  readonly name?: string | undefined;
  /** The step does not wait for the child. Its result is the child's `executionId`. */
  readonly detached?: boolean | undefined;
  /** How long the child may take: milliseconds, text such as `10m`, or an expression that returns one of these. */
  readonly timeout?: WrittenDuration | undefined;
  /** A condition: an expression or a boolean. The step runs only if it holds. */
  readonly condition?: string | boolean | undefined;
  /** `true`: a failure of the child does not end the execution. Default false. */
  readonly continueOnError?: boolean | undefined;
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

export interface WebhookTrigger<Signal extends string = string> {
  readonly type: 'webhook';
  /** The path of the request, such as `/webhooks/orders`. */
  readonly path: string;
  /** The HTTP methods. Default `[POST]`. */
  readonly methods?: readonly string[] | undefined;
  /** `true`: anyone may call it. Needed if there is no `auth`. */
  readonly public?: boolean | undefined;
  /** How the sender proves who it is. Needed unless `public` is true. */
  readonly auth?: (JsonObject & { readonly type: 'bearer' | 'signature' | 'basic' | 'oauth' }) | undefined;
  /** `true`: the answer is 202, before the execution ends. Default false. */
  readonly async?: boolean | undefined;
  /** The largest body, in bytes. */
  readonly maxBodyBytes?: number | undefined;
  /** The kinds of bodies. Default `[json]`. */
  readonly accept?: readonly ('json' | 'form' | 'text')[] | undefined;
  /** Sends this signal to an execution of the ensemble, in place of a start. The payload is the body. */
  readonly signal?: Signal | undefined;
  /** Which execution gets the signal: by its tag or its id, a text with `${body.x}`, `${query.x}` and `${headers['X']}`. */
  readonly find?: { readonly tag?: string; readonly id?: string };
  /** `true`: if there is no execution, one is started, with this tag or this id. Default false: the answer is 404. */
  readonly orStart?: boolean | undefined;
}

export interface ScheduleTrigger {
  readonly type: 'schedule';
  /** Five fields: minute, hour, day of the month, month, day of the week. With six fields, the first is the second. */
  readonly cron: string;
  /** The IANA name of a time zone. Default `UTC`. */
  readonly timezone?: string | undefined;
  /** For a tick that is due before the previous execution has ended: `skip` (default) drops it, `queue` starts it after that end. */
  readonly overlap?: 'skip' | 'queue' | undefined;
  /** For ticks that were due while no process ran: `once` (default) starts the last of them, `skip` starts none. */
  readonly catchUp?: 'once' | 'skip' | undefined;
  /** The input of each execution. It contains no expressions. */
  readonly input?: Json | undefined;
}

export type TriggerDefinition<Signal extends string = string> = WebhookTrigger<Signal> | ScheduleTrigger;

export interface WebhookNotification {
  readonly type: 'webhook';
  /** The kinds of events to send, such as `execution.failed`. */
  readonly events: readonly string[];
  /** The address of the receiver. */
  readonly url: string;
  /** Signs each delivery. During a rotation, each of several signs. Without it, there is no signature header. */
  readonly secret?: string | readonly string[] | undefined;
  /** How often a failed delivery is repeated, at most 5. Default 3. */
  readonly retries?: number | undefined;
  /** The longest time of one attempt, at most 30s. Default 5s. */
  readonly timeout?: WrittenDuration | undefined;
  /** `true`: also sends the headers of the Standard Webhooks convention. */
  readonly standard?: boolean | undefined;
}

export interface EmailNotification {
  readonly type: 'email';
  /** The kinds of events to send, such as `execution.failed`. */
  readonly events: readonly string[];
  /** The recipients. */
  readonly to: readonly string[];
  /** The sender's address. */
  readonly from: string;
  /** A text with `${event}`, `${ensemble.name}` and `${timestamp}`. */
  readonly subject?: string | undefined;
  /** The e-mail provider. Needed if there are several. */
  readonly provider?: string | undefined;
}

export type NotificationDefinition = WebhookNotification | EmailNotification;
