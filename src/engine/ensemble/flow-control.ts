/** The rules of an ensemble about its starts: which of them make executions, and when those begin. */

import type { WrittenDuration } from '../base/time/duration.ts';
import type { OverLimit } from '../execution/limits/flow-limit.ts';

/** The execution begins when no start has come for a time. */
export interface DebounceRule {
  /** How long no other start may come before it begins: 1 ms to 31 days. */
  readonly wait: WrittenDuration;
  /** It begins this time after the first start at the latest. Default: 100 times `wait`, at most 31 days. */
  readonly max?: WrittenDuration | undefined;
  /** An expression over the input: starts with different keys don't count together. Default: all count together. */
  readonly key?: string | undefined;
  /** Whose input it gets: that of the `last` start (default), or of the `first`. */
  readonly use?: 'first' | 'last' | undefined;
}

/** The execution begins with a list of inputs. */
export interface BatchRule {
  /** It begins when it has this number of starts: 1 to 1,000. */
  readonly size: number;
  /** It begins this time after the first start at the latest: 1 ms to 31 days. */
  readonly wait: WrittenDuration;
  /** An expression over the input: starts with different keys don't count together. Default: all count together. */
  readonly key?: string | undefined;
}

/** What becomes of the executions that are too many under a limit. */
export interface QueueRule {
  /**
   * `queue` (default): they wait. `refuse`: the start throws CONCURRENT_LIMIT_EXCEEDED or RATE_LIMIT_EXCEEDED. `cancel-running`: the oldest
   * are cancelled. `keep-newest`, `keep-oldest`: `queueLimit` executions wait, and the others are cancelled.
   */
  readonly over?: 'queue' | OverLimit | undefined;
  /** How many executions may wait, 0 to 10,000. Default: any number with `queue`, 1 with `keep-newest` and `keep-oldest`. */
  readonly queueLimit?: number | undefined;
  /** The longest time that an execution waits for its begin. After that, it ends as `timed_out`. Default: any time. */
  readonly queueTtl?: WrittenDuration | undefined;
}

/** How many executions may begin within a time. */
export interface RateRule extends QueueRule {
  /** The number of executions, 1 to 100,000, or an expression over the input. */
  readonly limit: number | string;
  /** At most 31 days. In no span of this length begin more than `limit`. */
  readonly period: WrittenDuration;
  /**
   * An answer with the status 429 and a `Retry-After` to an agent of an execution: none of the same key begins before that, for a day at
   * most. Default false.
   */
  readonly learn?: boolean | undefined;
  /** How many may begin at the same time; after that, they begin at equal intervals. Default: `limit`. */
  readonly burst?: number | undefined;
  /** An expression over the input: executions with different keys don't count together. Default: all count together. */
  readonly key?: string | undefined;
}

/** How many attempts of an agent are made at once, over all processes. */
export interface AgentConcurrency {
  /** The number of slots, 1 to 100,000. Not together with `shared`. */
  readonly limit?: number | undefined;
  /** A limit of the option `sharedLimits`, whose slots all agents and ensembles share that name it. */
  readonly shared?: string | undefined;
  /** An expression: attempts with different keys don't count together. Default: all count together. */
  readonly key?: string | undefined;
}

export interface ConcurrencyRule extends QueueRule {
  /** The number of slots, 1 to 100,000, or an expression over the input. Not together with `shared`. */
  readonly limit?: number | string | undefined;
  /** A limit of the option `sharedLimits`, whose slots all ensembles share that name it. */
  readonly shared?: string | undefined;
  /** An expression over the input: executions with different keys don't count together. Default: all count together. */
  readonly key?: string | undefined;
  /** An execution keeps its slot while it waits. Default false: it gives the slot back, and needs one to continue. */
  readonly hold?: boolean | undefined;
}
