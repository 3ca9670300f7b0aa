/** A journal that answers from the records of an execution and stores nothing. What happens where a record is missing, its kinds decide. */

import type { Json } from '../base/json/json.ts';
import type { UsedComponent } from '../component/component.ts';
import type { Journal } from '../execution/journal.port.ts';
import type { StepRecord } from '../execution/stored-execution.ts';
import type { MaybePromise } from '../operation/operation.port.ts';
import { ReplayedRecords } from './journal-records.ts';
import { PinnedComponents } from './pinned-components.ts';

/** Turns of the event loop without a question of the flow, after which it counts as standing still. */
const QUIET_TURNS = 5;

/** For a part of the flow that can't continue. Each has its own promise: a shared one would hold what waits for it for ever. */
export function never(): Promise<never> {
  return new Promise(() => {});
}

export abstract class RecordedJournal implements Journal {
  readonly mayRepeat = false;
  /** How often the flow has asked for something. */
  calls = 0;
  readonly #records: ReplayedRecords;
  readonly #components = new PinnedComponents();

  constructor(records: readonly StepRecord[]) {
    this.#records = new ReplayedRecords(records);
    for (const record of records) if (record.note) this.#components.add(record);
  }

  abstract step(...given: Parameters<Journal['step']>): MaybePromise<StepRecord | undefined>;

  /** Of a decision that is not recorded. */
  protected abstract missing(key: string): Promise<never>;

  /** @param turn - gives the event loop a turn */
  async untilStill(turn: () => Promise<void>): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; ) {
      const { calls } = this;
      await turn();
      quiet = this.calls === calls ? quiet + 1 : 0;
    }
  }

  protected find(key: string): StepRecord | undefined {
    this.calls += 1;
    return this.#records.get(key);
  }

  waitForLease(..._begins: Parameters<Journal['waitForLease']>): Promise<void> | undefined {
    return undefined;
  }

  decide(...[key]: Parameters<Journal['decide']>): MaybePromise<Json> {
    const stored = this.find(key);
    return stored ? stored.output : this.missing(key);
  }

  pinned(reference: string): UsedComponent | undefined {
    return this.#components.get(reference);
  }

  pin(): void {}

  storeChosen(): undefined {}

  mark(): false {
    return false;
  }

  replayed(key: string): StepRecord | undefined {
    return this.find(key);
  }

  replayedParts(blockKey: string): ReadonlySet<number> {
    return this.#records.partsOf(blockKey);
  }

  onReplayEnd(_callback: () => void): void {}

  branches(): void {}

  sleepUntil(..._sleep: Parameters<Journal['sleepUntil']>): Promise<void> {
    return never();
  }

  async waitForSignal(...[key]: Parameters<Journal['waitForSignal']>): Promise<undefined> {
    return this.missing(key);
  }

  readState(): ReturnType<Journal['readState']> {
    return undefined;
  }
}
