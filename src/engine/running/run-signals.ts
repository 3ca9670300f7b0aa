/** The signals of an active run. Each wait takes the first signal of its name that no other wait has taken. */

import type { Json } from '../base/json/json.ts';
import { isChildSignalName } from '../execution/child.ts';
import type { PendingWait } from '../execution/execution.ts';
import type { DecisionFacts, TakenSignal, WaitPlace } from '../execution/journal.port.ts';
import type { RunLog } from '../execution/run-log.port.ts';
import { type Fold, isTakenSignal, type NewSignal, type StepRecord } from '../execution/stored-execution.ts';
import type { Clock } from '../host/clock.port.ts';
import type { MaybePromise } from '../operation/operation.port.ts';

interface SignalDependencies {
  readonly log: Pick<RunLog, 'listSignals'>;
  readonly clock: Clock;
}

/** What the waits need of the run's journal. */
interface WaitJournal {
  /** How many signals were stored for the execution, as far as the run knows. */
  readonly signalsSeen: number;
  decide(key: string, compute: () => Json, wait: DecisionFacts): MaybePromise<Json>;
  idle(wait: PendingWait): () => void;
  beginWait(place: WaitPlace, until: number): PendingWait;
}

/** What the waits need of the execution: see `HeldExecution`. */
interface WaitingExecution {
  readonly execution: { readonly id: string };
  readonly records: readonly StepRecord[] | undefined;
  readonly fold?: Fold | undefined;
  readonly reached?: number | undefined;
}

/** The signals that the waits of an execution took. */
export interface TakenSignals {
  /** See `Fold`. */
  readonly passed: Fold['passed'];
  /** The ids of the others. */
  readonly taken: ReadonlySet<string>;
}

const PAGE = 100;
/** A run that waits for more names than this is due for any signal: the storage keeps no longer list of names. */
const MAX_NAMES = 100;

export class RunSignals {
  readonly #dependencies: SignalDependencies;
  readonly #journal: WaitJournal;
  readonly #held: WaitingExecution;
  /** Ids of the signals that a wait took, in this process or before. */
  readonly #taken = new Set<string>();
  /** The signals that were read, by name, in the order in which they were stored; without those that are passed. */
  readonly #known = new Map<string, NewSignal[]>();
  /** By name: how many signals, counted from the first, waits took. They are not read again. */
  readonly #passed: Map<string, number>;
  readonly #waiting = new Set<{ readonly name: string; readonly wake: () => void }>();
  #looking: Promise<unknown> = Promise.resolve();

  constructor(dependencies: SignalDependencies, journal: WaitJournal, held: WaitingExecution) {
    this.#dependencies = dependencies;
    this.#journal = journal;
    this.#held = held;
    this.#passed = new Map(Object.entries(held.fold?.passed ?? {}));
    for (const id of held.fold?.taken ?? []) this.#taken.add(id);
    for (const record of held.records ?? []) {
      if (isTakenSignal(record)) this.#taken.add((record.output as unknown as TakenSignal).signal);
    }
  }

  /** See `Journal.waitForSignal`. */
  async wait(
    key: string,
    name: string,
    until: number,
    signal: AbortSignal,
    onWait: () => void,
    place: WaitPlace,
  ): Promise<TakenSignal | undefined> {
    const wait = this.#journal.beginWait(place, until);
    let isOver = until <= (this.#held.reached ?? Number.NEGATIVE_INFINITY);
    for (let looks = 1; ; looks++) {
      const { signalsSeen } = this.#journal;
      // One look at a time: of two waits for the same name, the first wait takes the first signal.
      const look = this.#looking.then(() => this.#take(name, until, signal));
      this.#looking = look.catch(() => undefined);
      const found = await look;
      if (found) return this.#recordTaken(key, found);
      signal.throwIfAborted();
      if (isOver) return undefined;
      if (looks === 1) onWait();
      isOver = !(await this.#untilSignal(name, signalsSeen, until, wait, signal));
    }
  }

  /** New signals were stored: every wait looks again. */
  look(): void {
    for (const { wake } of [...this.#waiting]) wake();
  }

  /** Forgets the first ones of each name: no later run reads them. */
  passTaken(): TakenSignals {
    const taken = new Set(this.#taken);
    for (const [name, known] of this.#known) {
      // Only one wait ever asks for the end of a child, and a name of each would make a fold grow.
      if (isChildSignalName(name)) {
        for (const { id } of known) taken.delete(id);
        continue;
      }
      const open = known.findIndex(({ id }) => !this.#taken.has(id));
      const passed = known.splice(0, open < 0 ? known.length : open);
      for (const { id } of passed) for (const all of [this.#taken, taken]) all.delete(id);
      if (passed.length > 0) this.#passed.set(name, (this.#passed.get(name) ?? 0) + passed.length);
    }
    return { passed: this.#passed.size > 0 ? Object.fromEntries(this.#passed) : undefined, taken };
  }

  /** The names of the signals that the run waits for now; undefined when there are too many. */
  get names(): readonly string[] | undefined {
    const names = new Set<string>();
    for (const { name } of this.#waiting) names.add(name);
    return names.size > MAX_NAMES ? undefined : [...names];
  }

  async #take(name: string, until: number, signal: AbortSignal): Promise<NewSignal | undefined> {
    const known = this.#known.get(name) ?? [];
    this.#known.set(name, known);
    for (let isAll = false; !isAll; ) {
      const page = await this.#list(name, (this.#passed.get(name) ?? 0) + known.length);
      known.push(...page);
      isAll = page.length < PAGE;
    }
    const found = signal.aborted
      ? undefined
      : known.find(({ id, createdAt }) => createdAt <= until && !this.#taken.has(id));
    if (found) this.#taken.add(found.id);
    return found;
  }

  #list(name: string, after: number): MaybePromise<readonly NewSignal[]> {
    return this.#dependencies.log.listSignals(this.#held.execution.id, { name, after, limit: PAGE });
  }

  async #recordTaken(key: string, { id, name, payload }: NewSignal): Promise<TakenSignal> {
    const taken: TakenSignal = { signal: id, payload, at: this.#dependencies.clock.now() };
    const wait = { name, at: taken.at };
    return (await this.#journal.decide(key, () => taken as unknown as Json, wait)) as unknown as TakenSignal;
  }

  /** @returns true when more signals are stored than `signalsSeen`, false at `until` */
  #untilSignal(
    name: string,
    signalsSeen: number,
    until: number,
    wait: PendingWait,
    signal: AbortSignal,
  ): MaybePromise<boolean> {
    if (this.#journal.signalsSeen > signalsSeen) return true;
    const { clock } = this.#dependencies;
    return new Promise((resolve, reject) => {
      let cancelTimer: (() => void) | undefined;
      const over = () => {
        cancelTimer?.();
        signal.removeEventListener('abort', abort);
        this.#waiting.delete(waiting);
        // Called at once: a run with a wait that is about to look must not be suspended.
        resume();
      };
      const wake = () => {
        over();
        resolve(true);
      };
      const timeOut = () => {
        over();
        resolve(false);
      };
      const abort = () => {
        over();
        reject(signal.reason);
      };
      const waiting = { name, wake };
      // Added first: `idle` may suspend the run, with the names that it waits for.
      this.#waiting.add(waiting);
      const resume = this.#journal.idle(wait);
      if (signal.aborted) abort();
      else {
        signal.addEventListener('abort', abort);
        if (until !== Number.POSITIVE_INFINITY) cancelTimer = clock.setTimer(until - clock.now(), timeOut);
      }
    });
  }
}
