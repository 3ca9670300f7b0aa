/** The scope of one level or fork of a run: its results, its pending failures, and its cancellation scope. */

import type { Json } from '../base/json/json.ts';
import { countedBytes } from '../base/json/measure-json.ts';
import type { CompiledList } from '../compiled/compiled-ensemble.ts';
import { ExpressionScope, type NameResult } from '../compiled/expression-scope.ts';
import type { NameSlot } from '../compiled/name-slot.ts';
import type { ExecutionError } from '../execution/execution.ts';
import type { CancellationScope } from './cancellation-scope.ts';
import type { Run } from './run.ts';

const NONE: readonly PendingFailure[] = [];
/** Smaller results of names are not counted. */
const MIN_BYTES = 256;

/** A failure that a later guard may still handle. */
export interface PendingFailure {
  /** The names whose guards handle it: the agent's, and those of the route and the blocks around it. */
  readonly slots: readonly NameSlot[];
  readonly error: ExecutionError;
  /** Its number among the failures of the run, counted from 1; set by `fail`. */
  place?: number;
}

/** A prompt that a route chose. */
export interface RoutedPrompt {
  readonly text: string;
  /** Whether the text refers to a component. */
  readonly isReference: boolean;
}

/** The sizes of the results of one level, by slot and in total: they count towards what the run holds. */
class HeldSizes {
  readonly #bySlot: number[];
  /** What was counted here; without what a copy took over. */
  #total = 0;

  constructor(bySlot: number[] = []) {
    this.#bySlot = bySlot;
  }

  /** @returns the change of the total */
  set(slot: number, bytes: number): number {
    const change = bytes - this.of(slot);
    this.#bySlot[slot] = bytes;
    this.#total += change;
    return change;
  }

  of(slot: number): number {
    return this.#bySlot[slot] ?? 0;
  }

  /** A copy for a concurrent branch, whose additions count separately. */
  copy(): HeldSizes {
    return new HeldSizes([...this.#bySlot]);
  }

  /** Resets the total. @returns the total before */
  take(): number {
    const total = this.#total;
    this.#total = 0;
    return total;
  }
}

/** The scope of one level or fork: its results, its pending failures, and its cancellation scope. */
export class RunScope extends ExpressionScope {
  declare readonly run: Run;
  declare readonly parent: RunScope | undefined;
  /** The scope that led here. A fork has the results of its level or a copy of them, and its own failures and prompts. */
  readonly outer: RunScope | undefined;
  readonly cancellation: CancellationScope;
  failures: PendingFailure[] | undefined;
  /** The latest failure at this level that no attempt of an agent caused. It may be handled, and its step may have no name. */
  lastMarked: ExecutionError | undefined;
  /** Called when a step of this scope, or inside it, asks for a record that is not stored. */
  onReplayEnd: (() => void) | undefined;
  /** How many steps with a `finally` are active in this scope, or inside it. */
  cleanups = 0;
  /** How many blocks are active in this scope, or inside it, that end by themselves when they are stopped. */
  #blocks = 0;
  /** For a branch or an item: names outside it whose failures its steps handled. They take effect when the block is done. */
  handled: Set<string> | undefined;
  /** Sizes of its results; a fork that shares the results of its level shares the sizes too. */
  sizes: HeldSizes | undefined;
  /** Whether a failure outside this scope does not end it, because a step that runs again or concurrently may still handle it. */
  isApart: boolean;
  /** Whether it is the scope of a `finally`: guards inside it handle no failure outside of it. */
  isCleanup = false;
  /** The body of the nearest `try` with a `catch` around this scope: guards outside it do not check failures inside. */
  caughtBy: CompiledList | undefined;
  /** The prompt that a route of this level chose, for the next `think` without a prompt. */
  prompt: RoutedPrompt | undefined;

  constructor(
    run: Run,
    parent: RunScope | undefined,
    slots: number,
    cancellation: CancellationScope,
    keyPrefix = '',
    item: Json = null,
    index = 0,
    outer = parent,
  ) {
    super(run, parent, slots, keyPrefix, item, index);
    this.outer = outer;
    this.cancellation = cancellation;
    this.failures = undefined;
    this.lastMarked = undefined;
    this.prompt = undefined;
    this.onReplayEnd = undefined;
    this.handled = undefined;
    this.caughtBy = outer === undefined ? undefined : outer.caughtBy;
    this.isApart = false;
    this.sizes = undefined;
  }

  /** Whether blocks are active in this scope that end by themselves when they are stopped. */
  get hasBlocks(): boolean {
    return this.#blocks > 0;
  }

  /** A block begins in this scope. @param cleansUp - it has a `finally` @returns a function to call when the block is over */
  openBlock(cleansUp: boolean): () => void {
    const count = (change: 1 | -1) => {
      this.run.blocks += change;
      for (let level: RunScope | undefined = this; level; level = level.outer) {
        level.#blocks += change;
        if (cleansUp) level.cleanups += change;
      }
    };
    count(1);
    return () => {
      count(-1);
      this.run.closed();
    };
  }

  /** Creates a scope for a part of this level that runs on its own. @param results - a copy, for a part that runs concurrently */
  fork(cancellation: CancellationScope, keyPrefix = this.keyPrefix, results = this.results): RunScope {
    const inner = new RunScope(this.run, this.parent, 0, cancellation, keyPrefix, this.item, this.index, this);
    inner.results = results;
    this.sizes ??= new HeldSizes();
    inner.sizes = results === this.results ? this.sizes : this.sizes.copy();
    inner.state = this.state;
    inner.caught = this.caught;
    inner.lastCommitAt = this.lastCommitAt;
    return inner;
  }

  /** Sets the result of a name. @param bytes - size of the output; 0 for an output that is counted elsewhere */
  put(slot: number, result: NameResult | undefined, bytes: number): void {
    this.results[slot] = result;
    if (this.run.keepsAll) {
      if (bytes > 0) this.run.hold(bytes);
      return;
    }
    // A level has at most a thousand names, so counting small results is not worth its cost.
    if (bytes < MIN_BYTES && this.sizes === undefined) return;
    this.sizes ??= new HeldSizes();
    this.run.hold(this.sizes.set(slot, bytes));
  }

  /** Size of the latest output of this level. */
  get lastSize(): number {
    const { lastOutput, results, sizes } = this;
    if (typeof lastOutput === 'number') return 0;
    if (sizes !== undefined && typeof lastOutput === 'object' && lastOutput !== null) {
      for (let slot = 0; slot < results.length; slot++) {
        if (results[slot]?.output === lastOutput && sizes.of(slot) > 0) return sizes.of(slot);
      }
    }
    return countedBytes(lastOutput);
  }

  /** This scope is over: its results no longer count. */
  release(): void {
    if (this.sizes !== undefined) this.run.hold(-this.sizes.take());
  }

  /** Continues where a fork ended, with its pending failures. */
  absorb(fork: RunScope): void {
    this.lastOutput = fork.lastOutput;
    this.lastCommitAt = fork.lastCommitAt;
    if (fork.prompt !== undefined) this.prompt = fork.prompt;
    for (const failure of fork.takeFailures()) this.fail(failure);
  }

  /** Removes the pending failures and returns them. */
  takeFailures(): readonly PendingFailure[] {
    const taken = this.failures ?? NONE;
    this.failures = undefined;
    this.run.unhandled -= taken.length;
    return taken;
  }

  /** A step asks for a record that is not stored. @returns a promise to wait for before the step begins, if any */
  endReplay(): Promise<void> | undefined {
    const { run } = this;
    if (run.replaying === 0) return undefined;
    for (let level: RunScope | undefined = this; level; level = level.outer) level.onReplayEnd?.();
    if (run.replaying === 0) return undefined;
    return new Promise((resolve) => run.whenReplayed(resolve));
  }

  /** The prompt for a `think` at this level: chosen by a route here, or in a scope around it. */
  findPrompt(): RoutedPrompt | undefined {
    for (let level: RunScope | undefined = this; level; level = level.outer) {
      if (level.prompt !== undefined) return level.prompt;
    }
    return undefined;
  }

  /** Removes the prompt after its use: the next `think` needs another. */
  takePrompt(): void {
    for (let level: RunScope | undefined = this; level; level = level.outer) {
      if (level.prompt === undefined) continue;
      level.prompt = undefined;
      return;
    }
  }

  /** Adds a pending failure. */
  fail(failure: PendingFailure): void {
    if (!this.failures) this.failures = [];
    failure.place ??= ++this.run.failed;
    this.failures.push(failure);
    this.run.unhandled += 1;
  }

  /** Marks the failures of a name as handled. @param since - how many failures the run had when the guard was evaluated */
  handle(slot: NameSlot, since: number): void {
    if (this.failures) this.#settle(({ slots, place = 0 }) => place <= since && slots.includes(slot));
    if (this.handled) this.handled.add(slot.name);
    else if (!this.isCleanup) this.outer?.handle(slot, since);
  }

  /** The same by name, for all that a block handled. */
  handleNames(names: ReadonlySet<string>): void {
    if (names.size === 0) return;
    this.#settle(({ slots }) => slots.some(({ name }) => names.has(name)));
    if (this.handled) for (const name of names) this.handled.add(name);
    else if (!this.isCleanup) this.outer?.handleNames(names);
  }

  #settle(isHandled: (failure: PendingFailure) => boolean): void {
    const open = this.failures ?? NONE;
    if (open.length === 0) return;
    this.failures = open.filter((failure) => !isHandled(failure));
    this.run.unhandled -= open.length - this.failures.length;
  }
}
