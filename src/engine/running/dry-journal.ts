/** The journal of a dry run: no operation runs. What a step gives is made up, and what it would get is written into a plan. */

import { cloneJson, type Json, type JsonObject } from '../base/json/json.ts';
import { andThen, type MaybePromise } from '../base/maybe-promise.ts';
import type { UsedComponent } from '../component/component.ts';
import { roleOf } from '../ensemble/step-kind.ts';
import type { ExecutionError, PlannedStep } from '../execution/execution.ts';
import type { Journal, StepOptions, TakenSignal } from '../execution/journal.port.ts';
import type { StepRecord } from '../execution/stored-execution.ts';
import type { Clock } from '../host/clock.port.ts';
import type { OperationContext } from '../operation/operation.port.ts';
import { PinnedComponents } from './pinned-components.ts';
import { never } from './recorded-journal.ts';

/** What a step gives in a dry run. */
export interface DryAnswer {
  readonly output: Json;
  readonly error?: ExecutionError | undefined;
  readonly from: 'types' | 'execution';
  readonly unknown: readonly string[];
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };
/** A step of a plan that is being made. */
export type NewPlannedStep = Writable<PlannedStep>;

export interface DryRun {
  /** A clock of its own: a wait takes no time. */
  readonly clock: Clock;
  /** Unix ms, of that clock. */
  readonly startedAt: number;
  /** Of the execution and its children, in the order in which their steps happen. */
  readonly plan: NewPlannedStep[];
  /** See `PlannedStep`. */
  readonly within: string | undefined;
  /** What the agent at a position gives. */
  answer(key: string): DryAnswer;
  /** The payload of the signal for which the step at a position waits. Undefined: no signal comes in time. */
  payload(key: string): DryAnswer | undefined;
  /** Whether an operation runs. */
  runs(operation: string): boolean;
  /** A value without its secrets. */
  mask<V extends Json>(value: V): V;
  /** The state of the ensemble at the beginning. */
  state(): MaybePromise<JsonObject | undefined>;
  /** Real work begins. @returns a function to call at its end */
  begin(): () => void;
}

interface Begun {
  readonly options: StepOptions;
  settle(record: StepRecord | undefined): void;
  planned?: NewPlannedStep;
  end?: () => void;
}

export class DryJournal implements Journal {
  readonly mayRepeat = false;
  /** The results of the agents. */
  readonly records: StepRecord[] = [];
  readonly #run: DryRun;
  readonly #components = new PinnedComponents();
  readonly #begun = new Map<string, Begun>();
  #state: JsonObject | undefined;
  #hasState = false;

  constructor(run: DryRun) {
    this.#run = run;
  }

  step(...[key, , run, options, agent]: Parameters<Journal['step']>): Promise<StepRecord | undefined> {
    return new Promise((resolve, reject) => {
      this.#begun.set(key, { options, settle: resolve });
      Promise.resolve(run((record) => this.#keep(key, agent, record))).then(resolve, reject);
    });
  }

  waitForLease(key?: string, context?: OperationContext, operation = ''): Promise<void> | undefined {
    const begun = key === undefined ? undefined : this.#begun.get(key);
    // A part of an attempt that runs.
    if (key === undefined || !begun || !context) return undefined;
    const { mask, runs, begin, answer, clock } = this.#run;
    const { agent: name } = context.execution;
    const planned = this.plan({ key, kind: 'agent', name, operation });
    begun.planned = planned;
    planned.input = mask(cloneJson(context.input));
    planned.config = mask(cloneJson(context.config) as JsonObject);
    if (runs(operation)) {
      planned.from = 'operation';
      begun.end = begin();
      return undefined;
    }
    const { output, error, from, unknown } = answer(key);
    planned.from = from;
    if (unknown.length > 0) planned.unknown = unknown;
    const about = { key, name, attempts: 1, startedAt: clock.now(), duration: 0 };
    const record: StepRecord = error
      ? { ...about, status: 'failed', output: null, error }
      : { ...about, status: 'completed', output };
    andThen(this.#keep(key, name, record), (kept) => begun.settle(kept));
    return never();
  }

  /** Adds a step to the plan. */
  plan(step: Omit<PlannedStep, 'at'>): NewPlannedStep {
    const { plan, clock, startedAt, within } = this.#run;
    const planned = { ...step, ...(within !== undefined && { within }), at: clock.now() - startedAt };
    plan.push(planned);
    return planned;
  }

  #keep(key: string, name: string, made: StepRecord | undefined): MaybePromise<StepRecord | undefined> {
    const begun = this.#begun.get(key);
    begun?.end?.();
    if (!made || made.retryAt !== undefined) return made;
    return andThen(this.#changeState(made, begun?.options.state), (record) => {
      this.records.push(record);
      // Its input or its config can't be computed: then it has no plan yet.
      const planned = begun?.planned ?? this.plan({ key, kind: 'agent', name });
      if (record.error) planned.error = record.error;
      else planned.output = this.#run.mask(cloneJson(record.output));
      return record;
    });
  }

  #changeState(made: StepRecord, update: StepOptions['state']): MaybePromise<StepRecord> {
    if (!update) return made;
    return andThen(this.readState(), (current) => {
      const { record, value } = update.next(current, made);
      if (value) {
        this.#state = value;
        update.stored(value);
      }
      return record;
    });
  }

  readState(): MaybePromise<JsonObject | undefined> {
    if (this.#hasState) return this.#state;
    return andThen(this.#run.state(), (state) => {
      if (!this.#hasState) {
        this.#hasState = true;
        this.#state = state;
      }
      return this.#state;
    });
  }

  decide(...[, compute]: Parameters<Journal['decide']>): Json {
    return compute();
  }

  mark({ key, output }: StepRecord): boolean {
    const { kind, step = '', fact } = roleOf({ key, note: true }) ?? {};
    const { left, name = '' } = (output ?? {}) as { readonly left?: true; readonly name?: string };
    if (kind === 'while' && left) this.plan({ key: step, kind, name: '' });
    if (fact === 'skipped' && (kind === 'agent' || kind === 'wait' || kind === 'sleep' || kind === 'ensemble'))
      this.plan({ key: step, kind, name, skipped: true });
    return true;
  }

  async sleepUntil(...[, instant, signal, { key, kind }]: Parameters<Journal['sleepUntil']>): Promise<void> {
    const { clock } = this.#run;
    if (kind === 'sleep') this.plan({ key, kind, name: '', until: instant });
    await clock.sleep(Math.max(0, instant - clock.now()), signal);
  }

  async waitForSignal(...given: Parameters<Journal['waitForSignal']>): Promise<TakenSignal | undefined> {
    const [, name, until, signal, onWait, { key }] = given;
    const { clock, payload, mask } = this.#run;
    onWait();
    const planned = this.plan({ key, kind: 'wait', name });
    const answer = payload(key);
    if (!answer) {
      if (until === Number.POSITIVE_INFINITY) return never();
      await clock.sleep(Math.max(0, until - clock.now()), signal);
      return undefined;
    }
    const { output, from, unknown } = answer;
    Object.assign(planned, { output: mask(cloneJson(output)), from, ...(unknown.length > 0 && { unknown }) });
    return { signal: `dry:${key}`, payload: output, at: clock.now() };
  }

  pinned(reference: string): UsedComponent | undefined {
    return this.#components.get(reference);
  }

  pin(reference: string, component: UsedComponent): void {
    this.#components.set(reference, component, this.#run.clock.now());
  }

  storeChosen(): undefined {}

  replayed(): undefined {}

  hasReplayed(): false {
    return false;
  }

  onReplayEnd(callback: () => void): void {
    callback();
  }

  branches(): void {}
}
