/** The embedded engine's journal: the records of one execution, written to the storage as they are made. */

import { OrchestratorError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { AGENTS_IN_RECORD } from '../../engine/model/execution.ts';
import type {
  CommitEntry,
  ExecutionEnd,
  NewExecution,
  StateChange,
  StepRecord,
} from '../../engine/model/stored-execution.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import type { Journal, StateUpdate, StepOptions, StoreRecord } from '../../engine/ports/journal.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { CommitResult, Storage } from '../../engine/ports/storage.ts';

/** Shared by all journals that hold nothing back; never pushed to. */
const NOTHING: StepRecord[] = [];

export class EmbeddedJournal implements Journal {
  /** The results so far, at most 1,000. */
  readonly records: StepRecord[] = [];
  /** How many agents ran. */
  agents = 0;
  readonly #storage: Storage;
  readonly #clock: Clock;
  readonly #execution: NewExecution;
  readonly #holdBack: boolean;
  /** Records that are stored together with a later one, or with the end. */
  #held: StepRecord[] = NOTHING;
  #ended = false;

  /** @param durability - `none` holds every record back until the end */
  constructor(storage: Storage, clock: Clock, execution: NewExecution, durability: 'step' | 'none') {
    this.#storage = storage;
    this.#clock = clock;
    this.#execution = execution;
    this.#holdBack = durability === 'none';
  }

  step(
    _key: string,
    _attempt: number,
    run: (store: StoreRecord) => MaybePromise<StepRecord | undefined>,
    options: StepOptions,
  ): MaybePromise<StepRecord | undefined> {
    return run((record) => this.#store(record, options));
  }

  sleepUntil(_key: string, instant: number, signal: AbortSignal): Promise<void> {
    return this.#clock.sleep(instant - this.#clock.now(), signal);
  }

  readState(): MaybePromise<JsonObject | undefined> {
    const stored = this.#storage.readState(this.#execution.ensemble);
    return stored instanceof Promise ? stored.then((state) => state?.value) : stored?.value;
  }

  /** Stores the end, with what was held back for it. What steps still give is dropped from now on. */
  end(end: ExecutionEnd): MaybePromise<void> {
    this.#ended = true;
    const { id, epoch } = this.#execution;
    const stored = this.#commit({ executionId: id, epoch, steps: this.#held, end });
    return stored instanceof Promise ? stored.then(() => undefined) : undefined;
  }

  #store(record: StepRecord | undefined, options: StepOptions): MaybePromise<StepRecord | undefined> {
    if (!record || this.#ended) return undefined;
    const final = record.retryAt === undefined;
    if (options.state && final) return this.#storeWithState(record, options.state);
    if (this.#holdBack || (options.last && final)) {
      if (!final) return record;
      if (this.#held === NOTHING) this.#held = [record];
      else this.#held.push(record);
      return this.#note(record);
    }
    const { id, epoch } = this.#execution;
    const stored = this.#commit({ executionId: id, epoch, steps: [record] });
    return stored instanceof Promise ? stored.then(() => this.#note(record)) : this.#note(record);
  }

  async #storeWithState(made: StepRecord, state: StateUpdate): Promise<StepRecord | undefined> {
    const { id, epoch, ensemble } = this.#execution;
    // Taken out at once: other steps may be held back while this one waits for the storage.
    const held = this.#held;
    this.#held = NOTHING;
    while (!this.#ended) {
      const before = await this.#storage.readState(ensemble);
      const { record, value } = state.next(before?.value, made);
      const expectedVersion = before?.version ?? 0;
      const change: StateChange | undefined = value && {
        ensemble,
        expectedVersion,
        value,
        updatedAt: this.#clock.now(),
      };
      const steps = [...held, record];
      const result = await this.#commit(
        change ? { executionId: id, epoch, steps, state: change } : { executionId: id, epoch, steps },
      );
      if (result === 'state-conflict') continue;
      if (value) state.stored(value);
      return this.#note(record);
    }
    return undefined;
  }

  // Keeps what the storage keeps: a record takes the place of the attempt before it.
  #note(record: StepRecord): StepRecord {
    if (record.retryAt === undefined) this.agents += 1;
    const at = record.attempts > 1 ? this.records.findLastIndex((earlier) => earlier.key === record.key) : -1;
    if (at >= 0) this.records[at] = record;
    else if (this.records.length < AGENTS_IN_RECORD) this.records.push(record);
    return record;
  }

  #commit(entry: CommitEntry): MaybePromise<CommitResult> {
    const results = this.#storage.commit([entry]);
    return results instanceof Promise ? results.then((all) => check(all[0])) : check(results[0]);
  }
}

function check(result: CommitResult | undefined): CommitResult {
  if (result === 'stored' || result === 'state-conflict') return result;
  throw new OrchestratorError(
    'CONFLICT',
    'the execution belongs to another process or has ended: its write was refused',
  );
}
