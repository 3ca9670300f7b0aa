/** One active run: what all its scopes share. */

import { copyJson, type Json, type JsonObject, MAX_VALUE_BYTES } from '../base/json/json.ts';
import { countedBytes } from '../base/json/measure-json.ts';
import type { CompiledCall, CompiledEnsemble } from '../compiled/compiled-ensemble.ts';
import type { NameResult, ScopeRun } from '../compiled/expression-scope.ts';
import type { ResolveComponent } from '../component/component-source.port.ts';
import type { EventData, EventDetails, EventKind } from '../events/event.ts';
import type { Measure } from '../events/measurement.ts';
import type { Children } from '../execution/children.port.ts';
import type { StepOfExecution } from '../execution/execution-store.port.ts';
import type { Journal } from '../execution/journal.port.ts';
import type { FlowLimit } from '../execution/limits/flow-limit.ts';
import { drawSeedOf } from '../execution/seed.ts';
import type { NewExecution } from '../execution/stored-execution.ts';
import type { Clock } from '../host/clock.port.ts';
import type { Logger } from '../host/logger.port.ts';
import type { LoggedTrace, RunSpan, Tracing } from '../host/telemetry.port.ts';
import { REQUEST_KEY } from '../webhook/kept-request.ts';
import type { MaskText } from './attempt/mask-secrets.ts';
import { CancellationScope, MAX_BYTES, MAX_STEPS } from './cancellation-scope.ts';
import type { Turns } from './turns.ts';

/** Runs an agent that an operation of a run calls, and returns its result. */
export type RunCall = (call: {
  readonly callee: CompiledCall;
  readonly input: Json;
  /** The prefix of the keys of its steps. */
  readonly keyPrefix: string;
  /** Stops it. */
  readonly cancellation: CancellationScope;
  readonly caller: Run;
}) => Promise<NameResult | undefined>;

/** Slots that attempts need, over all processes. */
export interface StepSlots {
  /** @param signal - ends the wait @returns a function that gives the slot back, once a slot is free. Rejects when the signal aborts */
  take(limit: FlowLimit, step: StepOfExecution, signal: AbortSignal): Promise<() => void>;
}

/** What the interpreter needs besides the definition and the journal. */
export interface RunPorts {
  readonly clock: Clock;
  /** Undefined when there is no logger, so that no line is built in vain. */
  readonly logger: Logger | undefined;
  /** `env` and `secrets` together. */
  readonly env: Readonly<Record<string, string>>;
  readonly mask: MaskText;
  /** Whether the error of an attempt has the stack and the cause of what was thrown. */
  readonly keepsStacks: boolean;
  readonly children: Children;
  /** Undefined where there are no components, such as in a replay. */
  readonly resolveComponent?: ResolveComponent | undefined;
  readonly turns: Turns;
  /** Undefined without telemetry. */
  readonly tracing?: Pick<Tracing, 'run'> | undefined;
  /** Undefined while nobody listens. */
  readonly measure?: Measure | undefined;
  /** A `while` that still holds after this number of rounds is left, in a dry run. Absent: only its own limit counts. */
  readonly maxRounds?: number | undefined;
  /** The slots of limits of agents. Undefined where no operation runs. */
  readonly slots?: StepSlots | undefined;
  /** An operation was asked to wait: the status 429 with a `Retry-After`. Undefined where no operation runs. */
  readonly askedToWait?: ((execution: NewExecution, retryAfterMs: number) => void) | undefined;
  /** Emits an event; undefined when there is no listener, so that no event is built in vain. */
  readonly emit: (<K extends EventKind>(event: K, data: EventData[K]) => void) | undefined;
}

type LoggedRun = Partial<LoggedTrace> & {
  readonly executionId: string;
  readonly ensemble: string;
  readonly worker?: string | undefined;
};

/** What all levels of one run share. */
export class Run implements ScopeRun {
  readonly compiled: CompiledEnsemble;
  readonly accepted: NewExecution;
  readonly journal: Journal;
  readonly ports: RunPorts;
  /** Stops the run as a whole. */
  readonly cancellation: CancellationScope;
  /** Passed in, because an agent contains steps that contain agents. */
  readonly runCall: RunCall;
  readonly worker: string | undefined;
  /** Undefined without telemetry. */
  span: RunSpan | undefined;
  /** Blocks, items and rounds so far, replayed ones too: a resumed run counts the same. */
  steps = 0;
  /** Bytes of the held outputs, without the input. */
  #held = 0;
  #inputBytes: number | undefined;
  #frozenInput: Json | undefined;
  /** What the execution keeps of the request that started it. */
  readonly #request: JsonObject | undefined;
  /** Whether every result is held until the run ends, because all are stored together. */
  readonly keepsAll: boolean;
  /** The monotonic instant at which the run is out of time. */
  deadline = Number.POSITIVE_INFINITY;
  /** It begins no further step. */
  pauses = false;
  /** Why it is ended before it begins. */
  whyEnded: string | undefined;
  /** How many failures nothing has handled yet, at all levels. */
  unhandled = 0;
  /** How many failures there were. */
  failed = 0;
  /** How many items and branches that began before the resume are still being replayed. */
  replaying = 0;
  #whenReplayed: (() => void)[] | undefined;
  /** A step asked for a record that is not stored. */
  #hasNewSteps = false;
  /** Stops when the run leaves this process (suspended, released or lost) or breaks: then not even a `finally` runs. */
  readonly exit = new CancellationScope();
  /** How many active blocks end by themselves when they are stopped: a run that is stopped waits for them. */
  blocks = 0;
  #whenClosed: Set<() => void> | undefined;

  /**
   * @param cancellation - stops the run as a whole
   * @param worker - the worker that holds the execution
   */
  constructor(
    compiled: CompiledEnsemble,
    accepted: NewExecution,
    journal: Journal,
    ports: RunPorts,
    cancellation: CancellationScope,
    runCall: RunCall,
    worker?: string,
  ) {
    this.cancellation = cancellation;
    this.runCall = runCall;
    this.worker = worker;
    this.compiled = compiled;
    this.keepsAll = compiled.durability === 'none';
    this.accepted = accepted;
    this.journal = journal;
    // The journal drops what was stored at the end of the replay.
    if (compiled.requestReads.size > 0) this.#request = journal.replayed(REQUEST_KEY)?.output as JsonObject | undefined;
    this.ports = ports;
  }

  /**
   * Counts a step, and checks the deadline: for a run that never waits, nothing else does.
   * @param cancellation - of the level @returns a promise to wait for first, if any
   */
  begin(cancellation: CancellationScope): Promise<void> | undefined {
    this.count();
    if (this.pauses && cancellation.reason === undefined) return this.#halt(cancellation);
    const { turns } = this.ports;
    const isDue = turns.isDue();
    if (turns.now >= this.deadline) this.cancellation.stop('timed_out');
    return isDue ? turns.next() : undefined;
  }

  /** Waits until the run is suspended, or is stopped. */
  #halt(cancellation: CancellationScope): Promise<void> | undefined {
    const resume = this.journal.halt?.();
    return (
      resume &&
      new Promise((resolve) => {
        const go = () => {
          resume();
          resolve();
        };
        cancellation.onStop(go);
        this.exit.onStop(go);
      })
    );
  }

  /** Counts a block, an item or a round. */
  count(): void {
    this.steps += 1;
    if (this.steps > MAX_STEPS) this.cancellation.stop('too_many_steps');
  }

  /** Sets the count to what a replayed block had reached. */
  countTo(steps: number | undefined): void {
    if (steps !== undefined && steps > this.steps) this.steps = steps;
  }

  /** Counts held bytes. @param bytes - negative for bytes that are no longer held */
  hold(bytes: number): void {
    if (bytes === 0) return;
    this.#held += bytes;
    // No input is larger than the limit of one value, so it is measured only here.
    if (this.#held <= MAX_BYTES - MAX_VALUE_BYTES) return;
    this.#inputBytes ??= countedBytes(this.input);
    if (this.#held + this.#inputBytes > MAX_BYTES) this.cancellation.stop('too_large');
  }

  /** What every line of the log about this run has. */
  get logged(): LoggedRun {
    const { id: executionId, ensemble } = this.accepted;
    const { worker, span } = this;
    return span ? { executionId, ensemble, worker, ...span.logged } : { executionId, ensemble, worker };
  }

  get isReplaying(): boolean {
    return !this.#hasNewSteps || this.replaying > 0;
  }

  endReplay(): void {
    this.#hasNewSteps = true;
  }

  /** Items or branches that began before the resume are replayed, or will not begin again. */
  markReplayed(count: number): void {
    if (count === 0) return;
    this.replaying -= count;
    if (this.replaying > 0) return;
    const callbacks = this.#whenReplayed;
    this.#whenReplayed = undefined;
    for (const callback of callbacks ?? []) callback();
  }

  /**
   * Calls back when all items and branches that began before the resume are replayed. Until then nothing begins and nothing is
   * stopped: later steps depend on how the earlier ones ended.
   */
  whenReplayed(callback: () => void): void {
    if (this.replaying === 0) callback();
    else {
      this.#whenReplayed ??= [];
      this.#whenReplayed.push(callback);
    }
  }

  /** Calls the listener after each block that ends. @returns a function that removes the listener */
  onClosed(listener: () => void): () => void {
    this.#whenClosed ??= new Set();
    this.#whenClosed.add(listener);
    return () => this.#whenClosed?.delete(listener);
  }

  closed(): void {
    if (this.#whenClosed) for (const listener of [...this.#whenClosed]) listener();
  }

  /** Emits an event of the execution. Undefined if there is no listener. */
  get emit(): (<K extends EventKind>(event: K, details: EventDetails[K]) => void) | undefined {
    const { accepted, ports } = this;
    const { emit } = ports;
    if (!emit) return undefined;
    const { id: executionId, ensemble } = accepted;
    return (event, details) => emit(event, { executionId, ensemble, ...details } as unknown as EventData[typeof event]);
  }

  get createdAt(): number {
    return this.accepted.createdAt;
  }

  get seed(): string {
    return drawSeedOf(this.accepted.seed);
  }

  get input(): Json {
    return this.accepted.input;
  }

  /** The input for agents without an `input` of their own: one frozen copy a run. */
  get frozenInput(): Json {
    if (this.#frozenInput === undefined) this.#frozenInput = freeze(copyJson(this.input));
    return this.#frozenInput;
  }

  get env(): Readonly<Record<string, string>> {
    return this.ports.env;
  }

  get headers(): JsonObject {
    return (this.#request?.headers as JsonObject | undefined) ?? EMPTY;
  }

  get trigger(): JsonObject {
    const trigger = this.accepted.trigger as unknown as JsonObject;
    return this.#request ? { ...trigger, ...this.#request } : trigger;
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
