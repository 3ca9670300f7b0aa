/** One attempt of an agent at a step: of what, and which one it is. */

import type { CompiledAgentStep } from '../../compiled/compiled-ensemble.ts';
import type { NameSlot } from '../../compiled/name-slot.ts';
import type { AttemptSpan } from '../../host/telemetry.port.ts';
import type { RecordedTransaction } from '../../storage/recorded-transaction.port.ts';
import type { RunScope } from '../run-scope.ts';
import type { KeptPart } from './attempt-parts.ts';

export interface Attempt {
  readonly step: CompiledAgentStep;
  readonly scope: RunScope;
  /** The route that led here. A guard on the route handles the agent's failure too. */
  readonly router: NameSlot | undefined;
  readonly key: string;
  /** Counted from 1. */
  readonly number: number;
  /** Whether the attempt was made now; otherwise its record is replayed, and no event reports it again. */
  made: boolean;
  /** Size of its output, when the attempt was made now. */
  bytes: number;
  /** When the first attempt began, Unix ms. */
  readonly startedAt: number;
  readonly monotonic: number;
  /** The parts that were begun in this process, by key. Later attempts use them. */
  parts: Map<string, KeptPart> | undefined;
  /** 1 if a crash may have cut the first attempt off. It counts in the record, and not for `maxAttempts`. */
  cutOff: number;
  /** The transaction in which the operation writes. Undefined until it asks for one. */
  transaction: RecordedTransaction | undefined;
  /** Undefined without telemetry. */
  span: AttemptSpan | undefined;
}
