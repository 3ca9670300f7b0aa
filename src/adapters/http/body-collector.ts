/** Collects the pieces of an answer's body: however small they are, they cost what they hold. */

import { ByteBuffer } from '../../engine/byte-buffer.ts';
import { OrchestratorError } from '../../engine/errors.ts';
import type { AdmittedRequest } from './admit-request.ts';

export interface BodyCollector {
  /** @throws OrchestratorError `AGENT_FAILED` when the body passes the limit, or comes in too many pieces of too few bytes */
  add(piece: Uint8Array): void;
  join(): Uint8Array;
}

/** So many pieces cost some tenths of a second, whatever they hold. */
const MANY_PIECES = 65_536;
const FEW_BYTES = 16;

export function bodyCollector(request: AdmittedRequest): BodyCollector {
  const body = new ByteBuffer();
  let size = 0;
  let pieces = 0;
  return {
    add(piece) {
      size += piece.byteLength;
      pieces += 1;
      if (size > request.maxResponseBytes) throw tooLarge(request);
      if (pieces > MANY_PIECES && size < pieces * FEW_BYTES) throw fragmented(request);
      // The buffer takes the first part as it is, and a runtime may use a small one again.
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

/** The peer spends many times more on framing than on what it says: each try would cost the same. */
export function fragmented(request: AdmittedRequest): OrchestratorError {
  const message = `${request.label} answered in too many pieces of fewer than ${FEW_BYTES} bytes; the peer must send larger ones`;
  return new OrchestratorError('AGENT_FAILED', message, { details: { reason: 'fragmented' } });
}
