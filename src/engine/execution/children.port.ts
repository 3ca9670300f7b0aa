/** The children port: how a run starts child executions, which may run in any process. */

import type { Json } from '../base/json/json.ts';
import type { TraceContext } from '../events/trace-context.ts';
import type { Execution } from './execution.ts';
import type { NewExecution } from './stored-execution.ts';

/** A child execution to start. */
export interface NewChild {
  readonly id: string;
  /** The ensemble's name. */
  readonly ensemble: string;
  readonly input: Json;
  readonly parent: NewExecution;
  /** The trace of the parent. Absent without telemetry. */
  readonly caller?: TraceContext | undefined;
  /** The position of the step in the parent. */
  readonly key: string;
  /** The parent does not wait for the child, and the parent's timeout does not end it. */
  readonly detached: boolean;
  /** How long the child may take from its start. */
  readonly timeoutMs: number | undefined;
  /** Another process may have started the child before, and may have stopped after that. */
  readonly isRepeated: boolean;
}

export interface StartedChild {
  /**
   * The record of the child, if it ends in this process and was never suspended or released. Otherwise undefined: then a signal
   * reports its end.
   */
  readonly finished: Promise<Execution | undefined>;
}

export interface Children {
  /** A new id for a child execution of an ensemble. */
  newId(ensemble: string): string;
  /**
   * Stores a child, and begins or queues it.
   *
   * @throws NOT_FOUND for an unknown ensemble; INVALID_INPUT if the input does not fit or can't be stored; CONFLICT for more than 16
   *   levels or 1,000 descendants; JournalLostError if the storage does not answer: then the child may be stored or not
   */
  start(child: NewChild): Promise<StartedChild>;
  /**
   * Requests the cancellation of a child, in whichever process it runs. Does nothing for a child that was never stored.
   * @throws JournalLostError if the storage does not answer
   */
  cancel(id: string): Promise<void>;
}
