/** Decompresses an answer's body on Node piece by piece, so that the reader can stop a bomb at its limit. */

import { pipeline, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import type { ContentCoding } from './exchange.ts';

/**
 * Yields the decoded pieces; nothing is decoded before it is asked for. An empty body stays empty. Leaving early destroys
 * the decoder; the source is the caller's.
 *
 * @throws zlib's error when the body is cut short or not in the coding
 */
export async function* decodeBody(
  source: AsyncIterable<Uint8Array>,
  coding: ContentCoding,
): AsyncGenerator<Uint8Array> {
  const pieces = source[Symbol.asyncIterator]();
  const first = await pieces.next();
  if (first.done) return;
  const decoder = createDecoder(coding, first.value);
  const encoded = async function* () {
    yield first.value;
    for (let next = await pieces.next(); !next.done; next = await pieces.next()) yield next.value;
  };
  // The callback takes the error that the loop below sees as well.
  pipeline(encoded(), decoder, () => {});
  for await (const chunk of decoder) yield chunk;
}

function createDecoder(coding: ContentCoding, firstPiece: Uint8Array): Transform {
  if (coding === 'gzip') return createGunzip();
  if (coding === 'br') return createBrotliDecompress();
  // `deflate` is zlib's format by the standard, but some servers send the bare stream: a zlib header has 8 in its low nibble.
  return ((firstPiece[0] ?? 0) & 0x0f) === 0x08 ? createInflate() : createInflateRaw();
}
