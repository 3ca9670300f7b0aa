/** Stops a run, or a block of it: what is in flight hears of it through its signal, the rest at its next step boundary. */

import { type ErrorCode, OrchestratorError } from '../errors.ts';

/**
 * | reason | what becomes of steps in flight |
 * |---|---|
 * | timed_out, too_many_steps, too_large | signalled and given up at once |
 * | cancelled, abandoned | signalled; a result that still comes within the grace is stored |
 */
export type HaltReason = 'cancelled' | 'timed_out' | 'abandoned' | LimitReason;

/** Limits of a run that it met: it fails. */
export type LimitReason = 'too_many_steps' | 'too_large';

/** How long a step that was signalled may still finish and have its result stored. */
export const HALT_GRACE_MS = 25_000;

/** Steps that one run may walk: blocks, items and rounds, those that are skipped too. */
export const MOST_STEPS = 1_000_000;

/** What one run may hold, counted as `copySized` counts: its input, the outputs that can be read, and those that are collected. */
export const MOST_BYTES = 32 * 1024 * 1024;

export class Halt {
  #reason: HaltReason | undefined;
  /**
   * What is walked under it is over: it is walked again for its results alone, and begins nothing. What it asks for and is not
   * stored stops this one.
   */
  recall: Recall | undefined;
  #closed = false;
  readonly #outer: Halt | undefined;
  // Made when somebody listens: a run whose steps take no signal never needs it.
  #listeners: Set<(reason: HaltReason) => void> | undefined;

  /** @param outer - that of the block around it */
  constructor(outer?: Halt) {
    this.#outer = outer;
    this.recall = outer?.recall;
  }

  /** What comes from now on is nobody's any more, and is not stored. */
  get closed(): boolean {
    return this.#closed || (this.#outer?.closed ?? false);
  }

  close(): void {
    this.#closed = true;
  }

  get reason(): HaltReason | undefined {
    return this.#reason;
  }

  /** The first reason stays. Blocks inside stop too. */
  stop(reason: HaltReason): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    const listeners = this.#listeners;
    this.#listeners = undefined;
    for (const listener of listeners ?? []) listener(reason);
  }

  /** Calls once when it stops; at once when it has stopped. @returns forgets the listener */
  onStop(listener: (reason: HaltReason) => void): () => void {
    if (this.#reason !== undefined) {
      listener(this.#reason);
      return () => {};
    }
    if (!this.#listeners) this.#listeners = new Set();
    this.#listeners.add(listener);
    return () => this.#listeners?.delete(listener);
  }
}

/** A walk over what is stored of a part that is over. */
export interface Recall {
  readonly root: Halt;
  /** Unix ms at which it was over. */
  readonly until: number;
}

/** For a walk over what is stored. @param until - Unix ms at which the part was over */
export function recallHalt(until: number): Halt {
  const halt = new Halt();
  halt.recall = { root: halt, until };
  return halt;
}

/** A block inside: it stops with the one around it, or alone. Call `release` when the block is done. */
export function innerHalt(outer: Halt): { readonly halt: Halt; readonly release: () => void } {
  const halt = new Halt(outer);
  return { halt, release: outer.onStop((reason) => halt.stop(reason)) };
}

/**
 * Works for as long as nothing stops it: a stop aborts the signal.
 * @returns undefined when it was stopped
 * @throws what the work throws, unless it was stopped
 */
export async function unlessStopped<T>(halt: Halt, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
  const stopped = new AbortController();
  const forget = halt.onStop(() => stopped.abort());
  try {
    return await work(stopped.signal);
  } catch (thrown) {
    if (!stopped.signal.aborted) throw thrown;
    return undefined;
  } finally {
    forget();
  }
}

/** Whether it leaves no time to what is in flight. */
export function isAtOnce(reason: HaltReason): boolean {
  return reason === 'timed_out' || isLimit(reason);
}

export function isLimit(reason: HaltReason | undefined): reason is LimitReason {
  return reason === 'too_many_steps' || reason === 'too_large';
}

export const OUT_OF_TIME = 'the execution ran out of time';

const TEXTS: Readonly<Record<HaltReason, readonly [ErrorCode, string]>> = {
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

export function haltError(reason: HaltReason): OrchestratorError {
  const [code, message] = TEXTS[reason];
  return new OrchestratorError(code, message);
}
