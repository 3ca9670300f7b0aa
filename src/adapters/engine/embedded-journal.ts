/** The embedded engine's journal: the records of one execution, written to the storage as they are made. */

import { OrchestratorError } from '../../engine/errors.ts';
import { AGENTS_IN_RECORD } from '../../engine/model/execution.ts';
import type { CommitEntry, ExecutionEnd, NewExecution, StateChange, StepRecord } from '../../engine/model/stored-execution.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import type { Journal, StepOptions } from '../../engine/ports/journal.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { CommitResult, Storage } from '../../engine/ports/storage.ts';

export interface EmbeddedJournal extends Journal {
  /** The results so far, at most 1,000. */
  readonly records: readonly StepRecord[];
  /** How many agents ran. */
  readonly agents: number;
  /** Stores the end, with what was held back for it. */
  end(end: ExecutionEnd): MaybePromise<void>;
}

/** @param durability - `none` holds every record back until the end */
export function createEmbeddedJournal(
  storage: Storage,
  clock: Clock,
  execution: NewExecution,
  durability: 'step' | 'none',
): EmbeddedJournal {
  const records: StepRecord[] = [];
  // Kept apart from `records`, which the end hands to the caller: the storage owns what it is given.
  let held: StepRecord[] = [];
  let agents = 0;

  const commit = (steps: readonly StepRecord[], state?: StateChange, end?: ExecutionEnd): MaybePromise<CommitResult> => {
    const entry: CommitEntry = { executionId: execution.id, epoch: execution.epoch, steps, ...(state && { state }), ...(end && { end }) };
    const results = storage.commit([entry]);
    return results instanceof Promise ? results.then((all) => check(all[0])) : check(results[0]);
  };

  const note = (record: StepRecord): StepRecord => {
    if (record.retryAt === undefined) {
      agents += 1;
      if (records.length < AGENTS_IN_RECORD) records.push(record);
    }
    return record;
  };

  const store = (record: StepRecord, options: StepOptions): MaybePromise<StepRecord> => {
    if (options.state && record.retryAt === undefined) return storeWithState(record, options.state);
    if (durability === 'none' || (options.last && record.retryAt === undefined)) {
      if (record.retryAt === undefined) held.push(record);
      return note(record);
    }
    const stored = commit([record]);
    return stored instanceof Promise ? stored.then(() => note(record)) : note(record);
  };

  const storeWithState = async (made: StepRecord, state: NonNullable<StepOptions['state']>): Promise<StepRecord> => {
    for (;;) {
      const before = await storage.readState(execution.ensemble);
      const { record, value } = state.next(before?.value, made);
      const change = value && { ensemble: execution.ensemble, expectedVersion: before?.version ?? 0, value, updatedAt: clock.now() };
      const steps = [...held, record];
      if ((await commit(steps, change)) === 'state-conflict') continue;
      held = [];
      return note(record);
    }
  };

  return {
    records,
    get agents() {
      return agents;
    },
    step(_key, _attempt, run, options) {
      const made = run();
      if (made instanceof Promise) return made.then((record) => record && store(record, options));
      return made && store(made, options);
    },
    sleepUntil: (_key, instant, signal) => clock.sleep(instant - clock.now(), signal),
    readState() {
      const stored = storage.readState(execution.ensemble);
      return stored instanceof Promise ? stored.then((state) => state?.value) : stored?.value;
    },
    end(end) {
      const stored = commit(held, undefined, end);
      return stored instanceof Promise ? stored.then(() => undefined) : undefined;
    },
  };
}

function check(result: CommitResult | undefined): CommitResult {
  if (result === 'stored' || result === 'state-conflict') return result;
  throw new OrchestratorError('CONFLICT', 'the execution belongs to another process or has ended: its write was refused');
}
