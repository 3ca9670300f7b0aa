/** One stretch of a run at work: its names, the failures that wait in it, and what stops it. */

import type { CompiledList } from '../definition/compiled-ensemble.ts';
import type { NameSlot } from '../definition/names.ts';
import { type NameResult, Scope } from '../definition/scope.ts';
import { type Json, sizeOfJson } from '../json.ts';
import type { ExecutionError } from '../model/execution.ts';
import type { Halt } from './halt.ts';
import { HeldSizes } from './held-sizes.ts';
import type { Run } from './run.ts';

const NONE: readonly Failure[] = [];
/** A result that counts less is not counted where a name holds it. */
const LEAST_BYTES = 256;

/** A failure that waits for a guard. */
export interface Failure {
  /** Names whose guards handle it: the agent's, and those of the router and the blocks that led to it. */
  readonly slots: readonly NameSlot[];
  readonly error: ExecutionError;
  /** Its place among the failures of the run, counted from 1; given when it is noted. */
  place?: number;
}

/** One stretch of the flow at work: its names, its failures, and what stops it. */
export class RunScope extends Scope {
  declare readonly run: Run;
  declare readonly parent: RunScope | undefined;
  /** The stretch that led here. Its names are this one's own or those around it; its failures and prompts are apart. */
  readonly outer: RunScope | undefined;
  readonly halt: Halt;
  failures: Failure[] | undefined;
  /** Called when something of the level, or inside it, is asked for that is not stored. */
  onLive: (() => void) | undefined;
  /** Steps with a `finally` at work in it, or inside it. */
  cleanups = 0;
  /** All blocks at work in it, or inside it, that end by themselves when they are stopped. */
  #blocks = 0;
  /** Of a branch or an item: the names around it whose failures its steps handled. They count when the block does. */
  handled: Set<string> | undefined;
  /** What its results count; of a stretch that shares the results of its level, those of the level. */
  sizes: HeldSizes | undefined;
  /** What failed outside of it does not end it: what may still handle that comes once more, or beside it. */
  isApart: boolean;
  /** The body of the nearest `try` with a `catch` around it: no guard outside that is asked about what fails in it. */
  caughtBy: CompiledList | undefined;
  /** The prompt that a route of this level chose, for the next `think` that names none. */
  prompt: string | undefined;

  constructor(
    run: Run,
    parent: RunScope | undefined,
    slots: number,
    halt: Halt,
    keyPrefix = '',
    item: Json = null,
    index = 0,
    outer = parent,
  ) {
    super(run, parent, slots, keyPrefix, item, index);
    this.outer = outer;
    this.halt = halt;
    this.failures = undefined;
    this.prompt = undefined;
    this.onLive = undefined;
    this.handled = undefined;
    this.caughtBy = outer === undefined ? undefined : outer.caughtBy;
    this.isApart = false;
    this.sizes = undefined;
  }

  /** Whether blocks are at work in it that end by themselves when they are stopped. */
  get hasBlocks(): boolean {
    return this.#blocks > 0;
  }

  /** A block begins in it. @param cleansUp - it has a `finally` @returns tells that it is over */
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

  /** A stretch of this level that is walked on its own. @param results - its own copy, for one that runs beside others */
  stretch(halt: Halt, keyPrefix = this.keyPrefix, results = this.results): RunScope {
    const inner = new RunScope(this.run, this.parent, 0, halt, keyPrefix, this.item, this.index, this);
    inner.results = results;
    this.sizes ??= new HeldSizes();
    inner.sizes = results === this.results ? this.sizes : this.sizes.copy();
    inner.state = this.state;
    inner.caught = this.caught;
    inner.lastCommitAt = this.lastCommitAt;
    return inner;
  }

  /** Gives a name its result. @param bytes - what the output counts; 0 for one that is counted elsewhere */
  put(slot: number, result: NameResult | undefined, bytes: number): void {
    this.results[slot] = result;
    if (this.run.keepsAll) {
      if (bytes > 0) this.run.hold(bytes);
      return;
    }
    // A level has a thousand names at most: small results are not worth the counting.
    if (bytes < LEAST_BYTES && this.sizes === undefined) return;
    this.sizes ??= new HeldSizes();
    this.run.hold(this.sizes.set(slot, bytes));
  }

  /** What the latest output of this level counts, by itself. */
  get lastSize(): number {
    const { lastOutput, results, sizes } = this;
    if (typeof lastOutput === 'number') return 0;
    if (sizes !== undefined && typeof lastOutput === 'object' && lastOutput !== null) {
      for (let slot = 0; slot < results.length; slot++) {
        if (results[slot]?.output === lastOutput && sizes.of(slot) > 0) return sizes.of(slot);
      }
    }
    return sizeOfJson(lastOutput);
  }

  /** It is over: what is in its results is held no more. */
  release(): void {
    if (this.sizes !== undefined) this.run.hold(-this.sizes.take());
  }

  /** Goes on where a stretch ended, with the failures that wait in it. */
  absorb(stretch: RunScope): void {
    this.lastOutput = stretch.lastOutput;
    this.lastCommitAt = stretch.lastCommitAt;
    if (stretch.prompt !== undefined) this.prompt = stretch.prompt;
    for (const failure of stretch.takeFailures()) this.fail(failure);
  }

  /** Takes out what waits for a guard. */
  takeFailures(): readonly Failure[] {
    const taken = this.failures ?? NONE;
    this.failures = undefined;
    this.run.unhandled -= taken.length;
    return taken;
  }

  /** Something is asked for that is not stored. @returns what is to be waited for before it is begun */
  goLive(): Promise<void> | undefined {
    const { run } = this;
    if (run.recalling === 0) return undefined;
    for (let level: RunScope | undefined = this; level; level = level.outer) level.onLive?.();
    if (run.recalling === 0) return undefined;
    return new Promise((resolve) => run.whenRecalled(resolve));
  }

  /** The prompt for a `think` at this level: chosen here, or further out. */
  findPrompt(): string | undefined {
    for (let level: RunScope | undefined = this; level; level = level.outer) {
      if (level.prompt !== undefined) return level.prompt;
    }
    return undefined;
  }

  /** It was used: the next `think` needs another. */
  takePrompt(): void {
    for (let level: RunScope | undefined = this; level; level = level.outer) {
      if (level.prompt === undefined) continue;
      level.prompt = undefined;
      return;
    }
  }

  fail(failure: Failure): void {
    if (!this.failures) this.failures = [];
    failure.place ??= ++this.run.failed;
    this.failures.push(failure);
    this.run.unhandled += 1;
  }

  /** Marks the failure of a name as handled, if there is one. @param since - how many there had been when it was looked at */
  handle(slot: NameSlot, since: number): void {
    if (this.failures) this.#settle(({ slots, place = 0 }) => place <= since && slots.includes(slot));
    if (this.handled) this.handled.add(slot.name);
    else this.outer?.handle(slot, since);
  }

  /** The same by names: for what a block handled, now that it counts. */
  handleNames(names: ReadonlySet<string>): void {
    if (names.size === 0) return;
    this.#settle(({ slots }) => slots.some(({ name }) => names.has(name)));
    if (this.handled) for (const name of names) this.handled.add(name);
    else this.outer?.handleNames(names);
  }

  #settle(isHandled: (failure: Failure) => boolean): void {
    const open = this.failures ?? NONE;
    if (open.length === 0) return;
    this.failures = open.filter((failure) => !isHandled(failure));
    this.run.unhandled -= open.length - this.failures.length;
  }
}
