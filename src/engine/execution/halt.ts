/** Stops a run, or a block of it: what is in flight hears of it through its signal, the rest at its next step boundary. */

import { OrchestratorError } from '../errors.ts';

/**
 * | reason | what becomes of steps in flight |
 * |---|---|
 * | timed_out | signalled and given up at once |
 * | cancelled, abandoned | signalled; a result that still comes within the grace is stored |
 */
export type HaltReason = 'cancelled' | 'timed_out' | 'abandoned';

/** How long a step that was signalled may still finish and have its result stored. */
export const HALT_GRACE_MS = 25_000;

export class Halt {
  #reason: HaltReason | undefined;
  // Made when somebody listens: a run whose steps take no signal never needs it.
  #listeners: Set<(reason: HaltReason) => void> | undefined;

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

/** A block inside: it stops with the one around it, or alone. Call `release` when the block is done. */
export function innerHalt(outer: Halt): { readonly halt: Halt; readonly release: () => void } {
  const halt = new Halt();
  return { halt, release: outer.onStop((reason) => halt.stop(reason)) };
}

export function haltError(reason: HaltReason): OrchestratorError {
  if (reason === 'timed_out') return new OrchestratorError('TIMEOUT', 'the execution ran out of time');
  if (reason === 'cancelled') return new OrchestratorError('EXECUTION_CANCELLED', 'the execution was cancelled');
  return new OrchestratorError('EXECUTION_CANCELLED', 'another step of the block failed');
}
