/** The journal over a run log: writes the records of one run to the log as they are made, and replays stored ones. */

import type { Json, JsonObject } from '../base/json/json.ts';
import { andThen, isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import type { UsedComponent } from '../component/component.ts';
import { markOfAttempt, toNote } from '../ensemble/step-kind.ts';
import { lineOfEnd } from '../events/tallies/end-line.ts';
import { type PendingWait, WAITS_IN_RECORD } from '../execution/execution.ts';
import type { LoadedDefinition, Outbox } from '../execution/execution-engine.port.ts';
import { waitedBefore } from '../execution/execution-record.ts';
import type {
  Journal,
  StateUpdate,
  StepOptions,
  StoreRecord,
  TakenSignal,
  WaitPlace,
} from '../execution/journal.port.ts';
import type { RunLog } from '../execution/run-log.port.ts';
import type { CommitEntry, ExecutionEnd, Handover, NewSignal } from '../execution/stored-execution.ts';
import { type FoldedBlock, NEVER, type Release, type StepRecord } from '../execution/stored-execution.ts';
import type { Clock } from '../host/clock.port.ts';
import type { RecordedTransaction } from '../storage/recorded-transaction.port.ts';
import type { CommitResult } from '../storage/storage.port.ts';
import { FoldedBlocks } from './folded-blocks.ts';
import { type HeldExecution, isAfterCrash, nextHandover } from './held-execution.ts';
import { NO_PARTS, ReplayedRecords, ReportedRecords } from './journal-records.ts';
import { PinnedComponents } from './pinned-components.ts';
import { RunSignals } from './run-signals.ts';
import { storeWithState } from './store-with-state.ts';
import { UsageTotal } from './usage-total.ts';
import { WorkingBranches } from './working-branches.ts';
import { checkWritten, failWrite } from './write-failure.ts';

/** What a run needs of its engine. */
export interface RunDependencies {
  readonly log: RunLog;
  readonly clock: Clock;
}

/** A run that can be suspended. */
export interface Suspendable {
  /** Nothing of the run is at work. @param dueAt - Unix ms at which it is to be resumed */
  suspend(dueAt: number): void;
}

/** A run that has to wait at least this long is suspended: then it takes no memory, and no place among the active runs. */
const SUSPEND_FROM_MS = 1000;
/** Shared by all journals without deferred records; never pushed to. */
const NO_RECORDS: StepRecord[] = [];
/** This many deferred records are written without a reason: a flow may report much between two results. */
const MAX_DEFERRED = 500;

export class RunJournal implements Journal {
  readonly reported = new ReportedRecords();
  readonly usage = new UsageTotal();
  readonly components = new PinnedComponents();
  readonly #dependencies: RunDependencies;
  readonly #suspendable: Suspendable;
  readonly #held: HeldExecution;
  readonly #storesAtEnd: boolean;
  #replayed: ReplayedRecords | undefined;
  /** Records that are stored together with a later record, or with the end. */
  #deferred: StepRecord[] = NO_RECORDS;
  /** A write that nothing waits for yet. */
  #background: Promise<CommitResult> | undefined;
  // Created on first use: most runs have neither blocks nor waits.
  #branches: WorkingBranches | undefined;
  #signals: RunSignals | undefined;
  /** Undefined for a flow without loops. */
  readonly #folds: FoldedBlocks | undefined;
  /** How many signals were stored for the execution, as far as is known. */
  #signalsSeen: number;
  readonly #outbox: Outbox | undefined;
  #closed = false;
  mayRepeat: boolean;
  readonly fold: Journal['fold'];
  readonly transact: Journal['transact'];

  /** @param loaded - with the durability `none`, all records are stored together with the end */
  constructor(
    dependencies: RunDependencies,
    held: HeldExecution,
    { durability, hasLoops, outbox }: Pick<LoadedDefinition, 'durability' | 'hasLoops' | 'outbox'>,
    suspendable: Suspendable,
  ) {
    this.#suspendable = suspendable;
    this.#dependencies = dependencies;
    this.#held = held;
    this.#signalsSeen = held.signals ?? 0;
    this.#storesAtEnd = durability === 'none';
    // Without stored steps, nothing shows how far the process came that died.
    this.mayRepeat = !this.#storesAtEnd && isAfterCrash(held);
    if (hasLoops && !this.#storesAtEnd) {
      const folds = new FoldedBlocks(held);
      this.#folds = folds;
      this.fold = (blockKey, describe) => folds.describe(blockKey, describe);
    }
    this.transact = this.#storesAtEnd ? undefined : dependencies.log.transact;
    if (held.records) this.#beginReplay(held.records);
    this.#outbox = outbox;
    if (outbox && held.begins) this.#writeBeginning(outbox, held);
  }

  step(
    key: string,
    attempt: number,
    run: (store: StoreRecord) => MaybePromise<StepRecord | undefined>,
    options: StepOptions,
  ): MaybePromise<StepRecord | undefined> {
    if (this.#replayed !== undefined) {
      const stored = this.#replayed.get(key);
      if (stored && stored.attempts >= attempt) return stored;
      this.#replayed.end();
    }
    return run((record, within) => this.#store(record, options, within));
  }

  waitForLease(): Promise<void> | undefined {
    // While this process was stopped, another may have resumed the execution. Then the effect must not happen here too.
    return this.#dependencies.log.waitForLease?.();
  }

  replayed(key: string): StepRecord | undefined {
    return this.#replayed?.get(key);
  }

  decide(...[key, compute, facts]: Parameters<Journal['decide']>): MaybePromise<Json> {
    const known = this.#replayed?.get(key);
    if (known) return known.output;
    this.#replayed?.end();
    const output = compute();
    const record = toNote(key, { output, ...(facts ?? { at: this.#dependencies.clock.now() }) });
    if (this.#closed) return output;
    this.usage.add(record);
    if (this.#storesAtEnd) {
      this.#defer(record);
      return output;
    }
    return andThen(this.#commit(this.#entry(record)), () => output);
  }

  mark(mark: StepRecord): boolean {
    if (this.#closed || this.#replayed?.hasMark(mark.key)) return false;
    // With `durability: none`, only results and decisions are stored.
    if (this.#storesAtEnd) return true;
    this.#defer(mark);
    if (this.#deferred.length >= MAX_DEFERRED) this.#writeMeanwhile(this.#entryOf(this.#takeDeferred()));
    return true;
  }

  pinned(reference: string): UsedComponent | undefined {
    return this.components.get(reference);
  }

  pin(reference: string, component: UsedComponent): void {
    this.components.set(reference, component, this.#dependencies.clock.now());
  }

  storeChosen(): MaybePromise<unknown> {
    if (this.#storesAtEnd || this.#closed || !this.components.hasUnstoredChoice) return undefined;
    const { mayRepeat } = this;
    // It shows nothing about how far the steps came.
    return andThen(this.#commit(this.#entryOf(this.#takeDeferred())), () => Object.assign(this, { mayRepeat }));
  }

  replayedParts(blockKey: string): ReadonlySet<number> {
    return this.#replayed?.partsOf(blockKey) ?? NO_PARTS;
  }

  folded(blockKey: string): FoldedBlock | undefined {
    return this.#folds?.get(blockKey);
  }

  onReplayEnd(callback: () => void): void {
    if (this.#replayed) this.#replayed.onEnd(callback);
    else callback();
  }

  branches(change: number): void {
    this.#workingBranches.change(change);
  }

  async sleepUntil(_key: string, instant: number, signal: AbortSignal, place: WaitPlace): Promise<void> {
    this.#replayed?.end();
    signal.throwIfAborted();
    if (instant > (this.#held.reached ?? Number.NEGATIVE_INFINITY))
      await this.#workingBranches.sleepUntil(instant, this.beginWait(place, instant), signal);
  }

  waitForSignal(...wait: Parameters<Journal['waitForSignal']>): Promise<TakenSignal | undefined> {
    this.#replayed?.end();
    this.#signals ??= new RunSignals(this.#dependencies, this, this.#held);
    return this.#signals.wait(...wait);
  }

  /** How many signals were stored for the execution, as far as the run knows. */
  get signalsSeen(): number {
    return this.#signalsSeen;
  }

  /** The names of the signals that the run waits for; undefined when there are too many. */
  get waitsFor(): readonly string[] | undefined {
    return this.#signals ? this.#signals.names : [];
  }

  /** @param signals - how many signals are stored for the execution now */
  setSignals(signals: number): void {
    if (signals <= this.#signalsSeen) return;
    this.#signalsSeen = signals;
    this.#signals?.look();
  }

  /** A branch waits. @returns a function to call at once when the branch continues */
  idle(wait: PendingWait): () => void {
    return this.#workingBranches.idle(wait);
  }

  beginWait(place: WaitPlace, until: number): PendingWait {
    return this.#workingBranches.beginWait(place, until);
  }

  /** ms in which no branch of the execution was at work, because all waited. */
  get waited(): number {
    const { handover, resumedAt } = this.#held;
    return Math.round(waitedBefore(handover, resumedAt) + (this.#branches?.waited ?? 0));
  }

  /** What this run leaves to the next one. @param suspendedAt - Unix ms, if all branches wait */
  handover(suspendedAt?: number): Handover {
    const { waits: waitingFor, omitted } = this.#workingBranches.waits(WAITS_IN_RECORD);
    const left = { waitingFor, omitted, waited: this.waited, usage: this.usage.total, components: this.components.all };
    return nextHandover(this.#held, { ...left, fold: this.#folds?.make(this.#signals?.passTaken()), suspendedAt });
  }

  readState(): MaybePromise<JsonObject | undefined> {
    return andThen(this.#dependencies.log.readState(this.#held.execution.ensemble), (state) => state?.value);
  }

  /**
   * Stores the end, with all deferred records. Later results of steps are dropped.
   * @param signals - stored with the end, for other executions
   * @throws JournalLostError
   */
  end(end: ExecutionEnd, signals?: readonly NewSignal[]): MaybePromise<CommitResult> {
    const { execution, startedAt } = this.#held;
    if (this.components.hasUnstored) this.components.takeNotes();
    const counted = lineOfEnd(execution, startedAt, end);
    return this.#commit({ ...this.#entryOf(this.close()), end, counted, ...(signals && { signals }) });
  }

  /** Suspends or releases the execution, with all deferred records. Later results of steps are dropped. @throws JournalLostError */
  release(release: Release): MaybePromise<CommitResult> {
    return this.#commit({ ...this.#entryOf(this.close()), release });
  }

  /** Later results of steps are dropped. @returns the deferred records */
  close(): StepRecord[] {
    this.#closed = true;
    return this.#takeDeferred();
  }

  #takeDeferred(): StepRecord[] {
    if (this.components.hasUnstored) for (const note of this.components.takeNotes()) this.#defer(note);
    const deferred = this.#deferred;
    this.#deferred = NO_RECORDS;
    return deferred;
  }

  /** Stores what is to be sent about the beginning. */
  #writeBeginning(outbox: Outbox, { execution, startedAt }: HeldExecution): void {
    const entry = outbox(this.#entryOf([]), execution, startedAt);
    if (entry.deliveries) this.#writeMeanwhile(entry);
  }

  /** A failure of this write is the failure of the next one. */
  #writeMeanwhile(entry: CommitEntry): void {
    const written = this.#commit(entry);
    if (!isPromise(written)) return;
    this.#background = written;
    written.then(
      () => {
        if (this.#background === written) this.#background = undefined;
      },
      () => {},
    );
  }

  #beginReplay(records: readonly StepRecord[]): void {
    const { fold } = this.#held;
    this.#replayed = new ReplayedRecords(records, fold && Object.keys(fold.blocks));
    for (const record of records) {
      if (!record.note) this.reported.add(record);
      else for (const notes of [this.usage, this.components]) notes.add(record);
    }
    this.reported.agents += fold?.agents ?? 0;
    this.usage.addUsage(fold?.usage);
  }

  #store(record: StepRecord | undefined, options: StepOptions, within?: RecordedTransaction): ReturnType<StoreRecord> {
    if (!record || this.#closed) return undefined;
    if (within) return this.#storeWithin(record, within);
    const final = record.retryAt === undefined;
    if (!final || record.attempts > 1) this.mark(markOfAttempt(record));
    if (options.state && final) return this.#storeWithState(record, options.state);
    if (this.#storesAtEnd || (options.last && final)) {
      if (!final) return record;
      this.#defer(record);
      return this.reported.add(record);
    }
    const stored = this.#commit(this.#entry(record));
    return isPromise(stored) ? stored.then(() => this.reported.add(record)) : this.reported.add(record);
  }

  /** Stores the result of a step in the transaction in which the step has written. @throws RefusedTransactionError */
  async #storeWithin(record: StepRecord, within: RecordedTransaction): Promise<StepRecord | undefined> {
    if (record.attempts > 1) this.mark(markOfAttempt(record));
    const deferred = this.#takeDeferred();
    try {
      await this.#commit(this.#entryOf([...deferred, record]), within);
    } catch (thrown) {
      for (const one of deferred) this.#defer(one);
      throw thrown;
    }
    return this.reported.add(record);
  }

  async #storeWithState(made: StepRecord, update: StateUpdate): Promise<StepRecord | undefined> {
    const { clock, log } = this.#dependencies;
    const { ensemble } = this.#held.execution;
    // Taken out at once: other steps may defer records while this step waits for the storage.
    const deferred = this.#takeDeferred();
    const stored = await storeWithState(made, update, {
      ...{ ensemble, clock, readState: () => log.readState(ensemble), isClosed: () => this.#closed },
      commit: (record, state) => this.#commit({ ...this.#entryOf([...deferred, record]), ...(state && { state }) }),
    });
    return stored && this.reported.add(stored);
  }

  #defer(record: StepRecord): void {
    if (this.#deferred === NO_RECORDS) this.#deferred = [record];
    else this.#deferred.push(record);
  }

  get #workingBranches(): WorkingBranches {
    this.#branches ??= new WorkingBranches(this.#dependencies.clock, this.#held.handover?.waitingFor, {
      onIdle: (earliest, pauses) => this.#suspend(earliest, pauses),
      onContinue: () => {
        this.mayRepeat = false;
      },
    });
    return this.#branches;
  }

  halt(): (() => void) | undefined {
    return this.#storesAtEnd ? undefined : this.#workingBranches.halt();
  }

  /** The execution is to be paused. */
  pause(): void {
    if (!this.#storesAtEnd) this.#workingBranches.pause();
  }

  #suspend(earliest: number, pauses: boolean): void {
    if (this.#storesAtEnd || this.#closed) return;
    const dueAt = Math.min(earliest, this.#held.execution.deadlineAt ?? earliest, NEVER);
    if (pauses || dueAt - this.#dependencies.clock.now() >= SUSPEND_FROM_MS) this.#suspendable.suspend(dueAt);
  }

  /** The entry of a record, with the deferred ones before it. */
  #entry(record: StepRecord): CommitEntry {
    if (this.#deferred === NO_RECORDS && !this.components.hasUnstored) return this.#entryOf([record]);
    const steps = this.#takeDeferred();
    steps.push(record);
    return this.#entryOf(steps);
  }

  #entryOf(steps: readonly StepRecord[]): CommitEntry {
    return { executionId: this.#held.execution.id, epoch: this.#held.epoch, steps };
  }

  #commit(entry: CommitEntry, within?: RecordedTransaction): MaybePromise<CommitResult> {
    if (this.#background) return this.#background.then(() => this.#write(entry, within));
    return this.#write(entry, within);
  }

  #write(entry: CommitEntry, within?: RecordedTransaction): MaybePromise<CommitResult> {
    this.#folds?.add(entry.steps);
    const sent = this.#outbox ? this.#outbox(entry, this.#held.execution) : entry;
    const result = within ? within.commit(sent) : this.#dependencies.log.write(sent);
    const written = isPromise(result)
      ? result.then(checkWritten, (thrown) => failWrite(thrown, entry))
      : checkWritten(result);
    if (!this.mayRepeat || entry.steps.length === 0) return written;
    return andThen(written, (answer) => {
      this.mayRepeat = false;
      return answer;
    });
  }
}
