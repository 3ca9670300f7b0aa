/** Decompresses an answer's body on Node piece by piece, so that the reader can stop at its limit. */

import { pipeline, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import type { ContentCoding } from './exchange.ts';

/**
 * Yields the decoded pieces. Decodes only what the reader asks for. An empty body stays empty. If the reader stops early, the decoder
 * is destroyed, but not the source.
 *
 * @throws zlib's error if the body ends early or does not have the coding
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
  // The loop below throws the error that this callback ignores.
  pipeline(encoded(), decoder, () => {});
  for await (const chunk of decoder) yield chunk;
}

function createDecoder(coding: ContentCoding, firstPiece: Uint8Array): Transform {
  if (coding === 'gzip') return createGunzip();
  if (coding === 'br') return createBrotliDecompress();
  // By the standard, `deflate` means zlib's format, but some servers send the bare stream. A zlib header has 8 in its low nibble.
  return ((firstPiece[0] ?? 0) & 0x0f) === 0x08 ? createInflate() : createInflateRaw();
}
