/** What a run keeps of its own results, for its record: the first 1,000, with as much of their outputs as a record carries. */

import { jsonBytes, mostJsonBytes } from '../../engine/json-bytes.ts';
import { AGENTS_IN_RECORD, OUTPUTS_IN_RECORD_BYTES } from '../../engine/model/execution.ts';
import { outputBudget } from '../../engine/model/execution-record.ts';
import type { StepRecord } from '../../engine/model/stored-execution.ts';

/** A record whose output is not kept: the execution's record leaves it out. */
export type KeptRecord = StepRecord & { readonly outputOmitted?: true };

/** So much is kept before it is counted exactly, which costs more than the keeping. */
const KEPT_BYTES = 2 * OUTPUTS_IN_RECORD_BYTES;

export class KeptRecords {
  readonly list: KeptRecord[] = [];
  /** How many agents ran. */
  agents = 0;
  /** At most so many bytes of outputs are in the list. */
  #most = 0;
  /** Once more outputs came than a record carries: whether one more is carried. */
  #carries: ((bytes: number) => boolean) | undefined;

  /** Keeps what the storage keeps: a record takes the place of the attempt before it. */
  add(record: StepRecord): StepRecord {
    if (record.retryAt === undefined) this.agents += 1;
    const at = record.attempts > 1 ? this.list.findLastIndex((earlier) => earlier.key === record.key) : -1;
    if (at < 0 && this.list.length >= AGENTS_IN_RECORD) return record;
    if (at >= 0) this.list[at] = this.#carried(record);
    else this.list.push(this.#carried(record));
    if (!this.#carries) {
      this.#most += mostJsonBytes(record.output, KEPT_BYTES);
      if (this.#most > KEPT_BYTES) this.#omit();
    }
    return record;
  }

  #omit(): void {
    this.#carries = outputBudget();
    for (let i = 0; i < this.list.length; i++) this.list[i] = this.#carried(this.list[i] as KeptRecord);
  }

  #carried(record: KeptRecord): KeptRecord {
    if (!this.#carries || this.#carries(jsonBytes(record.output, OUTPUTS_IN_RECORD_BYTES))) return record;
    return { ...record, output: null, outputOmitted: true };
  }
}
