/** The journal of a dry run: no operation runs. What a step gives is made up, and what it would get is written into a plan. */

import type { Json, JsonObject } from '../base/json/json.ts';
import { andThen, type MaybePromise } from '../base/maybe-promise.ts';
import type { UsedComponent } from '../component/component.ts';
import { roleOf } from '../ensemble/step-kind.ts';
import type { ExecutionError } from '../execution/execution.ts';
import type { Journal, StepOptions, TakenSignal } from '../execution/journal.port.ts';
import type { StepRecord } from '../execution/stored-execution.ts';
import type { Clock } from '../host/clock.port.ts';
import type { DryPlan, NewPlannedStep } from './dry-plan.ts';
import { NO_PARTS } from './journal-records.ts';
import { PinnedComponents } from './pinned-components.ts';
import { never } from './recorded-journal.ts';

/** What a step gives in a dry run. */
export interface DryAnswer {
  readonly output: Json;
  readonly error?: ExecutionError | undefined;
  readonly from: 'types' | 'execution';
  readonly unknown: readonly string[];
}

export interface DryRun {
  /** A clock of its own: a wait takes no time. */
  readonly clock: Clock;
  readonly plan: DryPlan;
  /** See `PlannedStep`. */
  readonly within: string | undefined;
  /** What the agent at a position gives. */
  answer(key: string, agent: string): DryAnswer;
  /** The payload of the signal for which the step at a position waits. Undefined, if the wait may end by itself: no signal comes in time. */
  payload(key: string, signal: string, mayEnd: boolean): DryAnswer | undefined;
  /** Whether an operation runs. */
  runs(operation: string): boolean;
  /** The state of the ensemble, as the dry run has it. */
  readonly state: { get(): MaybePromise<JsonObject | undefined>; set(state: JsonObject): void };
  /** Real work begins. @returns a function to call at its end */
  begin(): () => void;
}

interface Begun {
  readonly options: StepOptions;
  settle(record: StepRecord | undefined): void;
  /** Also of its earlier attempts. */
  planned: NewPlannedStep | undefined;
  end?: () => void;
}

export class DryJournal implements Journal {
  readonly mayRepeat = false;
  /** The results of the agents. */
  readonly records: StepRecord[] = [];
  readonly #run: DryRun;
  readonly #components = new PinnedComponents();
  readonly #begun = new Map<string, Begun>();

  constructor(run: DryRun) {
    this.#run = run;
  }

  step(...[key, , run, options, agent]: Parameters<Journal['step']>): Promise<StepRecord | undefined> {
    return new Promise((resolve, reject) => {
      this.#begun.set(key, { options, settle: resolve, planned: this.#begun.get(key)?.planned });
      Promise.resolve(run((record) => this.#keep(key, agent, record))).then(resolve, reject);
    });
  }

  waitForLease(...[key, context, step]: Parameters<Journal['waitForLease']>): Promise<void> | undefined {
    const begun = key === undefined ? undefined : this.#begun.get(key);
    // A part of an attempt that runs.
    if (key === undefined || !begun || !context || !step) return undefined;
    const { plan, runs, begin, answer, clock } = this.#run;
    const { agent: name } = context.execution;
    const { name: operation } = step.operation;
    const planned = begun.planned ?? this.plan({ key, kind: 'agent', name, operation });
    begun.planned = planned;
    plan.put(planned, 'input', context.input, step.secrets);
    plan.put(planned, 'config', context.config, step.secrets);
    if (runs(operation)) {
      planned.from = 'operation';
      begun.end = begin();
      // An operation that was stopped may never end.
      context.signal.addEventListener('abort', begun.end, { once: true });
      return undefined;
    }
    const { output, error, from, unknown } = answer(key, name);
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
  plan(step: Pick<NewPlannedStep, 'key' | 'kind' | 'name' | 'operation' | 'skipped' | 'until'>): NewPlannedStep {
    return this.#run.plan.add({ ...step, within: this.#run.within });
  }

  #keep(key: string, name: string, made: StepRecord | undefined): MaybePromise<StepRecord | undefined> {
    const begun = this.#begun.get(key);
    begun?.end?.();
    if (!made) return made;
    // Its input or its config can't be computed: then it has no plan yet.
    const planned = begun?.planned ?? this.plan({ key, kind: 'agent', name });
    if (made.error) planned.error = made.error;
    else delete planned.error;
    if (made.retryAt !== undefined) return made;
    this.#begun.delete(key);
    return andThen(this.#changeState(made, begun?.options.state), (record) => {
      this.records.push(record);
      if (record.error) planned.error = record.error;
      else this.#run.plan.put(planned, 'output', record.output);
      return record;
    });
  }

  #changeState(made: StepRecord, update: StepOptions['state']): MaybePromise<StepRecord> {
    if (!update) return made;
    const { state } = this.#run;
    return andThen(state.get(), (current) => {
      const { record, value } = update.next(current, made);
      if (value) {
        state.set(value);
        update.stored(value);
      }
      return record;
    });
  }

  readState(): MaybePromise<JsonObject | undefined> {
    return this.#run.state.get();
  }

  decide(...[key, compute]: Parameters<Journal['decide']>): Json {
    const decision = compute();
    const { payload, code } = (decision ?? {}) as {
      payload?: { refused?: true; error?: ExecutionError };
      code?: string;
    };
    const { kind, step = '' } = roleOf({ key, note: true }) ?? {};
    // A child that is not started has no plan of its own.
    if (kind === 'ensemble' && (payload?.refused || code !== undefined)) {
      const error = payload?.error ?? (decision as unknown as ExecutionError);
      this.plan({ key: step, kind, name: '' }).error = error;
    }
    return decision;
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
    const { clock, payload, plan } = this.#run;
    onWait();
    const planned = this.plan({ key, kind: 'wait', name });
    const answer = payload(key, name, Number.isFinite(until));
    if (!answer) {
      await clock.sleep(Math.max(0, until - clock.now()), signal);
      return undefined;
    }
    const { output, from, unknown } = answer;
    plan.put(planned, 'output', output);
    Object.assign(planned, { from, ...(unknown.length > 0 && { unknown }) });
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

  replayedParts(): ReadonlySet<number> {
    return NO_PARTS;
  }

  onReplayEnd(callback: () => void): void {
    callback();
  }

  branches(): void {}
}
