/** Stops a run, or a block of it: steps in flight receive the abort signal, the rest stops at its next step boundary. */

import { type ErrorCode, OrchestratorError } from '../base/errors.ts';

/**
 * | reason | steps in flight |
 * |---|---|
 * | timed_out, too_many_steps, too_large | receive the abort signal; their results are dropped |
 * | cancelled, abandoned | receive the abort signal; a result within the grace period is stored |
 */
export type StopReason = 'cancelled' | 'timed_out' | 'abandoned' | LimitReason;

/** The limits of a run: a run that exceeds one fails. */
export type LimitReason = 'too_many_steps' | 'too_large';

/** How long a step may run after its abort signal, and still have its result stored. */
export const CANCELLATION_GRACE_MS = 25_000;

/** The maximum number of steps of one run: blocks, items and rounds count, and skipped steps too. */
export const MAX_STEPS = 1_000_000;

/** The maximum size that one run may hold, in bytes as `copySized` counts them: its input, readable outputs, and collected outputs. */
export const MAX_BYTES = 32 * 1024 * 1024;

export class CancellationScope {
  #reason: StopReason | undefined;
  /**
   * Set when the part of the flow in this scope was already over: it is replayed for its results only, and nothing begins. A
   * result that is not stored stops the scope.
   */
  replay: Replay | undefined;
  #closed = false;
  readonly #outer: CancellationScope | undefined;
  // Created for the first listener: a run whose steps use no signal never needs it.
  #listeners: Set<(reason: StopReason) => void> | undefined;

  /** @param outer - the scope of the block around it */
  constructor(outer?: CancellationScope) {
    this.#outer = outer;
    this.replay = outer?.replay;
  }

  /** Whether later results are dropped: they are not stored. */
  get closed(): boolean {
    return this.#closed || (this.#outer?.closed ?? false);
  }

  close(): void {
    this.#closed = true;
  }

  get reason(): StopReason | undefined {
    return this.#reason;
  }

  /** Stops the scope and its child scopes. A second call has no effect: the first reason stays. */
  stop(reason: StopReason): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    const listeners = this.#listeners;
    this.#listeners = undefined;
    for (const listener of listeners ?? []) listener(reason);
  }

  /** Calls the listener once when the scope stops; at once when it has stopped. @returns a function that removes the listener */
  onStop(listener: (reason: StopReason) => void): () => void {
    if (this.#reason !== undefined) {
      listener(this.#reason);
      return () => {};
    }
    if (!this.#listeners) this.#listeners = new Set();
    this.#listeners.add(listener);
    return () => this.#listeners?.delete(listener);
  }
}

/** A replay of a part of the flow that was already over. */
export interface Replay {
  readonly root: CancellationScope;
  /** Unix ms at which the part was over. */
  readonly until: number;
}

/** A scope for the replay of a part that was already over. @param until - Unix ms at which it was over */
export function createReplayScope(until: number): CancellationScope {
  const cancellation = new CancellationScope();
  cancellation.replay = { root: cancellation, until };
  return cancellation;
}

/** The scope of a block: it stops with the scope around it, or alone. Call `release` when the block is done. */
export function createChildScope(outer: CancellationScope): {
  readonly cancellation: CancellationScope;
  readonly release: () => void;
} {
  const cancellation = new CancellationScope(outer);
  return { cancellation, release: outer.onStop((reason) => cancellation.stop(reason)) };
}

/**
 * Runs work until the scope stops: then it aborts the work's signal.
 * @returns undefined when the scope was stopped
 * @throws what the work throws, unless the scope was stopped
 */
export async function unlessStopped<T>(
  cancellation: CancellationScope,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const stopped = new AbortController();
  const forget = cancellation.onStop(() => stopped.abort());
  try {
    return await work(stopped.signal);
  } catch (thrown) {
    if (!stopped.signal.aborted) throw thrown;
    return undefined;
  } finally {
    forget();
  }
}

/** Whether a stop leaves no grace period to steps in flight. */
export function isAtOnce(reason: StopReason): boolean {
  return reason === 'timed_out' || isLimit(reason);
}

export function isLimit(reason: StopReason | undefined): reason is LimitReason {
  return reason === 'too_many_steps' || reason === 'too_large';
}

export const OUT_OF_TIME = 'the execution ran out of time';

const TEXTS: Readonly<Record<StopReason, readonly [ErrorCode, string]>> = {
  timed_out: ['TIMEOUT', OUT_OF_TIME],
  cancelled: ['EXECUTION_CANCELLED', 'the execution was cancelled'],
  abandoned: ['EXECUTION_CANCELLED', 'another step of the block failed'],
  too_many_steps: [
    'ITERATION_LIMIT',
    'the run took more than 1,000,000 steps (blocks, items and rounds together); make the loops smaller, or start other executions for parts of them (`ensemble`)',
  ],
  too_large: [
    'INVALID_OUTPUT',
    'the run holds more than 32 MiB of input and outputs; use `collect: false` where the outputs of a `foreach` are not read, or store large values and pass their keys',
  ],
};

export function cancellationError(reason: StopReason): OrchestratorError {
  const [code, message] = TEXTS[reason];
  return new OrchestratorError(code, message);
}
