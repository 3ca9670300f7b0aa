/** The execution of an ensemble: its statuses, its record, and its agents' runs. */

import type { Json, JsonObject } from '../base/json/json.ts';
import type { UsedComponent } from '../component/component.ts';
import type { TrafficMark } from '../ensemble/traffic.ts';
import type { SignalForm } from '../signal/signal-page.ts';

/**
 * | status | meaning | next |
 * |---|---|---|
 * | queued | accepted, not begun | running, paused, cancelled |
 * | running | a process works on it, or the next process that claims it continues it | waiting, paused, or any final status |
 * | waiting | there is nothing to do before an instant or a signal | running, paused, cancelled, timed_out |
 * | paused | somebody paused it: no process works on it until it is resumed | what it was before, cancelled |
 * | completed, failed, timed_out, cancelled | final, never changed | - |
 */
export type ExecutionStatus = 'queued' | 'running' | 'waiting' | 'paused' | FinalStatus;
export type FinalStatus = 'completed' | 'failed' | 'timed_out' | 'cancelled';

/** The statuses before the end. */
export const OPEN_STATUSES: readonly OpenStatus[] = ['queued', 'running', 'waiting', 'paused'];
export type OpenStatus = Exclude<ExecutionStatus, FinalStatus>;

/** How many executions have a status. */
export interface OpenCount {
  readonly count: number;
  /** When the oldest of them was accepted, Unix ms. Absent if there is none. */
  readonly oldestAt?: number;
}

/**
 * The executions that have not ended; and as `unresolved`, those that failed or timed out and that no other execution retries.
 */
export type OpenCounts = Readonly<Record<OpenStatus | 'unresolved', OpenCount>>;

/** The statuses of an execution that needs somebody's attention. It was somebody's decision to cancel one. */
export const FAILED_STATUSES: readonly FinalStatus[] = ['failed', 'timed_out'];

export const EXECUTION_STATUSES: readonly ExecutionStatus[] = [
  'queued',
  'running',
  'waiting',
  'paused',
  'completed',
  'failed',
  'timed_out',
  'cancelled',
];

/** What a job does to many executions. */
export type JobAction = 'cancel' | 'retry' | 'move' | 'pause' | 'resume' | 'complete' | 'delete';
export const JOB_ACTIONS: readonly JobAction[] = [
  ...(['cancel', 'retry', 'move', 'pause', 'resume', 'complete', 'delete'] as const),
];

/** The filters of a list of executions, in the order in which they are shown. */
export const EXECUTION_FILTERS = [
  ...(['ensemble', 'status', 'parentId', 'retryOf', 'tag', 'since', 'until', 'search'] as const),
  ...(['errorCode', 'unresolved'] as const),
];

/** Whether an execution with this status has ended. */
export function isFinal(status: ExecutionStatus): status is FinalStatus {
  return status === 'completed' || status === 'failed' || status === 'timed_out' || status === 'cancelled';
}

/** Why an execution or an agent failed. Secrets are masked in all of its texts. */
export interface ExecutionError {
  readonly code: string;
  readonly message: string;
  /** The agent that failed, by the name of its result. */
  readonly agent?: string;
  /**
   * Facts for programs: the `details` of what was thrown, and the own `code` of an error that is not an `OrchestratorError`, such as
   * `ECONNREFUSED`. At most 8 KiB of JSON text.
   */
  readonly details?: JsonObject;
  /** The stack of what an operation or a script threw. Only with the option `errors: { stack: true }`. */
  readonly stack?: string;
  /** The `cause` of what an operation or a script threw. Only with the option `errors: { stack: true }`. */
  readonly cause?: ErrorCause;
}

/** An error that led to another error. At most 5 are nested. */
export interface ErrorCause {
  readonly name?: string;
  readonly code?: string;
  readonly message: string;
  readonly stack?: string;
  readonly cause?: ErrorCause;
}

/** What started an execution. */
export interface ExecutionTrigger {
  readonly type: 'call' | 'webhook' | 'schedule' | 'http' | 'ensemble';
  /** The execution whose `ensemble` step started it. */
  readonly parentId?: string;
  /** The position of that step in the parent, such as `flow[3]` or `flow[2].foreach[7].steps[0]`. */
  readonly key?: string;
  /** The first execution in the chain of parents. It has no parent. */
  readonly rootId?: string;
  /** The length of the chain of parents: 1 for a child of the first execution. */
  readonly depth?: number;
  /** How many executions called each other over HTTP before this one: each called the next one with an `api` agent. */
  readonly hops?: number;
  /** The parent does not wait for it. */
  readonly detached?: boolean;
  /** The W3C trace context of its start: what its telemetry stored, or without telemetry that of its caller. */
  readonly traceparent?: string;
  readonly tracestate?: string;
  /** For a webhook: the method of the request. */
  readonly method?: string;
  /** For a webhook: the path of the trigger. */
  readonly path?: string;
  /** For a schedule: its pattern. */
  readonly cron?: string;
  /** For a schedule: the IANA name of its time zone. */
  readonly timezone?: string;
  /** For a schedule: the instant (Unix ms) at which it was due. */
  readonly scheduledAt?: number;
  /** It is a dry run: no operation runs, and its record has a plan. */
  readonly dryRun?: DryRunOptions;
  /** The traffic of its ensemble chose its version. */
  readonly traffic?: TrafficMark;
  /** Of a retry: how it differs from the execution that it retries. Absent if it does not. */
  readonly retry?: ExecutionRetry;
}

/** How a retry differs from the execution that it retries, and who asked for it. */
export interface ExecutionRetry {
  /** The key of the step from which on it ran again. Absent: it kept all results. */
  readonly from?: string;
  /** The hash of the definition that the other one had, if that is another one. */
  readonly definition?: string;
  /** It got another input. */
  readonly input?: true;
  /** The key of a step that `executions.complete` gave a result. */
  readonly completed?: string;
  /** The name of who asked, if a principal did. */
  readonly by?: string;
  readonly reason?: string;
}

/** An execution got another definition. */
export interface ExecutionMove {
  /** The hash of the definition that it had. */
  readonly from: string;
  readonly to: string;
  /** Unix ms. */
  readonly at: number;
  /** The name of who moved it, if a principal did. */
  readonly by?: string;
  /** The names that have changed, if any. */
  readonly map?: Readonly<Record<string, string>>;
}

/** A step of an execution got its result from `executions.complete`. */
export interface ExecutionCompletion {
  /** Its position in the flow, such as `flow[3]`. */
  readonly key: string;
  /** Unix ms. */
  readonly at: number;
  /** The name of who gave it, if a principal did. */
  readonly by?: string;
  readonly reason?: string;
}

/** How a dry run answers the steps that reach outside. */
export interface DryRunOptions {
  /** The id of an execution of the same ensemble: where it has recorded what a step gave, the step gives that. */
  readonly like?: string | undefined;
  /** `true`: scripts and operations of the app run. They can do what they like, so this is only for those without effects. */
  readonly runScripts?: boolean | undefined;
}

/** One step of a plan, in the order in which the steps happened. */
export interface PlannedStep {
  /** The position of the step in the flow, such as `flow[3]` or `flow[2].foreach[7].steps[0]`. */
  readonly key: string;
  /** Of a step of a child execution: the position of the `ensemble` step that started it, and before that those of its parents, such as `flow[2]/flow[0]`. */
  readonly within?: string;
  /** `while`: a loop that the dry run left after 3 rounds, because its condition still held. */
  readonly kind: 'agent' | 'wait' | 'sleep' | 'ensemble' | 'while';
  /** The agent, the signal, or the child's ensemble. Empty for a sleep and a loop. */
  readonly name: string;
  /** ms from the start at which it would begin, if no step but the waits took time. */
  readonly at: number;
  /** Of an agent. */
  readonly operation?: string;
  /** What it would get. Secrets are masked. */
  readonly input?: Json;
  /** Its config with all expressions evaluated. Secrets are masked. */
  readonly config?: JsonObject;
  /** What it gave in the dry run. */
  readonly output?: Json;
  readonly error?: ExecutionError;
  /** Where its result is from: its declared types, the execution of `like`, or its operation, which ran. */
  readonly from?: 'types' | 'execution' | 'operation';
  /** The parts of the result whose type is not declared, such as `output.body`: they are null. */
  readonly unknown?: readonly string[];
  /** Its condition does not hold. */
  readonly skipped?: true;
  /** Of a sleep: Unix ms at which it would end. */
  readonly until?: number;
  /** Its values are left out: those of a plan have at most 1 MiB. */
  readonly omitted?: true;
}

/** The key of the note that holds the plan of a dry run. */
export const PLAN_KEY = 'run.plan';

/** One agent's run in an execution. Agents that were skipped have none. */
export interface AgentResult {
  /** The name of its result in the flow. */
  readonly name: string;
  /** Its position in the flow, such as `flow[3]` or `flow[2].foreach[7].steps[0]`. Unique in the execution. */
  readonly key: string;
  /** `retrying` between two attempts. */
  readonly status: 'completed' | 'failed' | 'retrying';
  /** Attempts made, the last one included, and one more if a crash may have cut the first one off. */
  readonly attempts: number;
  /** Unix ms at which the first attempt began. */
  readonly startedAt: number;
  /** Milliseconds from the start of the first attempt to the end of the last, waits included. */
  readonly duration: number;
  readonly output: Json;
  /** `output` is null because the outputs of a record have at most 4 MiB. `executions.agent(id, key)` returns the output. */
  readonly outputOmitted?: true;
  readonly error?: ExecutionError;
}

/** What an execution waits for at one place of its flow. */
export interface PendingWait {
  /** The position of the step in the flow, such as `flow[3]` or `flow[2].foreach[7].steps[0]`. Before it begins: the key of the limit, of `debounce` or of `batch`, empty without one. */
  readonly key: string;
  /**
   * `retry`: an agent waits for its next attempt. `child`: an `ensemble` step waits for the end of its child. `limit`: a limit has no free
   * slot for the execution; only `executions.get` says so. `debounce`, `batch`: it has not begun, and takes more starts.
   */
  readonly kind: 'signal' | 'sleep' | 'retry' | 'child' | 'limit' | 'debounce' | 'batch';
  /** The signal, the agent, the child's ensemble, or the limit: its ensemble or shared limit. A sleep has none. */
  readonly name?: string;
  /** For a limit, from 1: the place among the executions with the same limits and keys. Counts to 10,001. */
  readonly position?: number;
  /** For `debounce` and `batch`: how many starts it has taken. */
  readonly starts?: number;
  /** The id of the child. */
  readonly executionId?: string;
  /** Unix ms at which it began to wait. */
  readonly since: number;
  /** Unix ms at which the wait ends by itself. */
  readonly until?: number;
}

/** Whether it waits at a step of its flow. Otherwise it waits to begin or to continue. */
export function isAtStep<Wait extends Pick<PendingWait, 'kind'>>(wait: Wait): wait is Wait & AtStep {
  const { kind } = wait;
  return kind !== 'limit' && kind !== 'debounce' && kind !== 'batch';
}
/** What an execution waits for at a step. */
export type StepWaitKind = Exclude<PendingWait['kind'], 'limit' | 'debounce' | 'batch'>;
interface AtStep {
  readonly kind: StepWaitKind;
}

/** What calls of language models used. */
export interface TokenUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** In the currency of the host's prices. Absent if none of the calls has a price. */
  readonly cost?: number;
}

/** How long an execution took, in ms, and what its models used. */
export interface ExecutionMetrics {
  /** From start to end, 0 until it ends. */
  readonly totalDuration: number;
  /** How many agents ran. */
  readonly agents: number;
  /** From its acceptance to its start. Absent while it is queued. */
  readonly queued?: number;
  /**
   * How long no branch of it worked, because all waited for signals, instants, retries or children. Before it ends: up to the last
   * time when it began to wait, or was resumed.
   */
  readonly waited: number;
  /** The sum over all calls of models that are stored, of failed agents too. Absent without one. Before the end: up to its last wait. */
  readonly usage?: TokenUsage;
}

/** What an execution is from its acceptance on. */
export interface AcceptedExecution {
  /** The id that its caller gave, or `exec_` and 26 characters that sort by time. */
  readonly id: string;
  readonly ensemble: string;
  /** Hash of its definition. */
  readonly version: string;
  readonly trigger: ExecutionTrigger;
  readonly input: Json;
  /** Unix ms. */
  readonly createdAt: number;
  /** Unix ms at which it times out. Absent without a timeout. */
  readonly deadlineAt?: number;
  /** The execution that this one retries: the results of its successful steps are stored for this one from the start. */
  readonly retryOf?: string;
}

/** The status of an execution, without its values and its agents' runs. */
export type ExecutionSummary = Pick<
  Execution,
  'id' | 'ensemble' | 'version' | 'status' | 'trigger' | 'createdAt' | 'finishedAt' | 'parentId'
>;

/** The record of one execution. */
export interface Execution<Output = Json> extends AcceptedExecution {
  readonly status: ExecutionStatus;
  /** It is a dry run. */
  readonly dryRun?: true;
  /** Of a dry run that has ended, where one execution is read: what would happen, at most 1,000 steps. */
  readonly plan?: readonly PlannedStep[];
  /** The changes of its definition by `executions.move`, the newest 20. Absent if it was never moved. */
  readonly moves?: readonly ExecutionMove[];
  /** The steps that `executions.complete` gave a result, the newest 100. Absent if there were none. */
  readonly completions?: readonly ExecutionCompletion[];
  /** The texts by which it can be listed. */
  readonly tags: readonly string[];
  /** The declared outputs. Null until the execution ends. Absent if it failed, timed out or was cancelled: then see `partialOutput`. */
  readonly output: Output;
  /** If it failed, timed out or was cancelled: the declared outputs, as far as they could be computed from what ran. */
  readonly partialOutput?: Json;
  readonly error?: ExecutionError;
  /** Unix ms. Absent while it is queued. */
  readonly startedAt?: number;
  /** Unix ms. Absent until it ends. */
  readonly finishedAt?: number;
  /** Milliseconds from start to end, by the monotonic clock if one process ran the whole execution. Absent until it ends. */
  readonly duration?: number;
  /** The execution that retries this one. */
  readonly retriedBy?: string;
  /** The execution whose `ensemble` step started it. */
  readonly parentId?: string;
  readonly metrics: ExecutionMetrics;
  /** What it waits for: the first 100, in the order in which they began to wait. Empty unless its status is `waiting` or `queued`. */
  readonly waitingFor: readonly PendingWait[];
  /** The forms of the signals that it waits for, by the name of the signal. Only in the record of one execution. */
  readonly forms?: Readonly<Record<string, SignalForm>>;
  /** How many more waits there are than `waitingFor` has. Absent if it has all. */
  readonly waitingForOmitted?: number;
  /** How often another process took it over, because its process was considered dead. */
  readonly recoveries: number;
  /** The versions of components that it used, in the order of their first use. Absent if it used none. */
  readonly components?: readonly UsedComponent[];
  /** The first 1,000 runs in the order in which they were stored, with the first outputs up to 4 MiB in total. */
  readonly agents: readonly AgentResult[];
  /**
   * In a listing: which of the values are larger than 4 KiB of JSON text. They are null in the listing, and the record has them.
   * Absent if all values are included.
   */
  readonly omitted?: readonly ('input' | 'output' | 'partialOutput')[];
}

/** The largest number of agent runs in a record. */
export const AGENTS_IN_RECORD = 1000;
/** The largest number of waits in a record. */
export const WAITS_IN_RECORD = 100;
/** The largest total size of the outputs in a record's agent runs, in bytes of JSON text. */
export const OUTPUTS_IN_RECORD_BYTES = 4 * 1024 * 1024;
/** A record never leaves out an output of at most this number of bytes of JSON text, such as `null`. */
export const SHORT_OUTPUT_BYTES = 4;
/** The largest number of ids and tags that begin with the `search` of a listing. */
export const MAX_MATCHES = 10_000;
/** The largest input or output in a listing, in bytes of JSON text. */
export const LISTED_VALUE_BYTES = 4 * 1024;
/** The largest total size of the outputs in a page of agent runs, in bytes. A single larger output is a page by itself. */
export const PAGE_BYTES = 8 * 1024 * 1024;
