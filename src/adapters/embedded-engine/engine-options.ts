/** The options of the embedded engine, with their defaults and limits. */

import { flag, type OptionChecks, readOptions, wholeNumber } from '../../engine/base/read-options.ts';

export interface EmbeddedEngineOptions {
  /**
   * How many executions this process runs at once. Further executions are queued in the storage, and ensembles take turns.
   * `execute()` always starts at once. With 0, this process only queues executions, and other processes run them. Default 1,000.
   */
  readonly concurrency?: number | undefined;
  /** How many executions may be queued; further starts are refused with OVERLOADED. Default 10,000. */
  readonly queueLimit?: number | undefined;
  /** How long this process counts as alive after it renewed its lease, ms. Then other workers resume its executions. Default 30,000. */
  readonly leaseMs?: number | undefined;
  /** How often the lease is renewed, ms; at most half of `leaseMs`. Default a third of `leaseMs`, which is 10,000. */
  readonly renewMs?: number | undefined;
  /** How often a shared storage is asked for due executions and cancellations, ms; twice as often for dead workers. Default 500. */
  readonly sweepMs?: number | undefined;
  /** Whether results of several executions are stored in one write. Default true. */
  readonly groupCommit?: boolean | undefined;
}

const CHECKS: OptionChecks<EmbeddedEngineOptions> = {
  concurrency: wholeNumber(0, 1_000_000),
  queueLimit: wholeNumber(1, 10_000_000),
  leaseMs: wholeNumber(100, 86_400_000),
  renewMs: wholeNumber(1, 86_400_000),
  sweepMs: wholeNumber(10, 3_600_000),
  groupCommit: flag,
};

/** @throws TypeError when an option is not what it must be */
export function readEngineOptions(options: EmbeddedEngineOptions): Required<EmbeddedEngineOptions> {
  const given = readOptions('embeddedEngine', options, CHECKS);
  const { concurrency = 1000, queueLimit = 10_000, leaseMs = 30_000, sweepMs = 500, groupCommit = true } = given;
  const renewMs = options.renewMs ?? Math.max(1, Math.floor(leaseMs / 3));
  if (renewMs * 2 > leaseMs) {
    throw new TypeError(
      `embeddedEngine: renewMs (${renewMs}) must be at most half of leaseMs (${leaseMs}): a lease must outlive a renewal that fails`,
    );
  }
  return { concurrency, queueLimit, leaseMs, renewMs, sweepMs, groupCommit };
}
