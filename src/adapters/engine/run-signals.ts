/** The signals of a run at work: the waits of its branches take them, each the first of its name that none has taken. */

import type { Json } from '../../engine/json.ts';
import { isTakenSignal, type NewSignal } from '../../engine/model/stored-execution.ts';
import type { TakenSignal, WaitNote } from '../../engine/ports/journal.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { HeldExecution } from './held-execution.ts';
import type { JournalParts } from './journal-parts.ts';
import type { RecalledRecords } from './recalled-records.ts';

/** What is asked of the run's journal. */
interface Noting {
  /** How many signals have come, as far as the run knows. */
  readonly heard: number;
  note(key: string, decide: () => Json, wait: WaitNote): MaybePromise<Json>;
  idle(instant: number): () => void;
}

const PAGE = 100;
/** One that waits for more names than this is due for any signal: the store keeps no longer list of them. */
const MOST_NAMES = 100;

export class RunSignals {
  readonly #parts: JournalParts;
  readonly #journal: Noting;
  readonly #held: HeldExecution;
  /** Ids of those that a wait took, in this process or before. */
  readonly #taken = new Set<string>();
  /** By name, in the order in which they came. */
  readonly #known = new Map<string, NewSignal[]>();
  readonly #waiting = new Set<{ readonly name: string; readonly wake: () => void }>();
  #looking: Promise<unknown> = Promise.resolve();

  constructor(parts: JournalParts, journal: Noting, held: HeldExecution, recalled: RecalledRecords | undefined) {
    this.#parts = parts;
    this.#journal = journal;
    this.#held = held;
    for (const record of recalled?.all() ?? []) {
      if (isTakenSignal(record)) this.#taken.add((record.output as unknown as TakenSignal).signal);
    }
  }

  /** As `waitForSignal` of the journal. */
  async wait(
    key: string,
    name: string,
    until: number,
    signal: AbortSignal,
    onWait: () => void,
  ): Promise<TakenSignal | undefined> {
    let isOver = until <= (this.#held.reached ?? Number.NEGATIVE_INFINITY);
    for (let looks = 1; ; looks++) {
      const { heard } = this.#journal;
      // One look at a time: of two that wait for the same, the one that waited first takes the first.
      const look = this.#looking.then(() => this.#take(name, until, signal));
      this.#looking = look.catch(() => undefined);
      const found = await look;
      if (found) return this.#note(key, found);
      signal.throwIfAborted();
      if (isOver) return undefined;
      if (looks === 1) onWait();
      isOver = !(await this.#untilSignal(name, heard, until, signal));
    }
  }

  /** More have come: every wait looks for its own. */
  look(): void {
    for (const { wake } of [...this.#waiting]) wake();
  }

  /** The names that are waited for at the moment; undefined when there are too many. */
  get names(): readonly string[] | undefined {
    const names = new Set<string>();
    for (const { name } of this.#waiting) names.add(name);
    return names.size > MOST_NAMES ? undefined : [...names];
  }

  async #take(name: string, until: number, signal: AbortSignal): Promise<NewSignal | undefined> {
    const known = this.#known.get(name) ?? [];
    this.#known.set(name, known);
    for (let isAll = false; !isAll; ) {
      const page = await this.#list(name, known.length);
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
    return this.#parts.storage.listSignals(this.#held.execution.id, { name, after, limit: PAGE });
  }

  async #note(key: string, { id, name, payload }: NewSignal): Promise<TakenSignal> {
    const taken: TakenSignal = { signal: id, payload, at: this.#parts.clock.now() };
    const of = { name, at: taken.at };
    return (await this.#journal.note(key, () => taken as unknown as Json, of)) as unknown as TakenSignal;
  }

  /** @returns whether more have come than had by `heard`; false at `until` */
  #untilSignal(name: string, heard: number, until: number, signal: AbortSignal): MaybePromise<boolean> {
    if (this.#journal.heard > heard) return true;
    const { clock } = this.#parts;
    return new Promise((resolve, reject) => {
      let cancelTimer: (() => void) | undefined;
      const over = () => {
        cancelTimer?.();
        signal.removeEventListener('abort', abort);
        this.#waiting.delete(waiting);
        // Counted at once: a run in which something is about to look must not be given up.
        goesOn();
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
      // It may be given up just now, with the names that it waits for.
      this.#waiting.add(waiting);
      const goesOn = this.#journal.idle(until);
      if (signal.aborted) abort();
      else {
        signal.addEventListener('abort', abort);
        if (until !== Number.POSITIVE_INFINITY) cancelTimer = clock.setTimer(until - clock.now(), timeOut);
      }
    });
  }
}
