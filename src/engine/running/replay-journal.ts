/** The journal of a replay: it answers from the history, and notes where the flow asks for something else, and where it stops. */

import type { Json } from '../base/json/json.ts';
import type { StepWaitKind } from '../execution/execution.ts';
import type { ExecutionHistory } from '../execution/execution-history.ts';
import { type Journal, JournalLostError } from '../execution/journal.port.ts';
import type { StepRecord } from '../execution/stored-execution.ts';
import { callerOf, describeKey, describeRecord, isStep, placeOf } from './describe-record.ts';
import { never, RecordedJournal } from './recorded-journal.ts';

/** Where a recorded run and today's definition part. */
export interface ReplayDifference {
  /** The position of the step, such as `flow[3]`; or `input`, `status`, `error`, `output`. */
  readonly at: string;
  /** What was recorded. Null: nothing. */
  readonly expected: Json;
  /** What today's definition does. Null: nothing. */
  readonly found: Json;
  readonly reason: string;
}

export class ReplayJournal extends RecordedJournal {
  readonly #all: readonly StepRecord[];
  readonly #isOpen: boolean;
  readonly #asked = new Set<string>();
  /** The present names of recorded agents that have another name by now. */
  readonly #names: Readonly<Record<string, string>>;
  /** Where a part of the flow has come to the end of the history, by position. */
  readonly stops = new Map<string, { readonly kind: StepWaitKind | 'agent'; readonly name?: string | undefined }>();
  /** The first difference. */
  difference: ReplayDifference | undefined;
  /** A part of the flow has come to the end of the history, and can't continue. */
  isAtEnd = false;

  /** @param isOpen - the recorded run did not reach the end of its flow */
  constructor(
    { steps }: Pick<ExecutionHistory, 'steps'>,
    isOpen: boolean,
    names: Readonly<Record<string, string>> = {},
  ) {
    super(steps);
    this.#names = names;
    this.#all = steps;
    this.#isOpen = isOpen;
  }

  /**
   * The first recorded step that the flow did not ask for.
   * @param definition - the words for what was replayed
   */
  unusedStep(definition: string): ReplayDifference | undefined {
    const unused = this.#unused();
    if (!unused) return undefined;
    const [at, expected] = [placeOf(unused.key), describeRecord(unused)];
    const reason = `${expected} was recorded at ${at}, and ${definition} does not come to it`;
    return { at, expected, found: null, reason };
  }

  #unused(): StepRecord | undefined {
    for (const record of this.#all) {
      const { key } = record;
      const caller = callerOf(key);
      // An operation called it. Where the result of the operation is recorded, no operation runs.
      if (caller !== undefined && this.#asked.has(caller)) continue;
      if (isStep(record) && !this.#asked.has(key)) return record;
    }
    return undefined;
  }

  step(...[key, attempt, , , agent]: Parameters<Journal['step']>): StepRecord | Promise<undefined> {
    const stored = this.find(key);
    if (!stored || stored.attempts < attempt) {
      this.stops.set(key, { kind: 'agent', name: agent });
      return this.#end(key, `agent \`${agent}\``);
    }
    if ((Object.hasOwn(this.#names, stored.name) ? this.#names[stored.name] : stored.name) === agent) return stored;
    const [expected, found] = [describeRecord(stored), `agent \`${agent}\``];
    throw this.#differ({
      at: key,
      expected,
      found,
      reason: `${expected} was recorded at ${key}, and today ${found} runs there`,
    });
  }

  override pinned(): undefined {}

  override replayed(key: string): StepRecord | undefined {
    const stored = this.find(key);
    if (!stored) return undefined;
    // When the end of a block or of a child is known, the flow does not ask for what was before the end.
    if (key.endsWith('.foreach'))
      for (const inner of this.#all) if (inner.key.startsWith(`${key}[`)) this.#asked.add(inner.key);
    if (key.endsWith('.ensemble')) this.#asked.add(`${key}.begun`);
    return stored;
  }

  override sleepUntil(...[, , , { key, kind, name }]: Parameters<Journal['sleepUntil']>): Promise<never> {
    this.stops.set(key, { kind, name });
    this.isAtEnd = true;
    return never();
  }

  /** The step at this position has started a child, whose end is not recorded. */
  stopAtChild(key: string, ensemble: string): Promise<never> {
    this.stops.set(key, { kind: 'child', name: ensemble });
    this.isAtEnd = true;
    return never();
  }

  override async waitForSignal(...given: Parameters<Journal['waitForSignal']>): Promise<undefined> {
    const [key, name, , , , place] = given;
    this.stops.set(place.key, { kind: place.kind, name });
    return this.#end(key, `a wait for the signal \`${name}\``);
  }

  protected override find(key: string): StepRecord | undefined {
    this.#asked.add(key);
    return super.find(key);
  }

  protected missing(key: string): Promise<never> {
    return this.#end(key, describeKey(key));
  }

  /** @returns a promise that never resolves, where the recorded run may have stopped @throws JournalLostError */
  #end(key: string, found: string): Promise<never> {
    if (this.#isOpen) {
      this.isAtEnd = true;
      return never();
    }
    const at = placeOf(key);
    throw this.#differ({
      at,
      expected: null,
      found,
      reason: `today's definition has ${found} at ${at}, and nothing was recorded there`,
    });
  }

  #differ(difference: ReplayDifference): JournalLostError {
    this.difference ??= difference;
    return new JournalLostError();
  }
}
