/** Collects the pieces of an answer's body, and passes them on as they come. Small pieces take no more memory than their bytes. */

import { ByteBuffer } from '../../engine/base/bytes/byte-buffer.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { HttpHead } from '../../engine/host/http.port.ts';
import type { AdmittedRequest } from './admit-request.ts';

export interface BodyCollector {
  /**
   * @throws OrchestratorError `AGENT_FAILED` if the body exceeds the limit, or consists of too many small pieces
   * @throws CallbackFailure with what `onChunk` threw
   * @throws the reason of the signal after an abort: nothing is passed on any more
   */
  add(piece: Uint8Array): void;
  join(): Uint8Array;
}

/** This number of pieces takes some tenths of a second, independently of their size. */
const MANY_PIECES = 65_536;
const FEW_BYTES = 16;

export function bodyCollector(request: AdmittedRequest, head: HttpHead, signal: AbortSignal): BodyCollector {
  const body = new ByteBuffer(request.maxResponseBytes);
  let size = 0;
  let pieces = 0;
  return {
    add(piece) {
      signal.throwIfAborted();
      size += piece.byteLength;
      pieces += 1;
      if (size > request.maxResponseBytes) throw tooLargeAnswer(request);
      if (pieces > MANY_PIECES && size < pieces * FEW_BYTES) throw fragmentedAnswer(request);
      // The buffer keeps the first piece without a copy, and a runtime may reuse the memory of a small piece.
      body.append(size === piece.byteLength ? new Uint8Array(piece) : piece);
      if (request.onChunk === undefined || piece.byteLength === 0) return;
      try {
        request.onChunk(piece, head);
      } catch (thrown) {
        throw new CallbackFailure(thrown);
      }
    },
    join: () => body.bytes(),
  };
}

/** What `onChunk` threw. The caller receives it as it is, and no failure of the exchange. */
export class CallbackFailure {
  readonly thrown: unknown;
  constructor(thrown: unknown) {
    this.thrown = thrown;
  }
}

function tooLargeAnswer(request: AdmittedRequest): OrchestratorError {
  const limit = request.maxResponseBytes;
  const message = `${request.label} answered with more than ${limit} bytes; ask for less, by pages for instance`;
  return new OrchestratorError('AGENT_FAILED', message, { details: { reason: 'too-large', limit } });
}

/** The peer sends many times more framing than content. Not retryable: each attempt would cost the same. */
export function fragmentedAnswer(request: AdmittedRequest): OrchestratorError {
  const message = `${request.label} answered in too many pieces of fewer than ${FEW_BYTES} bytes; the peer must send larger ones`;
  return new OrchestratorError('AGENT_FAILED', message, { details: { reason: 'fragmented' } });
}
