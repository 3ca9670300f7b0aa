/** Reads all step records of an execution, in pages. */

import type { StepRecord } from '../../engine/model/stored-execution.ts';
import type { RecordReader } from '../../engine/ports/storage.ts';

/** How many records are read at once. */
const PAGE = 1000;

/** The records, with decisions and marks, in the order in which they were first stored. */
export async function* readRecords({ executions }: RecordReader, id: string): AsyncGenerator<StepRecord> {
  for (let after: string | undefined; ; ) {
    const page = await executions.listSteps(id, { after, limit: PAGE, notes: true });
    if (page.length === 0) return;
    yield* page;
    after = page.at(-1)?.key;
  }
}
