/** Bounds what the bodies of all requests of a handler take up in memory at once, and keeps for each of them how much it holds. */

/** What an object or an array takes up beside its text, with a first entry, and what each further entry does. Bytes. */
const CONTAINER_BYTES = 48;
const ENTRY_BYTES = 16;
const COMMA = 0x2c;
const BRACE = 0x7b;
const BRACKET = 0x5b;

/** Shared by all requests of a handler. */
export class BodyBudget {
  readonly #most: number;
  #held = 0;

  /** @param most - bytes */
  constructor(most: number) {
    this.#most = most;
  }

  /** @param own - what the one that asks holds already: alone, it may have more than there is. @returns whether there was room */
  take(bytes: number, own: number): boolean {
    if (this.#held + bytes > this.#most && this.#held > own) return false;
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
    if (!this.#budget.take(more, this.#bytes)) return false;
    this.#bytes = bytes;
    return true;
  }

  /** The body is not needed any more, or its content is stored. */
  release(): void {
    this.#budget.give(this.#bytes);
    this.#bytes = 0;
  }
}

/** What a JSON text and its value take up in memory, about: an empty object is 2 bytes of text, and many times that as a value. */
export function weighJson(text: Uint8Array): number {
  let bytes = text.byteLength;
  // A part of every request: an iterator would take three times as long.
  for (let i = 0; i < text.length; i++) {
    const byte = text[i];
    if (byte === COMMA) bytes += ENTRY_BYTES;
    else if (byte === BRACE || byte === BRACKET) bytes += CONTAINER_BYTES;
  }
  return bytes;
}
