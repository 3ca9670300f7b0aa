/** Collects the pieces of an answer's body: however small they are, they cost what they hold. */

import { OrchestratorError } from '../../engine/errors.ts';
import type { AdmittedRequest } from './admit-request.ts';

export interface BodyCollector {
  /** @throws OrchestratorError `AGENT_FAILED` when the body passes the limit, or comes in too many pieces of too few bytes */
  add(piece: Uint8Array): void;
  join(): Uint8Array;
}

/** Smaller pieces are copied into pages; a piece of one byte would be kept with an object of a hundred. */
const SMALL_BYTES = 4 * 1024;
const PAGE_BYTES = 64 * 1024;
/** So many pieces cost some tenths of a second, whatever they hold. */
const MANY_PIECES = 65_536;
const FEW_BYTES = 16;

export function bodyCollector(request: AdmittedRequest): BodyCollector {
  const parts: Uint8Array[] = [];
  let page = new Uint8Array(0);
  let begun = 0;
  let end = 0;
  let size = 0;
  let pieces = 0;
  const closePart = () => {
    if (end > begun) parts.push(page.subarray(begun, end));
    begun = end;
  };
  return {
    add(piece) {
      size += piece.byteLength;
      pieces += 1;
      if (size > request.maxResponseBytes) throw tooLarge(request);
      if (pieces > MANY_PIECES && size < pieces * FEW_BYTES) throw fragmented(request);
      if (piece.byteLength >= SMALL_BYTES) {
        closePart();
        parts.push(piece);
        return;
      }
      if (end + piece.byteLength > page.byteLength) {
        closePart();
        page = new Uint8Array(PAGE_BYTES);
        begun = 0;
        end = 0;
      }
      page.set(piece, end);
      end += piece.byteLength;
    },
    join() {
      closePart();
      const body = new Uint8Array(size);
      let offset = 0;
      for (const part of parts) {
        body.set(part, offset);
        offset += part.byteLength;
      }
      return body;
    },
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
