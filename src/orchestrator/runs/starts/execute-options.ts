/** What the caller of a start or of a retry may say. */

import type { Principal } from '../../../engine/access/token.ts';
import { OrchestratorError } from '../../../engine/base/errors.ts';
import type { Duration } from '../../../engine/base/time/duration.ts';
import type { DryRunOptions, ExecutionTrigger } from '../../../engine/execution/execution.ts';
import type { StartIdentity } from '../../../engine/execution/start-once.ts';
import type { StepRecord } from '../../../engine/execution/stored-execution.ts';
import type { OperatorOptions } from '../../operators/operator-options.ts';

export interface ExecuteOptions extends StartIdentity {
  /**
   * Who starts the execution and pays for it, such as the result of `tokens.verify()`. Without it, the start is neither limited nor
   * charged.
   */
  readonly principal?: Principal | undefined;
  /**
   * What happens if as many executions of the `principal` run as its plan allows: the execution is queued until one of them ends or
   * waits, or the start is refused with CONCURRENT_LIMIT_EXCEEDED. Default: `start` queues, `execute` refuses.
   */
  readonly overLimit?: 'queue' | 'refuse' | undefined;
  /** Cancels the execution when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** The longest time from the start, waits included. The smaller of this and the ensemble's `timeout` counts. */
  readonly timeout?: Duration | undefined;
  /** What started the execution, for its record: `call` (default), or `http` for a route of a host. */
  readonly trigger?: 'call' | 'http' | undefined;
  /**
   * The number in the header `X-Ensemble-Hops` of the request that starts the execution: how many executions called each other over
   * HTTP before this one. More than 5 are refused. Default 0.
   */
  readonly hops?: number | undefined;
  /**
   * The W3C trace context of the caller, such as the header `traceparent` of a request. With the option `telemetry`, the execution
   * belongs to this trace. Default: the span that is active. Without `telemetry` it is stored, and no more.
   */
  readonly traceparent?: string | undefined;
  /** The header `tracestate`, with `traceparent`. */
  readonly tracestate?: string | undefined;
  /**
   * A dry run: no operation runs, a wait takes no time, and nothing but the record is stored. What a step would give is made up from its
   * declared types, or taken from another execution. `executions.get(id)` has the `plan`. It charges nobody. Default: false.
   */
  readonly dryRun?: boolean | DryRunOptions | undefined;
  /**
   * A transaction that the caller has begun on the database of the storage: the execution is stored in it, so it is there if and only if the
   * caller commits, and begins after that. Only for `start`. See the page on transactions for the clients that it takes.
   */
  readonly transaction?: unknown;
  /** `false`: no events are kept for `handle.events()`, which then returns the stored events. Default true. */
  readonly events?: boolean | undefined;
}

/** What called the service before a start: how many executions, and the trace. */
export type CallChain = Pick<ExecuteOptions, 'hops' | 'traceparent' | 'tracestate'>;

export interface RetryOptions extends OperatorOptions {
  /** Who pays for the new execution, which is queued if no slot is free. Without it, the retry is neither limited nor charged. */
  readonly principal?: Principal | undefined;
  /**
   * Gives the calls of the new execution other idempotency keys. A peer that has stored a failure under the old key would repeat that
   * failure. A call whose first attempt had an effect has it again. Default false.
   */
  readonly newKeys?: boolean | undefined;
  /** Replaces the input. The results of the steps that succeeded stay those of the old input. */
  readonly input?: unknown | undefined;
  /**
   * The key of a step, or the name of its result if only one step has it: that step and all that come after it run again, also if they
   * succeeded. Other branches of a `parallel` and other items of a `foreach` around it keep their results. Calls keep their idempotency
   * keys, so a peer that knows them does not act twice; see `newKeys`. With it, an execution that completed is retried too.
   */
  readonly from?: string | undefined;
  /**
   * `latest`, or the label or the hash of a version: the definition of the new execution. The results that are kept must be of the same
   * steps. With it, an execution that completed is retried too. Default: the definition of the old one.
   */
  readonly definition?: string | undefined;
}

/** What was asked for, if it is a dry run. */
export function dryRunOf(options: ExecuteOptions | null): DryRunOptions | undefined {
  // The options of a caller are not checked yet.
  const dryRun = options?.dryRun;
  return dryRun === true ? {} : dryRun || undefined;
}

const CALL: ExecutionTrigger = Object.freeze({ type: 'call' });
const HTTP: ExecutionTrigger = Object.freeze({ type: 'http' });

/** The largest number of executions that call each other over HTTP, after the first one. */
const MAX_HOPS = 5;

/** What started an execution other than a call, and the records that are stored with its start. */
export interface Origin {
  readonly trigger: ExecutionTrigger;
  readonly steps: readonly StepRecord[];
}

/** @throws CONFLICT if too many executions called each other over HTTP */
export function toTrigger(options: ExecuteOptions, origin?: Origin): ExecutionTrigger {
  const { trigger, hops = 0 } = options;
  const started = origin?.trigger ?? (trigger === 'http' ? HTTP : CALL);
  const dryRun = dryRunOf(options);
  const from = dryRun ? { ...started, dryRun } : started;
  if (hops === 0) return from;
  if (hops <= MAX_HOPS) return { ...from, hops };
  const message = `${hops} executions called each other over HTTP before this one, more than ${MAX_HOPS}: a flow calls itself in a loop`;
  throw new OrchestratorError('CONFLICT', message, { details: { limit: MAX_HOPS } });
}
