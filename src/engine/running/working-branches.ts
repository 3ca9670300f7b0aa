/** The branches of a run: how many work, what the others wait for, and how long all of them waited. */

import type { PendingWait } from '../execution/execution.ts';
import type { WaitPlace } from '../execution/journal.port.ts';
import type { Clock } from '../host/clock.port.ts';

export interface BranchListener {
  /**
   * No branch is at work.
   * @param earliest - the earliest instant (Unix ms) at which one continues @param pauses - the execution is to be paused
   */
  onIdle(earliest: number, pauses: boolean): void;
  /** A branch that waited continues. */
  onContinue(): void;
}

/** Counts the branches of a run that are at work, and knows what the others wait for. */
export class WorkingBranches {
  readonly #clock: Clock;
  readonly #listener: BranchListener;
  /** What the last run waited for, by key. */
  readonly #earlier: ReadonlyMap<string, PendingWait>;
  readonly #waiting = new Set<{ readonly wait: PendingWait }>();
  #working = 1;
  /** How many branches stopped before their next step. */
  #halted = 0;
  #pauses = false;
  #waitedMs = 0;
  /** The monotonic instant since which no branch is at work. */
  #idleSince: number | undefined;

  /** @param earlier - what the last run waited for */
  constructor(clock: Clock, earlier: readonly PendingWait[] | undefined, listener: BranchListener) {
    this.#clock = clock;
    this.#earlier = new Map(earlier?.map((wait) => [wait.key, wait]));
    this.#listener = listener;
  }

  /** A wait that began in an earlier run keeps its beginning. @param until - Unix ms, or infinity */
  beginWait(place: WaitPlace, until: number): PendingWait {
    const end = Number.isFinite(until) ? until : undefined;
    const earlier = this.#earlier.get(place.key);
    if (earlier && earlier.kind === place.kind && earlier.until === end) return earlier;
    return { ...place, since: this.#clock.now(), ...(end !== undefined && { until: end }) };
  }

  change(by: number): void {
    this.#working += by;
    if (by > 0) this.#endIdle();
    if (by < 0) this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.#working > 0 || this.#waiting.size + this.#halted === 0) return;
    this.#idleSince ??= this.#clock.monotonic();
    let earliest = this.#halted > 0 ? this.#clock.now() : Number.POSITIVE_INFINITY;
    for (const { wait } of this.#waiting) if (wait.until !== undefined && wait.until < earliest) earliest = wait.until;
    this.#listener.onIdle(earliest, this.#pauses);
  }

  /** The execution is to be paused, also if its branches wait only for a moment. */
  pause(): void {
    this.#pauses = true;
    this.#checkIdle();
  }

  /** A branch stops before its next step. @returns a function to call when the branch continues */
  halt(): () => void {
    this.#halted += 1;
    this.change(-1);
    return () => {
      this.#halted -= 1;
      this.change(1);
    };
  }

  /** @throws the signal's reason when it aborts first */
  async sleepUntil(instant: number, wait: PendingWait, signal: AbortSignal): Promise<void> {
    const resume = this.idle(wait);
    try {
      await this.#clock.sleep(instant - this.#clock.now(), signal);
    } finally {
      resume();
    }
  }

  /** A branch waits. @returns a function to call when the branch continues */
  idle(wait: PendingWait): () => void {
    const branch = { wait };
    this.#waiting.add(branch);
    this.change(-1);
    return () => {
      if (!this.#waiting.delete(branch)) return;
      this.#listener.onContinue();
      this.change(1);
    };
  }

  #endIdle(): void {
    if (this.#idleSince === undefined) return;
    this.#waitedMs = this.waited;
    this.#idleSince = undefined;
  }

  /** ms in which no branch was at work, because all waited. */
  get waited(): number {
    return this.#waitedMs + (this.#idleSince === undefined ? 0 : this.#clock.monotonic() - this.#idleSince);
  }

  /** What the branches wait for, in the order in which they began to wait. @param limit - the largest number of them */
  waits(limit: number): { readonly waits: readonly PendingWait[]; readonly omitted: number } {
    const waits: PendingWait[] = [];
    for (const { wait } of this.#waiting) {
      if (waits.length === limit) break;
      waits.push(wait);
    }
    return { waits, omitted: this.#waiting.size - waits.length };
  }
}
