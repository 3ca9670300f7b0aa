/** Reads all step records of an execution, in pages. */

import type { StepRecord } from '../../engine/model/stored-execution.ts';
import type { Turns } from '../../engine/events/execution-events.ts';
import type { RecordReader } from '../../engine/ports/storage.ts';

/** How many records, and bytes of their outputs, are read at once. */
const PAGE = 250;
const READ_BYTES = 1024 * 1024;

/** The records, with decisions and marks, in the order in which they were first stored. */
export async function* readRecords({ executions }: RecordReader, turns: Turns, id: string): AsyncGenerator<StepRecord> {
  for (let after: string | undefined; ; ) {
    await turns.pause();
    const page = await executions.listSteps(id, { after, limit: PAGE, bytes: READ_BYTES, notes: true });
    if (page.length === 0) return;
    yield* page;
    after = page.at(-1)?.key;
  }
}
