/** One run at work: what all its stretches share. */

import type { CompiledEnsemble } from '../definition/compiled-ensemble.ts';
import type { ScopeRun } from '../definition/scope.ts';
import { copyJson, type Json, type JsonObject, MAX_VALUE_BYTES, sizeOfJson } from '../json.ts';
import type { EventData, EventKind } from '../model/event.ts';
import type { NewExecution } from '../model/stored-execution.ts';
import type { Children } from '../ports/children.ts';
import type { Clock } from '../ports/clock.ts';
import type { Journal } from '../ports/journal.ts';
import type { Logger } from '../ports/logger.ts';
import { Halt, MOST_BYTES, MOST_STEPS } from './halt.ts';
import type { MaskText } from './mask-secrets.ts';
import type { Turns } from './turns.ts';

/** What the interpreter is given beside the definition and the journal. */
export interface RunPorts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** `env` and `secrets` together. */
  readonly env: Readonly<Record<string, string>>;
  readonly mask: MaskText;
  readonly children: Children;
  readonly turns: Turns;
  /** Tells observers; undefined when nobody listens to this run, so that no event is built for nobody. */
  readonly emit: (<K extends EventKind>(event: K, data: EventData[K]) => void) | undefined;
}

/** What all levels of one run share. */
export class Run implements ScopeRun {
  readonly compiled: CompiledEnsemble;
  readonly accepted: NewExecution;
  readonly journal: Journal;
  readonly ports: RunPorts;
  readonly turns: Turns;
  /** Stops the run as a whole. */
  readonly halt: Halt;
  /** Blocks, items and rounds that were walked, those that are only recalled too: a run that is taken up again counts the same. */
  steps = 0;
  /** Bytes of what is held, without the input. */
  #held = 0;
  #inputBytes: number | undefined;
  #frozenInput: Json | undefined;
  /** Every result is held until the run ends: they are stored together. */
  readonly keepsAll: boolean;
  /** The monotonic instant at which it is out of time. */
  deadline = Number.POSITIVE_INFINITY;
  /** Failures that nothing has handled yet, at all levels together. */
  unhandled: number;
  /** All failures that there were. */
  failed = 0;
  /** Items and branches that were begun before, and have not yet come as far as they are stored. */
  recalling = 0;
  #whenRecalled: readonly (() => void)[] = NOBODY;
  /** Something was asked for that is not stored. */
  #wentLive = false;
  /** Stops when the run is given up here: then not even what cleans up runs any more. */
  readonly givenUp = new Halt();
  /** Blocks at work that end by themselves when they are stopped: a run that is stopped waits for them. */
  blocks = 0;
  #whenClosed: Set<() => void> | undefined;

  /** @param halt - stops the run as a whole */
  constructor(compiled: CompiledEnsemble, accepted: NewExecution, journal: Journal, ports: RunPorts, halt: Halt) {
    this.halt = halt;
    this.compiled = compiled;
    this.keepsAll = compiled.durability === 'none';
    this.accepted = accepted;
    this.journal = journal;
    this.ports = ports;
    this.turns = ports.turns;
    this.unhandled = 0;
  }

  /** Counts a step. A run that waits for nothing hears of its timeout here alone. @returns what is to be waited for first */
  begin(): Promise<void> | undefined {
    this.count();
    const { turns } = this;
    const isDue = turns.isDue();
    if (turns.now >= this.deadline) this.halt.stop('timed_out');
    return isDue ? turns.next() : undefined;
  }

  /** Counts a block, an item or a round. */
  count(): void {
    this.steps += 1;
    if (this.steps > MOST_STEPS) this.halt.stop('too_many_steps');
  }

  /** A block that is not walked again had come so far. */
  countTo(steps: number | undefined): void {
    if (steps !== undefined && steps > this.steps) this.steps = steps;
  }

  /** Counts what is held. @param bytes - below 0 for what is held no more */
  hold(bytes: number): void {
    if (bytes === 0) return;
    this.#held += bytes;
    // No input is larger than one value may be.
    if (this.#held <= MOST_BYTES - MAX_VALUE_BYTES) return;
    this.#inputBytes ??= sizeOfJson(this.input);
    if (this.#held + this.#inputBytes > MOST_BYTES) this.halt.stop('too_large');
  }

  /** Whether nothing is recalled any more. */
  get isLive(): boolean {
    return this.#wentLive && this.recalling === 0;
  }

  goLive(): void {
    this.#wentLive = true;
  }

  /** Some of what was begun before has come as far as it is stored, or will not begin again. */
  recalled(count: number): void {
    if (count === 0) return;
    this.recalling -= count;
    if (this.recalling > 0) return;
    const callbacks = this.#whenRecalled;
    this.#whenRecalled = NOBODY;
    for (const callback of callbacks) callback();
  }

  /**
   * Calls back when all that was begun before has come as far as it is stored. Until then nothing is begun and nothing is
   * stopped: what a part of it came to before must be known to all that follows.
   */
  whenRecalled(callback: () => void): void {
    if (this.recalling === 0) callback();
    else this.#whenRecalled = [...this.#whenRecalled, callback];
  }

  /** Calls whenever a block has ended. @returns forgets the listener */
  onClosed(listener: () => void): () => void {
    this.#whenClosed ??= new Set();
    this.#whenClosed.add(listener);
    return () => this.#whenClosed?.delete(listener);
  }

  closed(): void {
    if (this.#whenClosed) for (const listener of [...this.#whenClosed]) listener();
  }

  get createdAt(): number {
    return this.accepted.createdAt;
  }

  get seed(): string {
    return this.accepted.seed;
  }

  get input(): Json {
    return this.accepted.input;
  }

  /** The input for scripts that read it as it is: one copy a run, which none of them can change. */
  get frozenInput(): Json {
    if (this.#frozenInput === undefined) this.#frozenInput = freeze(copyJson(this.input));
    return this.#frozenInput;
  }

  get env(): Readonly<Record<string, string>> {
    return this.ports.env;
  }

  get headers(): JsonObject {
    return EMPTY;
  }

  get trigger(): JsonObject {
    return this.accepted.trigger as unknown as JsonObject;
  }

  get execution(): JsonObject {
    const { id, ensemble, version, createdAt } = this.accepted;
    return { id, ensemble, version, startedAt: createdAt };
  }
}

function freeze(value: Json): Json {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Array.isArray(value) ? value : Object.values(value)) freeze(inner);
  return Object.freeze(value);
}

const EMPTY: JsonObject = Object.freeze({});
/** Shared by all runs for which nobody waits. */
const NOBODY: readonly (() => void)[] = [];
