/** The children port: how a run starts executions of its own, wherever they run then. */

import type { Json } from '../json.ts';
import type { Execution } from '../model/execution.ts';
import type { NewExecution } from '../model/stored-execution.ts';

/** An execution that a run is to start. */
export interface NewChild {
  readonly id: string;
  /** The ensemble's name. */
  readonly ensemble: string;
  readonly input: Json;
  readonly parent: NewExecution;
  /** The place of the step in its parent. */
  readonly key: string;
  /** Its parent does not wait for it: it outlives the parent's timeout. */
  readonly detached: boolean;
  /** How long it may take, from its start. */
  readonly timeoutMs: number | undefined;
  /** It may have been started before, by a process that came no further. */
  readonly isRepeated: boolean;
}

export interface StartedChild {
  /** Its record, when it ends in this process without having been given up; otherwise undefined: then a signal tells of its end. */
  readonly finished: Promise<Execution | undefined>;
}

export interface Children {
  /** The id of a child that is to be started. */
  newId(): string;
  /**
   * Stores and begins it, or queues it.
   *
   * @throws NOT_FOUND for an unknown ensemble, INVALID_INPUT when the input doesn't fit or can't be stored, CONFLICT beyond 16 levels
   *   or 1,000 descendants; JournalLostError when the storage does not answer, which leaves open whether it was stored
   */
  start(child: NewChild): Promise<StartedChild>;
  /** Asks that it be stopped, wherever it runs; does nothing for one that was never stored. @throws JournalLostError when the storage does not answer */
  cancel(id: string): Promise<void>;
}
