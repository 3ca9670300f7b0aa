/** Limits the memory that the bodies of all requests of a handler use at once, and counts the bytes of each request. */

/** Memory of an object or an array, with its first entry, in addition to its text. */
const CONTAINER_BYTES = 48;
/** Memory of each further entry. */
const ENTRY_BYTES = 16;
const COMMA = 0x2c;
const BRACE = 0x7b;
const BRACKET = 0x5b;

/** Shared by all requests of a handler. */
export class BodyBudget {
  readonly #maxBytes: number;
  #held = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * @param own - bytes that this request holds already. A request that is the only holder may exceed the maximum
   * @returns whether the bytes were taken
   */
  take(bytes: number, own: number): boolean {
    if (this.#held + bytes > this.#maxBytes && this.#held > own) return false;
    this.#held += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#held -= bytes;
  }
}

/** The part of the budget that the body of one request holds. */
export class HeldBody {
  readonly #budget: BodyBudget;
  #bytes = 0;

  constructor(budget: BodyBudget) {
    this.#budget = budget;
  }

  /** Raises what is held to `bytes` in total. @returns whether the budget allowed it */
  holdUpTo(bytes: number): boolean {
    const more = bytes - this.#bytes;
    if (more <= 0) return true;
    if (!this.#budget.take(more, this.#bytes)) return false;
    this.#bytes = bytes;
    return true;
  }

  /** Called when the body is no longer needed, or its content is stored. */
  release(): void {
    this.#budget.give(this.#bytes);
    this.#bytes = 0;
  }
}

/** The approximate memory of a JSON text and its value, in bytes: an empty object is 2 bytes of text, and many times that as a value. */
export function weighJson(text: Uint8Array): number {
  let bytes = text.byteLength;
  // Every request runs this loop: an iterator would take three times as long.
  for (let i = 0; i < text.length; i++) {
    const byte = text[i];
    if (byte === COMMA) bytes += ENTRY_BYTES;
    else if (byte === BRACE || byte === BRACKET) bytes += CONTAINER_BYTES;
  }
  return bytes;
}
