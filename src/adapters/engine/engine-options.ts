/** The options of the embedded engine, their defaults and their bounds. */

export interface EmbeddedEngineOptions {
  /**
   * How many executions this process works on at once; more are queued in the storage, ensembles taking turns. `execute()`
   * always begins at once. With 0 the process only queues, and others run. Default 1,000.
   */
  readonly concurrency?: number;
  /** How many executions may be queued; a start beyond it is refused with OVERLOADED. Default 10,000. */
  readonly queueLimit?: number;
  /** How long this process counts as alive after it renewed its lease, ms; others go on with its executions behind it. Default 30,000. */
  readonly leaseMs?: number;
  /** How often the lease is renewed, ms; less than half of `leaseMs`. Default 10,000, or a third of `leaseMs`. */
  readonly renewMs?: number;
  /** How often a storage that others share is asked for what is due and for cancels, ms; twice as often for dead processes. Default 500. */
  readonly sweepMs?: number;
  /** Whether results of several executions are stored in one write. Default true. */
  readonly groupCommit?: boolean;
}

const KEYS = ['concurrency', 'queueLimit', 'leaseMs', 'renewMs', 'sweepMs', 'groupCommit'];

/** @throws TypeError when an option is not what it must be */
export function readEngineOptions(options: EmbeddedEngineOptions): Required<EmbeddedEngineOptions> {
  for (const key of Object.keys(options)) {
    if (!KEYS.includes(key))
      throw new TypeError(`embeddedEngine: \`${key}\` is no option; it takes ${KEYS.join(', ')}`);
  }
  const { concurrency = 1000, queueLimit = 10_000, leaseMs = 30_000, sweepMs = 500, groupCommit = true } = options;
  const renewMs = options.renewMs ?? Math.max(1, Math.floor(leaseMs / 3));
  wholeNumber('concurrency', concurrency, 0, 1_000_000);
  wholeNumber('queueLimit', queueLimit, 1, 10_000_000);
  wholeNumber('leaseMs', leaseMs, 100, 86_400_000);
  wholeNumber('renewMs', renewMs, 1, 86_400_000);
  wholeNumber('sweepMs', sweepMs, 10, 3_600_000);
  if (renewMs * 2 > leaseMs) {
    throw new TypeError(
      `embeddedEngine: renewMs (${renewMs}) must be at most half of leaseMs (${leaseMs}): a lease must outlive a renewal that fails`,
    );
  }
  if (typeof groupCommit !== 'boolean') throw new TypeError('embeddedEngine: groupCommit must be true or false');
  return { concurrency, queueLimit, leaseMs, renewMs, sweepMs, groupCommit };
}

function wholeNumber(name: string, value: number, least: number, most: number): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  throw new TypeError(`embeddedEngine: ${name} must be a whole number from ${least} to ${most}, not ${String(value)}`);
}
