/** Bytes that come in parts, as one growing array: however small the parts are, none is kept by itself. */

const EMPTY = new Uint8Array();

export class ByteBuffer {
  #bytes: Uint8Array = EMPTY;
  #size = 0;

  append(part: Uint8Array): void {
    const size = this.#size + part.byteLength;
    // Nearly every body comes in one part: it is copied only when there is a second one.
    if (this.#size === 0) this.#bytes = part;
    else {
      if (size > this.#bytes.byteLength) this.#grow(size);
      this.#bytes.set(part, this.#size);
    }
    this.#size = size;
  }

  /** All that came, in order. Nothing may be appended after this. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#size);
  }

  /** At least twofold, so that each byte is copied a few times at most. */
  #grow(size: number): void {
    const grown = new Uint8Array(Math.max(size, 2 * this.#bytes.byteLength));
    grown.set(this.#bytes.subarray(0, this.#size));
    this.#bytes = grown;
  }
}
