/** The records that a journal keeps in memory: those that a replay returns, and those that the execution's record lists. */

import { jsonTextBytes, maxJsonTextBytes } from '../base/json/measure-json.ts';
import { blocksAround } from '../ensemble/flow-places.ts';
import { isMark } from '../ensemble/step-kind.ts';
import { AGENTS_IN_RECORD, OUTPUTS_IN_RECORD_BYTES } from '../execution/execution.ts';
import { outputBudget } from '../execution/execution-record.ts';
import type { StepRecord } from '../execution/stored-execution.ts';

/** For a block of which nothing is stored. */
export const NO_PARTS: ReadonlySet<number> = new Set();

/** What was stored of an execution before it was resumed, by key. */
export class ReplayedRecords {
  readonly #byKey = new Map<string, StepRecord>();
  /** The keys of the marks. Marks are kept apart: none may change how a replay goes. */
  readonly #marks = new Set<string>();
  readonly #blocks: readonly string[];
  /** Undefined after the end of the replay. */
  #onEnd: (() => void)[] | undefined = [];
  /** The items and branches of which something is stored, by block; computed on first use. */
  #parts: ReadonlyMap<string, ReadonlySet<number>> | undefined;

  /** @param blocks - the keys of blocks that a fold describes */
  constructor(records: readonly StepRecord[], blocks: readonly string[] = []) {
    this.#blocks = blocks;
    for (const record of records) {
      if (isMark(record)) this.#marks.add(record.key);
      else this.#byKey.set(record.key, record);
    }
  }

  /** Calls `callback` at the end of the replay, or at once if it has ended. */
  onEnd(callback: () => void): void {
    if (this.#onEnd) this.#onEnd.push(callback);
    else callback();
  }

  /** The flow asked for a record that is not stored. */
  end(): void {
    const callbacks = this.#onEnd;
    this.#onEnd = undefined;
    for (const callback of callbacks ?? []) callback();
  }

  hasMark(key: string): boolean {
    return this.#marks.has(key);
  }

  get(key: string): StepRecord | undefined {
    return this.#byKey.get(key);
  }

  /** The indexes of the items or branches of a block of which something is stored. */
  partsOf(blockKey: string): ReadonlySet<number> {
    this.#parts ??= partsOf([...this.#byKey.keys(), ...this.#blocks]);
    return this.#parts.get(blockKey) ?? NO_PARTS;
  }
}

function partsOf(keys: Iterable<string>): Map<string, Set<number>> {
  const parts = new Map<string, Set<number>>();
  for (const key of keys) {
    for (const { block, index } of blocksAround(key)) {
      const known = parts.get(block);
      if (known) known.add(index);
      else parts.set(block, new Set([index]));
    }
  }
  return parts;
}

/** A record whose output is left out of the execution's record. */
export type ReportedRecord = StepRecord & { readonly outputOmitted?: true };

/** Up to this estimate, outputs are kept without an exact count: counting costs more than keeping them. */
const UNCOUNTED_BYTES = 2 * OUTPUTS_IN_RECORD_BYTES;

/** A run's own results, for the execution's record: the first 1,000, with as many of their outputs as a record may hold. */
export class ReportedRecords {
  readonly list: ReportedRecord[] = [];
  /** How many agents ran. */
  agents = 0;
  /** Upper bound of the bytes of all outputs in the list. */
  #maxBytes = 0;
  /** Set once the outputs need an exact count: says whether one more output fits. */
  #fits: ((bytes: number) => boolean) | undefined;

  /** Adds a record as the storage does: it replaces the record of the previous attempt. */
  add(record: StepRecord): StepRecord {
    if (record.retryAt === undefined) this.agents += 1;
    const at = record.attempts > 1 ? this.list.findLastIndex((earlier) => earlier.key === record.key) : -1;
    if (at < 0 && this.list.length >= AGENTS_IN_RECORD) return record;
    if (at >= 0) this.list[at] = this.#withinLimit(record);
    else this.list.push(this.#withinLimit(record));
    if (!this.#fits) {
      this.#maxBytes += maxJsonTextBytes(record.output, UNCOUNTED_BYTES);
      if (this.#maxBytes > UNCOUNTED_BYTES) this.#countExactly();
    }
    return record;
  }

  #countExactly(): void {
    this.#fits = outputBudget();
    for (let i = 0; i < this.list.length; i++) this.list[i] = this.#withinLimit(this.list[i] as ReportedRecord);
  }

  #withinLimit(record: ReportedRecord): ReportedRecord {
    if (!this.#fits || this.#fits(jsonTextBytes(record.output, OUTPUTS_IN_RECORD_BYTES))) return record;
    return { ...record, output: null, outputOmitted: true };
  }
}
