/** Bounds what the bodies of all requests of a handler take up in memory at once, and says for each of them how much it holds. */

/** Shared by all requests of a handler. */
export class BodyBudget {
  readonly #most: number;
  #held = 0;

  /** @param most - bytes */
  constructor(most: number) {
    this.#most = most;
  }

  /** @returns whether there was room; nothing is taken otherwise */
  take(bytes: number): boolean {
    if (this.#held + bytes > this.#most) return false;
    this.#held += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#held -= bytes;
  }
}

/** What the body of one request holds of the budget. */
export class HeldBody {
  readonly #budget: BodyBudget;
  #bytes = 0;

  constructor(budget: BodyBudget) {
    this.#budget = budget;
  }

  /** @returns whether so many bytes in all are held now */
  holdUpTo(bytes: number): boolean {
    const more = bytes - this.#bytes;
    if (more <= 0) return true;
    if (!this.#budget.take(more)) return false;
    this.#bytes = bytes;
    return true;
  }

  /** The body is not needed any more, or its content is stored. */
  release(): void {
    this.#budget.give(this.#bytes);
    this.#bytes = 0;
  }
}
