/** The branches of a `parallel` at work: which of them begin, which one decides, and which ones clean up. */

import type { CompiledBranch, CompiledParallelStep } from '../definition/compiled-ensemble.ts';
import type { MaybePromise } from '../ports/operation.ts';
import { type Halt, innerHalt } from './halt.ts';
import { ItemQueue } from './item-queue.ts';
import type { RunScope } from './run-scope.ts';

/** A branch that began. */
export interface Branch {
  readonly place: number;
  readonly compiled: CompiledBranch;
  readonly scope: RunScope;
  readonly halt: Halt;
  /** It came to its end without a failure that ends it. */
  succeeded: boolean;
}

type Walk = (branch: CompiledBranch, scope: RunScope) => MaybePromise<boolean>;

export class ParallelBranches {
  /** Stops the branches. */
  readonly halt: Halt;
  /** The stretch in which the branches are. */
  readonly inside: RunScope;
  /** Those that began. */
  readonly branches: Branch[] = [];
  /** Resolves when the block is done. Rejects with what breaks the run. */
  readonly done: Promise<void>;
  /** The one that was waited for; undefined where all are. */
  winner: Branch | undefined;
  /** The one that failed the block. */
  failed: Branch | undefined;
  readonly #step: CompiledParallelStep;
  readonly #scope: RunScope;
  readonly #walk: Walk;
  readonly #queue: ItemQueue;
  readonly #release: () => void;
  readonly #forgetClosed: () => void;
  #cancelTimer: () => void = () => {};
  #resolve: () => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #working = 0;
  #decided = false;
  #closed = false;
  #isCutShort = false;
  #handedOver = false;

  constructor(step: CompiledParallelStep, scope: RunScope, key: string, walk: Walk) {
    this.#step = step;
    this.#scope = scope;
    this.#walk = walk;
    const { halt, release } = innerHalt(scope.halt);
    this.halt = halt;
    this.inside = scope.stretch(halt);
    this.#release = release;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const { run } = scope;
    // A race that is decided is done when what cleans up in it is.
    this.#forgetClosed = run.onClosed(() => {
      if (!this.#decided) return;
      this.#cancelTimer();
      this.#cancelTimer = run.ports.clock.setTimer(0, () => this.#finish(false));
    });
    const begun = begunBefore(step, scope, key);
    this.#queue = new ItemQueue(run, step.branches.length, begun);
    const first = Math.max(begun.length, Math.min(step.concurrency, step.branches.length));
    this.#working = first;
    run.journal.branches(first - 1);
    for (let i = 0; i < first; i++) this.#begin();
  }

  /** Whether a failure ended it while others were at work: how far they had come is chance. */
  get isCutShort(): boolean {
    return this.#isCutShort;
  }

  /** The block is done: what branches still give goes nowhere. */
  close(): void {
    this.#closed = true;
    this.#forgetClosed();
    this.#cancelTimer();
    this.#queue.close();
    if (this.#decided || this.failed) this.halt.stop('abandoned');
    this.#release();
    this.halt.close();
    // The flow goes on beside those that ignore their signal.
    if (!this.#handedOver) this.#scope.run.journal.branches(1);
    this.#handedOver = true;
  }

  #begin(): void {
    const place = this.#queue.take();
    const compiled = this.#step.branches[place] as CompiledBranch;
    const { halt, release } = innerHalt(this.halt);
    const scope = this.inside.stretch(halt, this.#scope.keyPrefix, [...this.#scope.results]);
    scope.handled = new Set();
    scope.isApart = true;
    const recalled = this.#queue.follow(place, scope);
    const branch: Branch = { place, compiled, scope, halt, succeeded: false };
    this.branches.push(branch);
    Promise.resolve(this.#walk(compiled, scope)).then(
      (goesOn) => {
        this.#settle(branch, goesOn);
        release();
        recalled();
      },
      (thrown) => {
        // What breaks one, such as a store that is gone, breaks those beside it too, and all that cleans up.
        scope.run.givenUp.stop('abandoned');
        this.halt.stop('abandoned');
        this.#reject(thrown);
      },
    );
  }

  #settle(branch: Branch, goesOn: boolean): void {
    if (!this.#closed) this.#judge(branch, goesOn);
    this.#working -= 1;
    if (this.#mayBegin()) {
      if (this.#queue.mustWait) this.#queue.wait().then(() => this.#fill());
      else {
        this.#working += 1;
        this.#begin();
        return;
      }
    }
    if (!this.#finish(true)) this.#scope.run.journal.branches(-1);
  }

  /** Begins what had to wait for those that were begun before. */
  #fill(): void {
    while (this.#mayBegin() && this.#working < this.#step.concurrency) {
      this.#working += 1;
      this.#scope.run.journal.branches(1);
      this.#begin();
    }
  }

  #mayBegin(): boolean {
    const isOver = this.#closed || this.#decided || this.failed !== undefined || this.halt.reason !== undefined;
    return !isOver && !this.#queue.isEmpty;
  }

  /** @param inPlace - the flow that waits for the block takes the place of a branch @returns whether the block is done */
  #finish(inPlace: boolean): boolean {
    if (this.#handedOver) return false;
    const isAtEnd = this.#working === 0 && !this.#mayBegin();
    if (!isAtEnd && !(this.#decided && this.inside.cleanups === 0 && !this.#queue.isRecalling)) return false;
    if (this.#step.waitFor === 'any' && !this.winner && this.halt.reason === undefined) {
      // Nobody won: the failure of the first one in order stands for all.
      const failed = this.branches.filter(({ scope }) => (scope.failures?.length ?? 0) > 0);
      this.failed = failed.sort((a, b) => a.place - b.place)[0];
    }
    this.#handedOver = true;
    if (!inPlace) this.#scope.run.journal.branches(1);
    this.#resolve();
    return true;
  }

  #judge(branch: Branch, goesOn: boolean): void {
    const isStopped = branch.halt.reason !== undefined;
    const waiting = branch.scope.failures?.length ?? 0;
    const hasFailed = !goesOn && waiting > 0 && !isStopped;
    branch.succeeded = goesOn;
    if (this.#decided || this.failed || (!goesOn && !hasFailed)) return;
    const { waitFor } = this.#step;
    // One that waits for a guard behind the block has failed: it is no success.
    const wins = waitFor === 'first' || (waitFor === 'any' && waiting === 0);
    if (waitFor === 'all' ? hasFailed : wins && mayWin(branch, waitFor)) {
      this.#decided = waitFor !== 'all';
      if (this.#decided) this.winner = branch;
      if (hasFailed) this.failed = branch;
      this.#isCutShort = hasFailed && this.#step.concurrency > 1 && (this.#working > 1 || !this.#queue.isEmpty);
      this.#scope.run.whenRecalled(() => {
        this.halt.stop('abandoned');
        this.#finish(false);
      });
    }
  }
}

/** In a run that is taken up again: the branches of which something is stored, and those that began with the block. */
function begunBefore(step: CompiledParallelStep, scope: RunScope, key: string): readonly number[] {
  const { run } = scope;
  const { journal } = run;
  if (run.isLive && !journal.recalls(key)) return [];
  const places = [...step.branches.keys()];
  return places.filter((place) => place < step.concurrency || journal.recalls(`${key}[${place}]`));
}

/** One whose only step was skipped has not run: it wins nothing. One whose only step failed is no success, handled or not. */
function mayWin({ compiled, scope }: Branch, waitFor: 'any' | 'first'): boolean {
  const own = compiled.slots.find(({ name }) => name === compiled.label);
  const status = own && scope.results[own.slot]?.status;
  return status !== 'skipped' && !(status === 'failed' && waitFor === 'any');
}
