/** The masking port: removes secrets from text that people read. An orchestrator has its own, for the handlers that serve it. */

import type { RequestKeys } from '../access/request-keys.port.ts';
import type { Measure } from '../events/measurement.ts';
import type { Logger } from './logger.port.ts';

export interface Masking {
  /** The text, with its secrets masked. */
  text(text: string): string;
  /** Where the end of a text begins that may be part of a secret, when more follows; its length if there is none. */
  openFrom(text: string): number;
  /**
   * A value as JSON text, with the secrets in its texts and keys masked. Numbers are not changed. Undefined for a value that JSON can't
   * represent. If the orchestrator has no secrets, this is `JSON.stringify`.
   */
  json(value: unknown): string | undefined;
  /** A logger that masks secrets in messages and fields, and never throws. */
  logger(logger: Logger): Logger;
}

/** What is measured in this process. */
export interface Measured {
  /** @returns a function that removes the listener */
  onMeasured(listener: Measure): () => void;
  /** Undefined while nobody listens. */
  readonly measure: Measure | undefined;
}

/** What handlers take from the orchestrator that they serve. */
export interface ServedDependencies extends Masking {
  /** The orchestrator's own logger, masked. */
  readonly log: Logger;
  readonly once: RequestKeys['once'];
  readonly events: Measured;
  /** Sends what executions of this process have stored for their receivers, and waits for it. Does nothing if there is nothing. */
  readonly deliver: () => Promise<void>;
  /** The options of the orchestrator, for tools that check or run its definitions. A function, because they have secrets. */
  readonly options: () => object;
}

/** The property of an orchestrator that holds its {@link ServedDependencies}. It is enumerable, so that copies of an orchestrator mask too. */
export const MASKING: unique symbol = Symbol.for('ensemble-orchestrator.masking');
