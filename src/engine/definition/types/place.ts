/** What is known at one place of a flow: which steps ran, and what conditions have ruled out. */

import { type Type, union } from './type.ts';

/** How a step may have ended, as bits. */
export const NOT_RUN = 1;
export const SKIPPED = 2;
export const COMPLETED = 4;
export const FAILED = 8;

/** The result of a step. Its type is the same at every place; only its status depends on the place. */
export interface StepResult {
  /** The output of a step that completed. */
  readonly output: Type;
  /** Whether a failed step keeps an output, as a `foreach` does. */
  readonly keepsOutput: boolean;
  /** Why the step may not have run, for messages. */
  readonly why: string;
  /** A later step of a loop, whose output is not known yet. */
  readonly isGuess?: boolean;
}

/** The names of one level: the flow, the inside of a `foreach`, or the body of an arrow. */
export interface LevelTypes {
  readonly id: number;
  readonly parent: LevelTypes | undefined;
  readonly item: { readonly name: string; readonly type: Type } | undefined;
  readonly results: Map<string, StepResult>;
  /** The parameters of an arrow. */
  readonly locals?: ReadonlyMap<string, Type> | undefined;
  /** The type of `${error}`; undefined outside a `catch`. */
  readonly caught: boolean;
}

export function keyOf(level: number, name: string): string {
  return `${level}:${name}`;
}

/**
 * What is known at a place. A branch is a {@link fork}, which holds only what differs, so that a flow of many steps takes time in
 * proportion to its length; {@link merge} brings branches together again.
 */
export class Place {
  readonly #around: Place | undefined;
  #status: Map<string, number> | undefined;
  #facts: Map<string, Type | undefined> | undefined;
  #implied: Map<string, Map<string, number>> | undefined;
  /** Conditions of the places around that imply nothing any more. */
  #forgotten: Set<string> | undefined;
  /** Whether the place can't be reached. */
  dead = false;

  constructor(around?: Place) {
    this.#around = around;
    this.dead = around?.dead ?? false;
  }

  fork(): Place {
    return new Place(this);
  }

  status(key: string): number {
    for (let at: Place | undefined = this; at; at = at.#around) {
      const found = at.#status?.get(key);
      if (found !== undefined) return found;
    }
    return NOT_RUN;
  }

  setStatus(key: string, status: number): void {
    this.#status ??= new Map();
    this.#status.set(key, status);
    if (status === 0) this.dead = true;
  }

  /** The type of a path that a condition made smaller. */
  fact(key: string): Type | undefined {
    for (let at: Place | undefined = this; at; at = at.#around) if (at.#facts?.has(key)) return at.#facts.get(key);
    return undefined;
  }

  setFact(key: string, type: Type | undefined): void {
    this.#facts ??= new Map();
    this.#facts.set(key, type);
  }

  /** Whether any condition implies something here. */
  get hasImplied(): boolean {
    for (let at: Place | undefined = this; at; at = at.#around) if (at.#implied) return true;
    return false;
  }

  /** The steps whose status is known if a condition with this text holds. */
  implied(text: string): ReadonlyMap<string, number>[] {
    const found: ReadonlyMap<string, number>[] = [];
    for (let at: Place | undefined = this; at; at = at.#around) {
      const steps = at.#implied?.get(text);
      if (steps) found.push(steps);
      if (at.#forgotten?.has(text)) break;
    }
    return found;
  }

  imply(text: string, key: string, status: number): void {
    this.#implied ??= new Map();
    const steps = this.#implied.get(text) ?? new Map<string, number>();
    this.#implied.set(text, steps.set(key, status));
  }

  /** Forgets what conditions have said about a step, because it runs again. */
  forget(name: string): void {
    for (let at: Place | undefined = this; at; at = at.#around) {
      for (const fact of at.#facts?.keys() ?? []) if (fact.includes(name)) this.setFact(fact, undefined);
      for (const text of at.#implied?.keys() ?? []) if (text.includes(name)) this.#forgetCondition(text);
    }
  }

  #forgetCondition(text: string): void {
    this.#implied?.delete(text);
    this.#forgotten ??= new Set();
    this.#forgotten.add(text);
  }

  /** The steps whose status this fork changed. */
  changed(): Iterable<readonly [string, number]> {
    return this.#status ?? [];
  }

  /** Continues this place where its forks meet. @returns how much there was to compare */
  merge(forks: readonly Place[]): number {
    const alive = forks.filter(({ dead }) => !dead);
    if (alive.length === 0) {
      this.dead = true;
      return 0;
    }
    const keys = new Set<string>();
    for (const fork of alive) for (const [key] of fork.#status ?? []) keys.add(key);
    for (const key of keys) {
      let bits = 0;
      for (const fork of alive) bits |= fork.status(key);
      this.setStatus(key, bits);
    }
    const facts = new Set<string>();
    for (const fork of alive) {
      for (const key of fork.#facts?.keys() ?? []) facts.add(key);
      for (const text of fork.#forgotten ?? []) this.#forgetCondition(text);
    }
    for (const key of facts) {
      const types = alive.map((fork) => fork.fact(key));
      const all = types.every((type): type is Type => type !== undefined);
      this.setFact(key, all ? union(types) : undefined);
    }
    const [only, second] = alive as [Place, ...Place[]];
    if (second === undefined) {
      for (const [text, steps] of only.#implied ?? []) for (const [key, bits] of steps) this.imply(text, key, bits);
    }
    return keys.size + facts.size;
  }
}
