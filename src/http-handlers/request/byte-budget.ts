/** Limits the memory that the bodies of all requests of a handler, or its unsent responses, use at once, and counts the bytes of each. */

import { clientOf } from '../../engine/access/rules/client-address.ts';
import type { Clock } from '../../engine/host/clock.port.ts';

/** Memory of an object or an array, with its first entry, in addition to its text. */
const CONTAINER_BYTES = 48;
/** Memory of each further entry. */
const ENTRY_BYTES = 16;
const COMMA = 0x2c;
const BRACE = 0x7b;
const BRACKET = 0x5b;

/** A shorter response is not counted: its reader can hold up little. */
const COUNTED_BYTES = 64 * 1024;

/** What a response, or a part of a stream, counts. */
export function countedBytes(length: number): number {
  return length > COUNTED_BYTES ? length : 0;
}

/** Shared by all requests of a handler, or by those of one kind. */
export class ByteBudget {
  readonly #maxBytes: number;
  readonly #whole: ByteBudget | undefined;
  #held = 0;
  /** In the order in which they began to wait. Each is called when bytes are given back. */
  readonly #waiting = new Set<() => void>();

  /** @param whole - the budget of which this one is a part */
  constructor(maxBytes: number, whole?: ByteBudget) {
    this.#maxBytes = maxBytes;
    this.#whole = whole;
  }

  /**
   * @param own - bytes that this request holds already. A request that is the only holder may exceed the maximum
   * @returns whether the bytes were taken
   */
  take(bytes: number, own: number): boolean {
    if (this.#held + bytes > this.#maxBytes && this.#held > own) return false;
    if (this.#whole && !this.#whole.take(bytes, own)) return false;
    this.#held += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#held -= bytes;
    this.#whole?.give(bytes);
    if (bytes > 0) for (const retry of this.#waiting) retry();
  }

  /** Calls `retry` when bytes are given back, until the returned function is called. */
  wait(retry: () => void): () => void {
    this.#waiting.add(retry);
    return () => void this.#waiting.delete(retry);
  }

  get isWaitedFor(): boolean {
    return this.#waiting.size > 0;
  }

  get isUnused(): boolean {
    return this.#held === 0;
  }
}

/** The bodies of requests whose sender is not known before the body is read: each address may hold a part of what all may hold. */
export class SenderBudgets {
  readonly #whole: ByteBudget;
  readonly #maxBytes: number;
  readonly #byAddress = new Map<string, ByteBudget>();

  /** @param maxBytes - of all addresses; each may hold half of it */
  constructor(maxBytes: number, whole: ByteBudget) {
    this.#whole = new ByteBudget(maxBytes, whole);
    this.#maxBytes = maxBytes / 2;
  }

  /** @param address - undefined: not known. Such requests share one part */
  of(address = ''): ByteBudget {
    const client = clientOf(address) ?? address;
    const known = this.#byAddress.get(client);
    if (known) return known;
    if (this.#byAddress.size >= MAX_ADDRESSES)
      for (const [key, one] of this.#byAddress) if (one.isUnused) this.#byAddress.delete(key);
    const budget = new ByteBudget(this.#maxBytes, this.#whole);
    this.#byAddress.set(client, budget);
    return budget;
  }
}

/** Beyond it, addresses that hold nothing are forgotten. */
const MAX_ADDRESSES = 1000;

/** How long a response waits until it fits. */
const MAX_WAIT_MS = 10_000;

/** The part of a budget that one request holds. */
export class HeldBytes {
  readonly #budget: ByteBudget;
  #bytes = 0;

  constructor(budget: ByteBudget) {
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

  /** Like `holdUpTo`, after those that began to wait before. Waits up to 10 seconds until they fit. */
  async holdWhenFree(bytes: number, setTimer: Clock['setTimer']): Promise<boolean> {
    if (!this.#budget.isWaitedFor && this.holdUpTo(bytes)) return true;
    return new Promise((resolve) => {
      const end = (isHeld: boolean) => {
        cancel();
        forget();
        resolve(isHeld);
      };
      const cancel = setTimer(MAX_WAIT_MS, () => end(false));
      const forget = this.#budget.wait(() => {
        if (this.holdUpTo(bytes)) end(true);
      });
    });
  }

  /** Gives back what is held above `bytes`. */
  shrinkTo(bytes: number): void {
    const less = this.#bytes - bytes;
    if (less <= 0) return;
    this.#bytes = bytes;
    this.#budget.give(less);
  }

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /** Called when the bytes are no longer needed. */
  release(): void {
    this.shrinkTo(0);
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
