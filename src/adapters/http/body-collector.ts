/** Collects the pieces of an answer's body. Small pieces take no more memory than their bytes. */

import { ByteBuffer } from '../../engine/base/byte-buffer.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { AdmittedRequest } from './admit-request.ts';

export interface BodyCollector {
  /** @throws OrchestratorError `AGENT_FAILED` if the body exceeds the limit, or consists of too many small pieces */
  add(piece: Uint8Array): void;
  join(): Uint8Array;
}

/** This number of pieces takes some tenths of a second, independently of their size. */
const MANY_PIECES = 65_536;
const FEW_BYTES = 16;

export function bodyCollector(request: AdmittedRequest): BodyCollector {
  const body = new ByteBuffer(request.maxResponseBytes);
  let size = 0;
  let pieces = 0;
  return {
    add(piece) {
      size += piece.byteLength;
      pieces += 1;
      if (size > request.maxResponseBytes) throw tooLarge(request);
      if (pieces > MANY_PIECES && size < pieces * FEW_BYTES) throw fragmented(request);
      // The buffer keeps the first piece without a copy, and a runtime may reuse the memory of a small piece.
      body.append(size === piece.byteLength ? new Uint8Array(piece) : piece);
    },
    join: () => body.bytes(),
  };
}

function tooLarge(request: AdmittedRequest): OrchestratorError {
  const limit = request.maxResponseBytes;
  const message = `${request.label} answered with more than ${limit} bytes; ask for less, by pages for instance`;
  return new OrchestratorError('AGENT_FAILED', message, { details: { reason: 'too-large', limit } });
}

/** The peer sends many times more framing than content. Not retryable: each attempt would cost the same. */
export function fragmented(request: AdmittedRequest): OrchestratorError {
  const message = `${request.label} answered in too many pieces of fewer than ${FEW_BYTES} bytes; the peer must send larger ones`;
  return new OrchestratorError('AGENT_FAILED', message, { details: { reason: 'fragmented' } });
}
