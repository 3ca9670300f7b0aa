/**
 * One execution that runs in this process.
 *
 * | how its run ends here | what is stored | `finished` |
 * |---|---|---|
 * | completed, failed, cancelled or timed out | the end | resolves with the record |
 * | an outcome that no storage can hold | an end without output, as failed | resolves with the record |
 * | suspended: all that is left is to wait | that it waits until an instant, or for a signal | resolves with undefined |
 * | released: the engine hands it back | that another worker may resume it now | resolves with undefined |
 * | lost: a write was refused, because another worker holds the execution | nothing | resolves with undefined |
 * | the storage does not answer | nothing; the engine releases it once the storage answers | rejects |
 */

import { isOrchestratorError, OrchestratorError } from '../base/errors.ts';
import { andThen, type MaybePromise } from '../base/maybe-promise.ts';
import { signalsOfEnd } from '../execution/child.ts';
import type { Execution } from '../execution/execution.ts';
import type { ExecutionOutcome, InterpretedRun, LoadedDefinition } from '../execution/execution-engine.port.ts';
import { toAgentResults, toExecution } from '../execution/execution-record.ts';
import { JournalLostError } from '../execution/journal.port.ts';
import { changesOf, type ExecutionEnd, type Handover, type Release } from '../execution/stored-execution.ts';
import type { CommitResult } from '../storage/storage.port.ts';
import type { HeldExecution } from './held-execution.ts';
import { type RunDependencies, RunJournal } from './run-journal.ts';

/** Runs one execution over a run log. An engine creates one for each execution that it runs. */
export class ActiveRun<Held extends HeldExecution = HeldExecution> {
  readonly held: Held;
  readonly #dependencies: RunDependencies;
  readonly #journal: RunJournal;
  readonly #run: InterpretedRun | undefined;
  /** The monotonic instant at which it began; undefined when it began in another process. */
  readonly began: number | undefined;
  /** The finished record; undefined when the run was suspended, released or lost. Rejects when its end could not be stored. */
  readonly finished: Promise<Execution | undefined>;
  /** Set when it was suspended or released: Unix ms at which it is to be resumed. */
  dueAt: number | undefined;
  /** Whether it was suspended. */
  isSuspended = false;
  /** The write that suspends or releases it. */
  #releaseWrite: Promise<CommitResult> | undefined;
  #suspendAt: number | undefined;
  #over = false;
  /** Its index among the active runs. */
  place = 0;

  constructor(dependencies: RunDependencies, held: Held, loaded: LoadedDefinition) {
    const { execution, resumed } = held;
    this.held = held;
    this.#dependencies = dependencies;
    this.began = held.began ?? (resumed ? undefined : dependencies.clock.monotonic());
    this.#journal = new RunJournal(dependencies, held, loaded, this);
    const run = loaded.run(execution, this.#journal, held);
    this.#run = run;
    this.finished = run.outcome.then((outcome) => this.#conclude(outcome));
    if (this.#suspendAt !== undefined) this.suspend(this.#suspendAt);
  }

  /** How many of its results are stored, as far as this process knows. */
  get stored(): number {
    return this.#journal.reported.agents;
  }

  /** Suspends it. @param dueAt - Unix ms at which it is to be resumed */
  suspend(dueAt: number): void {
    // The journal may call this before `loaded.run` has returned.
    if (this.#run === undefined) this.#suspendAt = dueAt;
    else {
      const { signalsSeen: signals, waitsFor } = this.#journal;
      const handover = this.#handover(this.#dependencies.clock.now());
      this.isSuspended ||= !this.#over;
      this.#leave({ status: 'waiting', dueAt, signals, handover, ...(waitsFor && { waitsFor }) });
    }
  }

  /** @param signals - how many signals are stored for it now */
  setSignals(signals: number): void {
    // It is being suspended: the signal makes it due in the storage.
    if (this.dueAt !== undefined && signals > this.#journal.signalsSeen) this.dueAt = this.#dependencies.clock.now();
    this.#journal.setSignals(signals);
  }

  /** Stops it at its next step boundary. @param atOnce - ends it now, and drops the result of the current step */
  cancel(atOnce = false): void {
    this.#run?.stop('cancelled', atOnce);
  }

  /** Pauses it after its current steps. */
  pause(): void {
    this.#run?.stop('paused');
    this.#journal.pause();
  }

  /** Releases it, so that another worker resumes it at once. */
  async release(): Promise<void> {
    this.#leave({ status: 'running', dueAt: this.#dependencies.clock.now(), handover: this.#handover() });
    await this.finished.catch(() => undefined);
  }

  #handover(suspendedAt?: number): Handover {
    const handover = this.#journal.handover(suspendedAt);
    const trace = this.#run?.trace;
    return trace === undefined ? handover : { ...handover, trace };
  }

  /** Stops it without a write: another worker holds the execution. */
  lose(): void {
    if (this.#over) return;
    this.#over = true;
    this.#journal.close();
    this.#run?.abandon();
  }

  #notStored(cause: unknown): OrchestratorError {
    const message = `the storage no longer stores the results of execution ${this.held.execution.id} (the log has the cause); the execution continues after its last stored result once the storage answers`;
    return new OrchestratorError('OVERLOADED', message, { cause, retryable: true });
  }

  #leave(release: Release): void {
    if (this.#over) return;
    this.#over = true;
    this.dueAt = release.dueAt;
    // A failure of this write is handled when the run is concluded, which a step may delay.
    const written = new Promise<CommitResult>((resolve) => resolve(this.#journal.release(release)));
    written.catch(() => undefined);
    this.#releaseWrite = written;
    this.#run?.abandon();
  }

  #conclude({ status, output, error, cause }: ExecutionOutcome): MaybePromise<Execution | undefined> {
    if (this.#over) return this.#releaseWrite?.then(NOTHING, (thrown) => this.#checkLost(thrown));
    this.#over = true;
    if (status === 'lost') {
      this.#journal.close();
      if (cause !== undefined) throw this.#notStored(cause);
      return undefined;
    }
    const { clock } = this.#dependencies;
    // Where it began in another process, the clocks may differ.
    const finishedAt = Math.max(clock.now(), this.held.startedAt);
    // When another process ran a part of it, wall time is all that is known.
    const duration =
      this.began === undefined ? finishedAt - this.held.startedAt : Math.round(clock.monotonic() - this.began);
    const { waited, reported, usage, components } = this.#journal;
    const changes = changesOf(this.held.handover);
    const { agents } = reported;
    const end: ExecutionEnd = error
      ? { status, output, error, finishedAt, duration, agents }
      : { status, output, finishedAt, duration, agents };
    if (waited === 0 && usage.total === undefined && components.all === undefined && !changes) return this.#store(end);
    return this.#store({
      ...end,
      ...(waited > 0 && { waited }),
      ...(usage.total && { usage: usage.total }),
      ...(components.all && { components: components.all }),
      ...changes,
    });
  }

  #store(end: ExecutionEnd): MaybePromise<Execution | undefined> {
    try {
      return andThen(
        this.#journal.end(end, signalsOfEnd(this.held.execution, end)),
        () => (this.held.fold ? this.#readRecord(end) : this.#record(end)),
        (thrown) => this.#storeWithoutOutput(end, thrown),
      );
    } catch (thrown) {
      return this.#storeWithoutOutput(end, thrown);
    }
  }

  /** @param end - an end that the storage refused */
  #storeWithoutOutput(end: ExecutionEnd, thrown: unknown): MaybePromise<Execution | undefined> {
    if (!isOrchestratorError(thrown, 'INVALID_OUTPUT') || (end.status === 'failed' && end.output === null))
      return this.#checkLost(thrown);
    const { code, message } = thrown;
    return this.#store({ ...end, status: 'failed', output: null, error: { code, message } });
  }

  /** The record of an execution of which this run has not read all. */
  #readRecord(end: ExecutionEnd): MaybePromise<Execution> {
    const { executions } = this.#dependencies.log;
    // The end is stored: a read that fails must not hide it.
    const own = () => this.#record(end);
    return andThen(executions?.get(this.held.execution.id), (stored) => stored ?? own(), own);
  }

  #record(end: ExecutionEnd): Execution {
    const { execution, startedAt, recoveries } = this.held;
    return toExecution(
      execution,
      { status: 'running', startedAt, recoveries },
      end,
      toAgentResults(this.#journal.reported.list),
      end.agents,
    );
  }

  /** A write failed. @returns undefined when another worker holds the execution; throws otherwise */
  #checkLost(thrown: unknown): undefined {
    if (!(thrown instanceof JournalLostError)) throw this.#notStored(thrown);
    if (thrown.cause !== undefined) throw this.#notStored(thrown.cause);
    return undefined;
  }
}

const NOTHING = () => undefined;
