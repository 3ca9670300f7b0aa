/** Cuts streamed bytes into parts of one size. */

import { joinBytes } from '../../engine/base/join-bytes.ts';

/** @returns parts of `size` bytes; the last one may be shorter, and there is at least one */
export async function* inParts(content: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let pending: Uint8Array[] = [];
  let length = 0;
  let cut = 0;
  for await (const chunk of content) {
    for (let rest = chunk; rest.length > 0; ) {
      const taken = rest.subarray(0, size - length);
      // The source may use its array again for the next bytes.
      pending.push(taken.slice());
      length += taken.length;
      rest = rest.subarray(taken.length);
      if (length < size) continue;
      yield joinBytes(pending);
      [pending, length, cut] = [[], 0, cut + 1];
    }
  }
  if (length > 0 || cut === 0) yield joinBytes(pending);
}
