/** The PDF port: renders HTML as pages. */

import type { MaybePromise } from '../base/maybe-promise.ts';
import type { HttpClient } from '../host/http.port.ts';
import type { WithReady } from '../host/with-ready.port.ts';

export interface PdfRequest {
  readonly html: string;
  /** Points of 1/72 inch. It is the size of the page as it is printed: `landscape` of the config has turned it already. */
  readonly pageSize: { readonly width: number; readonly height: number };
  /** Points. */
  readonly margin: { readonly top: number; readonly right: number; readonly bottom: number; readonly left: number };
  /** Whether each page has its number and the number of pages at its bottom, inside of the margin. */
  readonly pageNumbers: boolean;
  /** A document with more pages is refused with `INVALID_INPUT`. */
  readonly maxPages: number;
  /** For renderers that are reached over HTTP. */
  readonly http: HttpClient;
  /** Equal each time the same document is rendered again. A renderer that is reached over HTTP sends it. */
  readonly idempotencyKey: string;
  /** The longest time of the call, in ms. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** The bytes of a PDF, and how many pages it has. */
export interface PdfDocument {
  readonly content: Uint8Array;
  readonly pages: number;
}

/**
 * Renders HTML without network, files and scripts: images are `data:` URIs; any other reference is left out, and never fetched.
 *
 * If `signal` aborts, `render` rejects with the signal's reason. Otherwise it rejects with an `OrchestratorError`: `INVALID_INPUT` (not
 * retryable) for HTML that it can't render, `TIMEOUT` (retryable) after `timeoutMs`, `AGENT_FAILED` if the renderer failed, and
 * `NOT_CONFIGURED` for a missing package or browser, which the message names.
 */
export interface PdfRenderer extends WithReady {
  render(request: PdfRequest): MaybePromise<PdfDocument>;
  /** Closes its browser or threads. Called by `orchestrator.close()`. A later `render` opens them again. */
  close?(): MaybePromise<void>;
}
