/** The embedded engine's journal: the records of one execution, written to the storage as they are made, and recalled. */

import type { Json, JsonObject } from '../../engine/json.ts';
import {
  type CommitEntry,
  type ExecutionEnd,
  NEVER,
  type NewSignal,
  type Release,
  type StateChange,
  type StepRecord,
} from '../../engine/model/stored-execution.ts';
import type { Journal, StateUpdate, StepOptions, StoreRecord, TakenSignal } from '../../engine/ports/journal.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { CommitResult, StoredState } from '../../engine/ports/storage.ts';
import { Branches } from './branches.ts';
import type { HeldExecution } from './held-execution.ts';
import { check, fail, type JournalParts, SUSPEND_FROM_MS, type Suspendable, toNote } from './journal-parts.ts';
import { KeptRecords } from './kept-records.ts';
import { RecalledRecords } from './recalled-records.ts';
import { RunSignals } from './run-signals.ts';

/** Shared by all journals that hold nothing back; never pushed to. */
const NOTHING: StepRecord[] = [];
export class EmbeddedJournal implements Journal {
  readonly kept = new KeptRecords();
  readonly #parts: JournalParts;
  readonly #suspendable: Suspendable;
  readonly #held: HeldExecution;
  readonly #holdBack: boolean;
  #recalled: RecalledRecords | undefined;
  #live = true;
  #whenLive: (() => void)[] | undefined;
  /** Records that are stored together with a later one, or with the end. */
  #heldBack: StepRecord[] = NOTHING;
  // Made when a block or a wait needs it: most runs have neither.
  #branches: Branches | undefined;
  #signals: RunSignals | undefined;
  /** How many signals have come, as far as is known. */
  #heard: number;
  #closed = false;

  /** @param durability - `none` holds every record back until the end */
  constructor(parts: JournalParts, held: HeldExecution, durability: 'step' | 'none', suspendable: Suspendable) {
    this.#suspendable = suspendable;
    this.#parts = parts;
    this.#held = held;
    this.#heard = held.signals ?? 0;
    this.#holdBack = durability === 'none';
    if (held.records) this.#recall(held.records);
  }

  step(
    key: string,
    attempt: number,
    run: (store: StoreRecord) => MaybePromise<StepRecord | undefined>,
    options: StepOptions,
  ): MaybePromise<StepRecord | undefined> {
    if (this.#recalled !== undefined) {
      const stored = this.#recalled.get(key);
      if (stored && stored.attempts >= attempt) return stored;
      this.#goLive();
    }
    return run((record) => this.#store(record, options));
  }

  confirm(): Promise<void> | undefined {
    const { lease } = this.#parts;
    if (lease === undefined || lease.isSure(this.#held.owner)) return undefined;
    // Others may have continued with it while this process stood still: then its effect must not happen here too.
    return lease.confirm(this.#held.owner);
  }

  recalled(key: string): StepRecord | undefined {
    return this.#recalled?.get(key);
  }

  note(...[key, decide, wait]: Parameters<Journal['note']>): MaybePromise<Json> {
    const known = this.#recalled?.get(key);
    if (known) return known.output;
    this.#goLive();
    const output = decide();
    const record = toNote(key, output, wait ?? { name: '', at: this.#parts.clock.now() });
    if (this.#closed) return output;
    if (this.#holdBack) {
      this.#hold(record);
      return output;
    }
    const stored = this.#commit(this.#entry([record]));
    return stored instanceof Promise ? stored.then(() => output) : output;
  }

  recalls(prefix: string): boolean {
    return this.#recalled?.beginsWith(prefix) ?? false;
  }

  onLive(callback: () => void): void {
    if (this.#live) callback();
    else {
      this.#whenLive ??= [];
      this.#whenLive.push(callback);
    }
  }

  branches(change: number): void {
    this.#atWork.change(change);
  }

  async sleepUntil(_key: string, instant: number, signal: AbortSignal): Promise<void> {
    this.#goLive();
    signal.throwIfAborted();
    if (instant > (this.#held.reached ?? Number.NEGATIVE_INFINITY)) await this.#atWork.sleepUntil(instant, signal);
  }

  waitForSignal(...wait: Parameters<Journal['waitForSignal']>): Promise<TakenSignal | undefined> {
    this.#goLive();
    this.#signals ??= new RunSignals(this.#parts, this, this.#held, this.#recalled);
    return this.#signals.wait(...wait);
  }

  /** How many signals have come, as far as the run knows. */
  get heard(): number {
    return this.#heard;
  }

  /** The names of the signals that the run waits for; undefined when there are too many. */
  get waitsFor(): readonly string[] | undefined {
    return this.#signals ? this.#signals.names : [];
  }

  /** So many signals have come by now. */
  hear(signals: number): void {
    if (signals <= this.#heard) return;
    this.#heard = signals;
    this.#signals?.look();
  }

  /** A branch waits until an instant. @returns tells that it goes on; to be called at once when it does */
  idle(instant: number): () => void {
    return this.#atWork.idle(instant);
  }

  readState(): MaybePromise<JsonObject | undefined> {
    const stored = this.#readState();
    return stored instanceof Promise ? stored.then((state) => state?.value) : stored?.value;
  }

  /** Stores the end, with what was held back for it and what is told to others. What steps still give is dropped from now on. @throws JournalLostError */
  end(end: ExecutionEnd, signals?: readonly NewSignal[]): MaybePromise<CommitResult> {
    const { id: executionId } = this.#held.execution;
    const { epoch } = this.#held;
    const steps = this.#takeHeldBack();
    return this.#commit(signals ? { executionId, epoch, steps, signals, end } : { executionId, epoch, steps, end });
  }

  /** Gives the execution up, with what was held back. What steps still give is dropped from now on. @throws JournalLostError */
  release(release: Release): MaybePromise<CommitResult> {
    return this.#commit({ ...this.close(), release });
  }

  /** Drops what steps still give. @returns an entry with what was held back */
  close(): CommitEntry {
    return this.#entry(this.#takeHeldBack());
  }

  #takeHeldBack(): StepRecord[] {
    this.#closed = true;
    const held = this.#heldBack;
    this.#heldBack = NOTHING;
    return held;
  }

  #readState(): MaybePromise<StoredState | undefined> {
    return this.#parts.storage.readState(this.#held.execution.ensemble);
  }

  #goLive(): void {
    if (this.#live) return;
    this.#live = true;
    const callbacks = this.#whenLive;
    this.#whenLive = undefined;
    for (const callback of callbacks ?? []) callback();
  }

  #store(record: StepRecord | undefined, options: StepOptions): MaybePromise<StepRecord | undefined> {
    if (!record || this.#closed) return undefined;
    const final = record.retryAt === undefined;
    if (options.state && final) return this.#storeWithState(record, options.state);
    if (this.#holdBack || (options.last && final)) {
      if (!final) return record;
      this.#hold(record);
      return this.kept.add(record);
    }
    const stored = this.#commit(this.#entry([record]));
    return stored instanceof Promise ? stored.then(() => this.kept.add(record)) : this.kept.add(record);
  }

  async #storeWithState(made: StepRecord, state: StateUpdate): Promise<StepRecord | undefined> {
    const { clock } = this.#parts;
    const { ensemble } = this.#held.execution;
    // Taken out at once: other steps may be held back while this one waits for the storage.
    const held = this.#heldBack;
    this.#heldBack = NOTHING;
    while (!this.#closed) {
      const before = await this.#readState();
      const { record, value } = state.next(before?.value, made);
      const expectedVersion = before?.version ?? 0;
      const entry = this.#entry([...held, record]);
      const change: StateChange | undefined = value && { ensemble, expectedVersion, value, updatedAt: clock.now() };
      const result = await this.#commit(change ? { ...entry, state: change } : entry);
      if (result === 'state-conflict') continue;
      if (value) state.stored(value);
      return this.kept.add(record);
    }
    return undefined;
  }

  #hold(record: StepRecord): void {
    if (this.#heldBack === NOTHING) this.#heldBack = [record];
    else this.#heldBack.push(record);
  }

  get #atWork(): Branches {
    this.#branches ??= new Branches(this.#parts.clock, (earliest) => this.#suspend(earliest));
    return this.#branches;
  }

  #recall(records: readonly StepRecord[]): void {
    this.#live = false;
    this.#recalled = new RecalledRecords(records);
    for (const record of records) if (!record.note) this.kept.add(record);
  }

  #suspend(earliest: number): void {
    if (this.#holdBack || this.#closed) return;
    const dueAt = Math.min(earliest, this.#held.execution.deadlineAt ?? earliest, NEVER);
    if (dueAt - this.#parts.clock.now() >= SUSPEND_FROM_MS) this.#suspendable.suspend(dueAt);
  }

  #entry(steps: readonly StepRecord[]): CommitEntry {
    return { executionId: this.#held.execution.id, epoch: this.#held.epoch, steps };
  }

  #commit(entry: CommitEntry): MaybePromise<CommitResult> {
    const result = this.#parts.writer.write(this.#held.owner, entry);
    return result instanceof Promise ? result.then(check, (thrown) => fail(thrown, entry)) : check(result);
  }
}
