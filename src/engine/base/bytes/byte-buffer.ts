/** Collects bytes that arrive in parts into one growing array, so that many small parts cost little memory. */

const EMPTY = new Uint8Array();

export class ByteBuffer {
  readonly #maxBytes: number;
  #bytes: Uint8Array = EMPTY;
  #size = 0;

  /** @param maxBytes - the size that the caller refuses to exceed. The array does not grow beyond it without need */
  constructor(maxBytes = Number.POSITIVE_INFINITY) {
    this.#maxBytes = maxBytes;
  }

  append(part: Uint8Array): void {
    const size = this.#size + part.byteLength;
    // Nearly every body arrives in one part, which is copied only when a second part follows.
    if (this.#size === 0) this.#bytes = part;
    else {
      if (size > this.#bytes.byteLength) this.#grow(size);
      this.#bytes.set(part, this.#size);
    }
    this.#size = size;
  }

  /** All bytes so far, in order. Append nothing after this call. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#size);
  }

  /** Doubles the array, so that each byte is copied only a few times. */
  #grow(size: number): void {
    const grown = new Uint8Array(Math.max(size, Math.min(2 * this.#bytes.byteLength, this.#maxBytes)));
    grown.set(this.#bytes.subarray(0, this.#size));
    this.#bytes = grown;
  }
}
