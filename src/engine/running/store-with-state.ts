/** Stores a record together with the change of the state that it makes, however often another execution changes the state meanwhile. */

import type { StateUpdate } from '../execution/journal.port.ts';
import type { StateChange, StepRecord } from '../execution/stored-execution.ts';
import type { Clock } from '../host/clock.port.ts';
import type { MaybePromise } from '../operation/operation.port.ts';
import type { CommitResult, StoredState } from '../storage/storage.port.ts';

interface StateWriter {
  readonly ensemble: string;
  readonly clock: Clock;
  readState(): MaybePromise<StoredState | undefined>;
  /** Whether later results are dropped. */
  isClosed(): boolean;
  commit(record: StepRecord, change: StateChange | undefined): MaybePromise<CommitResult>;
}

/** @returns the stored record; undefined if it was dropped */
export async function storeWithState(
  made: StepRecord,
  update: StateUpdate,
  { ensemble, clock, readState, isClosed, commit }: StateWriter,
): Promise<StepRecord | undefined> {
  while (!isClosed()) {
    const before = await readState();
    const { record, value } = update.next(before?.value, made);
    const expectedVersion = before?.version ?? 0;
    const result = await commit(record, value && { ensemble, expectedVersion, value, updatedAt: clock.now() });
    if (result === 'state-conflict') continue;
    if (value) update.stored(value);
    return record;
  }
  return undefined;
}
