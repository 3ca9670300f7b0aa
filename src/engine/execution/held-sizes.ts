/** What the results of one level count, by slot and together: what a run holds is counted as it comes and goes. */

export class HeldSizes {
  readonly #bySlot: number[];
  /** What was counted here, and not before it was copied. */
  #total = 0;

  constructor(bySlot: number[] = []) {
    this.#bySlot = bySlot;
  }

  /** @returns by how much more is held now */
  set(slot: number, bytes: number): number {
    const change = bytes - this.of(slot);
    this.#bySlot[slot] = bytes;
    this.#total += change;
    return change;
  }

  of(slot: number): number {
    return this.#bySlot[slot] ?? 0;
  }

  /** For results that are copied, by a branch that runs beside others: what it adds counts for itself. */
  copy(): HeldSizes {
    return new HeldSizes([...this.#bySlot]);
  }

  /** Nothing of it is held any more. @returns what it was */
  take(): number {
    const total = this.#total;
    this.#total = 0;
    return total;
  }
}
