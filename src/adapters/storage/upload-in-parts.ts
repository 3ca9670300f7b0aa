/** Stores a stream in an object store that takes large objects in parts. */

import { joinBytes } from '../../engine/base/bytes/join-bytes.ts';

/** S3 and R2 take parts of at least 5 MiB, except for the last; those of R2 have one size. */
export const PART_BYTES = 8 * 1024 * 1024;

/** An upload that the store shows when it is completed. */
interface Upload<Part> {
  /** @param number - counted from 1 */
  add(part: Uint8Array, number: number): Promise<Part>;
  complete(parts: readonly Part[]): Promise<unknown>;
  /** Never rejects. */
  abort(): Promise<unknown>;
}

interface Destination<Part> {
  /** Stores an object that fits one part. */
  whole(bytes: Uint8Array): Promise<unknown>;
  begin(): Promise<Upload<Part>>;
}

/** Stores all bytes or none: what fails is aborted. @returns the number of bytes */
export async function uploadInParts<Part>(
  content: AsyncIterable<Uint8Array>,
  { whole, begin }: Destination<Part>,
): Promise<number> {
  let upload: Upload<Part> | undefined;
  let size = 0;
  const parts: Part[] = [];
  try {
    for await (const part of inParts(content, PART_BYTES)) {
      size += part.length;
      if (upload === undefined && part.length < PART_BYTES) {
        await whole(part);
        return size;
      }
      upload ??= await begin();
      parts.push(await upload.add(part, parts.length + 1));
    }
    await upload?.complete(parts);
    return size;
  } catch (thrown) {
    await upload?.abort();
    throw thrown;
  }
}

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
