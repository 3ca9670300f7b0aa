/** Masking: what takes secrets out of that which people read. An orchestrator carries its own, for the handlers that serve it. */

import type { Logger } from './logger.ts';

export interface Masking {
  /** A text without secrets. */
  text(text: string): string;
  /**
   * A value as JSON text, without secrets in its texts and keys; undefined for a value that JSON can't say. Numbers stay. Without
   * secrets to look for it is `JSON.stringify`.
   */
  json(value: unknown): string | undefined;
  /** A logger whose messages and fields hold no secret, and that never throws. */
  logger(logger: Logger): Logger;
}

/** Where an orchestrator keeps its {@link Masking}: enumerable, so that an object that copies one to extend it masks too. */
export const MASKING: unique symbol = Symbol.for('ensemble-orchestrator.masking');
