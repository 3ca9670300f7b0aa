/** What a run keeps of its own results, for its record: the first 1,000, and how many there are. */

import { AGENTS_IN_RECORD } from '../../engine/model/execution.ts';
import type { StepRecord } from '../../engine/model/stored-execution.ts';

export class KeptRecords {
  readonly list: StepRecord[] = [];
  /** How many agents ran. */
  agents = 0;

  /** Keeps what the storage keeps: a record takes the place of the attempt before it. */
  add(record: StepRecord): StepRecord {
    if (record.retryAt === undefined) this.agents += 1;
    const at = record.attempts > 1 ? this.list.findLastIndex((earlier) => earlier.key === record.key) : -1;
    if (at >= 0) this.list[at] = record;
    else if (this.list.length < AGENTS_IN_RECORD) this.list.push(record);
    return record;
  }
}
