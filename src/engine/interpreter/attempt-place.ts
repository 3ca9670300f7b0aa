/** Which attempt of a step it is. */

import type { KeptPart } from './attempt-parts.ts';

/** Which attempt it is, and when the first attempt began. */
export interface AttemptPlace {
  readonly key: string;
  /** Counted from 1. */
  readonly number: number;
  /** Whether the attempt was made now; otherwise its record is replayed, and no event reports it again. */
  made: boolean;
  /** Size of its output, when the attempt was made now. */
  bytes: number;
  /** Unix ms. */
  readonly startedAt: number;
  readonly monotonic: number;
  /** The parts that were begun in this process, by key. Later attempts use them. */
  parts: Map<string, KeptPart> | undefined;
  /** 1 if a crash may have cut the first attempt off. It counts in the record, and not for `maxAttempts`. */
  cutOff: number;
}
