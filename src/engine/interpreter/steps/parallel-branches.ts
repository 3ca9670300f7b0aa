/** The active branches of a `parallel`: starts them, finds the branch that decides the block, and waits for cleanups. */

import type { CompiledBranch, CompiledParallelStep } from '../../compiled/compiled-ensemble.ts';
import { type CancellationScope, createChildScope } from '../cancellation-scope.ts';
import type { RunScope } from '../run-scope.ts';
import { ItemQueue } from './item-queue.ts';

/** A branch that began. */
export interface Branch {
  readonly place: number;
  readonly compiled: CompiledBranch;
  readonly scope: RunScope;
  readonly cancellation: CancellationScope;
  /** It reached its end without a failure that ends it. */
  succeeded: boolean;
}

type Walk = (branch: CompiledBranch, scope: RunScope) => Promise<boolean>;

export class ParallelBranches {
  /** Stops the branches. */
  readonly cancellation: CancellationScope;
  /** The scope of the block, around the branches. */
  readonly inside: RunScope;
  /** The branches that began. */
  readonly branches: Branch[] = [];
  /** Resolves when the block is done. Rejects with an error that ends the run. */
  readonly done: Promise<void>;
  /** The branch that was first, once there is one; undefined when the block waits for all. */
  winner: Branch | undefined;
  /** The branch that failed the block. */
  failed: Branch | undefined;
  /** Whether a failure ended the block while other branches were active: how far they got is chance. */
  isCutShort = false;
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
  #closed = false;
  #handedOver = false;

  constructor(step: CompiledParallelStep, scope: RunScope, key: string, walk: Walk) {
    this.#step = step;
    this.#scope = scope;
    this.#walk = walk;
    const { cancellation, release } = createChildScope(scope.cancellation);
    this.cancellation = cancellation;
    this.inside = scope.fork(cancellation);
    this.#release = release;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const { run } = scope;
    // A decided race is done when its cleanups are.
    this.#forgetClosed = run.onClosed(() => {
      if (!this.winner) return;
      this.#cancelTimer();
      this.#cancelTimer = run.ports.clock.setTimer(0, () => this.#finish(false));
    });
    this.#queue = new ItemQueue(run, key, step.branches.length, step.concurrency);
    const first = Math.max(this.#queue.begun, Math.min(step.concurrency, step.branches.length));
    this.#working = first;
    run.journal.branches(first - 1);
    for (let i = 0; i < first; i++) this.#begin();
  }

  /** The block is done: later results of branches are dropped. */
  close(): void {
    this.#closed = true;
    this.#forgetClosed();
    this.#cancelTimer();
    this.#queue.close();
    if (this.winner || this.failed) this.cancellation.stop('abandoned');
    this.#release();
    this.cancellation.close();
    // The flow continues while some branches may still ignore their abort signal.
    if (!this.#handedOver) this.#scope.run.journal.branches(1);
    this.#handedOver = true;
  }

  #begin(): void {
    const place = this.#queue.take();
    const compiled = this.#step.branches[place] as CompiledBranch;
    const { cancellation, release } = createChildScope(this.cancellation);
    const scope = this.inside.fork(cancellation, this.#scope.keyPrefix, [...this.#scope.results]);
    scope.handled = new Set();
    scope.isApart = true;
    const replayed = this.#queue.follow(place, scope);
    const branch: Branch = { place, compiled, scope, cancellation, succeeded: false };
    this.branches.push(branch);
    this.#walk(compiled, scope).then(
      (reachedEnd) => {
        this.#settle(branch, reachedEnd);
        release();
        replayed();
      },
      (thrown) => {
        // What broke one branch, such as a lost journal, stops the other branches too, and every `finally`.
        scope.run.exit.stop('abandoned');
        this.cancellation.stop('abandoned');
        this.#reject(thrown);
      },
    );
  }

  #settle(branch: Branch, reachedEnd: boolean): void {
    if (!this.#closed) this.#judge(branch, reachedEnd);
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

  /** Begins the branches that had to wait for the replay of others. */
  #fill(): void {
    while (this.#mayBegin() && this.#working < this.#step.concurrency) {
      this.#working += 1;
      this.#scope.run.journal.branches(1);
      this.#begin();
    }
  }

  #mayBegin(): boolean {
    if (this.#closed || this.winner || this.failed || this.cancellation.reason !== undefined) return false;
    return !this.#queue.isEmpty;
  }

  /** @param inPlace - the flow, which waits for the block, takes the place of a branch @returns whether the block is done */
  #finish(inPlace: boolean): boolean {
    if (this.#handedOver) return false;
    const isAtEnd = this.#working === 0 && !this.#mayBegin();
    if (!isAtEnd && !(this.winner && this.inside.cleanups === 0 && !this.#queue.isReplaying)) return false;
    if (this.#step.waitFor === 'any' && !this.winner && this.cancellation.reason === undefined) {
      // No branch won: the block has the failure of the first failed branch in the order of the definition.
      const failed = this.branches.filter(({ scope }) => (scope.failures?.length ?? 0) > 0);
      this.failed = failed.sort((a, b) => a.place - b.place)[0];
    }
    this.#handedOver = true;
    if (!inPlace) this.#scope.run.journal.branches(1);
    this.#resolve();
    return true;
  }

  #judge(branch: Branch, reachedEnd: boolean): void {
    const isStopped = branch.cancellation.reason !== undefined;
    const waiting = branch.scope.failures?.length ?? 0;
    const hasFailed = !reachedEnd && waiting > 0 && !isStopped;
    branch.succeeded = reachedEnd;
    if (this.winner || this.failed || (!reachedEnd && !hasFailed)) return;
    const { waitFor } = this.#step;
    // A branch with a failure that is pending for a guard after the block has not succeeded.
    const wins = waitFor === 'first' || (waitFor === 'any' && waiting === 0);
    if (waitFor === 'all' ? hasFailed : wins && mayWin(branch, waitFor)) {
      if (waitFor !== 'all') this.winner = branch;
      if (hasFailed) this.failed = branch;
      this.isCutShort = hasFailed && this.#step.concurrency > 1 && (this.#working > 1 || !this.#queue.isEmpty);
      this.#scope.run.whenReplayed(() => {
        this.cancellation.stop('abandoned');
        this.#finish(false);
      });
    }
  }
}

/** A branch whose only step was skipped did not run, and can't win. A branch whose only step failed has not succeeded, handled or not. */
function mayWin({ compiled, scope }: Branch, waitFor: 'any' | 'first'): boolean {
  const own = compiled.slots.find(({ name }) => name === compiled.label);
  const status = own && scope.results[own.slot]?.status;
  return status !== 'skipped' && !(status === 'failed' && waitFor === 'any');
}
