/**
 * One execution at work in this process, until it ends or is given up.
 *
 * | what comes first | what is stored | the run here |
 * |---|---|---|
 * | its outcome | the end | gives its record |
 * | nothing is left but to wait | it waits until an instant, or for a signal | gone |
 * | the engine gives it back | another owner is to go on | gone |
 * | a write was refused: it is another owner's | nothing | gone |
 * | its outcome, which no storage can hold | an end without it, as failed | gives its record |
 * | the end can't be stored | nothing; the engine gives it back once the storage answers | rejects |
 */

import { isOrchestratorError, OrchestratorError } from '../../engine/errors.ts';
import { signalsOfEnd } from '../../engine/model/child.ts';
import type { Execution } from '../../engine/model/execution.ts';
import { toAgentRuns, toExecution } from '../../engine/model/execution-record.ts';
import type { ExecutionEnd, Release } from '../../engine/model/stored-execution.ts';
import type { ExecutionOutcome, InterpretedRun, Runnable } from '../../engine/ports/execution-engine.ts';
import { JournalLostError } from '../../engine/ports/journal.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { CommitResult } from '../../engine/ports/storage.ts';
import { EmbeddedJournal } from './embedded-journal.ts';
import type { HeldExecution } from './held-execution.ts';
import type { JournalParts } from './journal-parts.ts';

export class ActiveRun {
  readonly held: HeldExecution;
  readonly #parts: JournalParts;
  readonly #journal: EmbeddedJournal;
  readonly #run: InterpretedRun | undefined;
  /** The monotonic instant at which it began; undefined when that was in another process. */
  readonly began: number | undefined;
  /** The finished record; undefined when the run was given up here. Rejects when its end could not be stored. */
  readonly finished: Promise<Execution | undefined>;
  /** Where it was given up: the instant from which somebody is to go on. */
  dueAt: number | undefined;
  /** It was given up, and is to be freed by a write that is on its way. */
  #freed: MaybePromise<CommitResult> | undefined;
  #waitsFrom: number | undefined;
  #over = false;
  /** Where it stands among those at work. */
  place = 0;

  constructor(parts: JournalParts, held: HeldExecution, runnable: Runnable) {
    const { execution, resumed } = held;
    this.held = held;
    this.#parts = parts;
    this.began = held.began ?? (resumed ? undefined : parts.clock.monotonic());
    this.#journal = new EmbeddedJournal(parts, held, runnable.durability, this);
    const run = runnable.run(execution, this.#journal, held);
    this.#run = run;
    this.finished = run.outcome.then((outcome) => this.#conclude(outcome));
    if (this.#waitsFrom !== undefined) this.suspend(this.#waitsFrom);
  }

  /** How many results are stored of it, as far as this process knows. */
  get stored(): number {
    return this.#journal.kept.agents;
  }

  /** Nothing of it is at work, and it is to go on at an instant. */
  suspend(dueAt: number): void {
    // It may come to that before its run was handed over.
    if (this.#run === undefined) this.#waitsFrom = dueAt;
    else {
      const { heard, waitsFor } = this.#journal;
      this.#leave({ status: 'waiting', dueAt, signals: heard, ...(waitsFor && { waitsFor }) });
    }
  }

  /** So many signals have come for it by now. */
  hear(signals: number): void {
    // It is on its way out, and the signal makes it due where it is stored.
    if (this.dueAt !== undefined && signals > this.#journal.heard) this.dueAt = this.#parts.clock.now();
    this.#journal.hear(signals);
  }

  /** Stops it at its next step boundary. */
  cancel(): void {
    this.#run?.stop('cancelled');
  }

  /** Gives it back, so that another owner goes on at once. */
  async giveBack(): Promise<void> {
    this.#leave({ status: 'running', dueAt: this.#parts.clock.now() });
    await this.finished.catch(() => undefined);
  }

  /** Drops it: it is another owner's. */
  drop(): void {
    if (this.#over) return;
    this.#over = true;
    this.#journal.close();
    this.#run?.abandon();
  }

  #notStored(cause: unknown): OrchestratorError {
    const message = `the storage stored nothing of execution ${this.held.execution.id} any more (the log has its cause); the execution goes on behind its last stored result once the storage answers`;
    return new OrchestratorError('OVERLOADED', message, { cause, retryable: true });
  }

  #leave(release: Release): void {
    if (this.#over) return;
    this.#over = true;
    this.dueAt = release.dueAt;
    this.#freed = this.#journal.release(release);
    this.#run?.abandon();
  }

  #conclude({ status, output, error, cause }: ExecutionOutcome): MaybePromise<Execution | undefined> {
    if (this.#over) return this.#freed && Promise.resolve(this.#freed).then(NOTHING, (thrown) => this.#lose(thrown));
    this.#over = true;
    if (status === 'lost') {
      this.#journal.close();
      if (cause !== undefined) throw this.#notStored(cause);
      return undefined;
    }
    const { clock } = this.#parts;
    const finishedAt = clock.now();
    // Where another process ran a part of it, wall time is all that is known of it.
    const duration =
      this.began === undefined
        ? Math.max(0, finishedAt - this.held.startedAt)
        : Math.round(clock.monotonic() - this.began);
    const { agents } = this.#journal.kept;
    const end: ExecutionEnd = error
      ? { status, output, error, finishedAt, duration, agents }
      : { status, output, finishedAt, duration, agents };
    return this.#store(end);
  }

  #store(end: ExecutionEnd): MaybePromise<Execution | undefined> {
    try {
      const stored = this.#journal.end(end, signalsOfEnd(this.held.execution, end));
      if (!(stored instanceof Promise)) return this.#record(end);
      return stored.then(
        () => this.#record(end),
        (thrown) => this.#storeLess(end, thrown),
      );
    } catch (thrown) {
      return this.#storeLess(end, thrown);
    }
  }

  /** @param end - one that was not stored */
  #storeLess(end: ExecutionEnd, thrown: unknown): MaybePromise<Execution | undefined> {
    if (!isOrchestratorError(thrown, 'INVALID_OUTPUT') || (end.status === 'failed' && end.output === null))
      return this.#lose(thrown);
    const { code, message } = thrown;
    return this.#store({ ...end, status: 'failed', output: null, error: { code, message } });
  }

  #record(end: ExecutionEnd): Execution {
    const { execution, startedAt } = this.held;
    return toExecution(
      execution,
      { status: 'running', startedAt },
      end,
      toAgentRuns(this.#journal.kept.list),
      end.agents,
    );
  }

  /** What a refused write means: nothing, where it is another owner's now. */
  #lose(thrown: unknown): undefined {
    if (!(thrown instanceof JournalLostError)) throw this.#notStored(thrown);
    if (thrown.cause !== undefined) throw this.#notStored(thrown.cause);
    return undefined;
  }
}

const NOTHING = () => undefined;
