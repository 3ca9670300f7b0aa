/**
 * The journal of a run without effects: its flow follows the records, and stands still where they end, at the steps that are at work.
 * It shows what these steps got.
 */

import { OrchestratorError } from '../base/errors.ts';
import type { Json, JsonObject } from '../base/json/json.ts';
import { andThen } from '../base/maybe-promise.ts';
import type { ExecutionError } from '../execution/execution.ts';
import type { Journal } from '../execution/journal.port.ts';
import type { StepRecord } from '../execution/stored-execution.ts';
import type { MaybePromise, OperationContext } from '../operation/operation.port.ts';
import { never, RecordedJournal } from './recorded-journal.ts';

/** An agent whose operation is at work, as far as the records say. */
export interface StepAtWork {
  readonly name: string;
  /** What its operation gets. Undefined before that is computed, and if it can't be computed. */
  context?: Pick<OperationContext, 'input'>;
  /** Why not. */
  error?: ExecutionError;
}

export class StandingJournal extends RecordedJournal {
  /** By key. */
  readonly atWork = new Map<string, StepAtWork>();
  /** The keys of those that have begun, and do not stand still yet. */
  readonly #preparing = new Set<string>();
  #prepared: (() => void) | undefined;

  step(...[key, attempt, run, , name]: Parameters<Journal['step']>): MaybePromise<StepRecord | undefined> {
    const stored = this.find(key);
    if (stored && stored.attempts >= attempt) return stored;
    const atWork: StepAtWork = { name };
    this.atWork.set(key, atWork);
    if (attempt > 1) this.begins(key);
    const made = run((record) => {
      // Its input or its config can't be computed.
      if (record?.error) atWork.error = record.error;
      return this.#standStill(key);
    });
    // It was stopped before it began.
    return andThen(made, () => this.#standStill(key));
  }

  /** An agent begins its first attempt. */
  begins(key: string): void {
    this.#preparing.add(key);
  }

  /** @returns what keeps the operation from running */
  override waitForLease(key = '', context?: OperationContext): Promise<never> {
    const atWork = this.atWork.get(key);
    if (atWork && context) atWork.context = context;
    return this.#standStill(key);
  }

  /** What the operations of the agents that have begun get is known. */
  async prepared(): Promise<void> {
    if (this.#preparing.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#prepared = resolve;
    });
  }

  override decide(...[key, compute]: Parameters<Journal['decide']>): MaybePromise<Json> {
    const stored = this.find(key);
    if (stored) return stored.output;
    const decision = compute();
    // It reads the state.
    return (decision as { readonly code?: Json } | null)?.code === undefined ? decision : never();
  }

  /** The state is not recorded, so nothing may depend on it. */
  override readState(): JsonObject {
    return UNKNOWN_STATE;
  }

  protected missing(): Promise<never> {
    return never();
  }

  #standStill(key: string): Promise<never> {
    this.#preparing.delete(key);
    if (this.#preparing.size === 0) this.#prepared?.();
    return never();
  }
}

function refuseToReadState(): never {
  throw new OrchestratorError('EXPRESSION_ERROR', 'it reads the state of the ensemble, and what that was is not kept');
}

const UNKNOWN_STATE: JsonObject = new Proxy<JsonObject>(
  {},
  // Who gets it asks first whether it is a promise.
  {
    get: (_state, key) => (key === 'then' ? undefined : refuseToReadState()),
    has: refuseToReadState,
    ownKeys: refuseToReadState,
    getOwnPropertyDescriptor: refuseToReadState,
  },
);
