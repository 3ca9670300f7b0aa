/** The PDF port: renders HTML as pages. */

import type { MaybePromise } from '../base/maybe-promise.ts';
import type { HttpClient } from './http.ts';

export interface PdfRequest {
  readonly html: string;
  /** Points of 1/72 inch, before `landscape` turns the page. */
  readonly pageSize: { readonly width: number; readonly height: number };
  readonly landscape: boolean;
  /** Points. */
  readonly margin: { readonly top: number; readonly right: number; readonly bottom: number; readonly left: number };
  /** Whether each page has its number and the number of pages at its bottom. */
  readonly pageNumbers: boolean;
  /** A document with more pages is refused with `INVALID_INPUT`. */
  readonly maxPages: number;
  /** For renderers that are reached over HTTP. */
  readonly http: HttpClient;
  /** The longest time of the call, in ms. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Renders HTML without network, files and scripts: images are `data:` URIs; any other reference is left out, and never fetched. It
 * rejects with an `OrchestratorError`: `INVALID_INPUT` (not retryable) for HTML that it can't render, `TIMEOUT` or `AGENT_FAILED`
 * (retryable) if the renderer failed, `NOT_CONFIGURED` for a missing package or browser, which the message names.
 */
export interface PdfRenderer {
  render(request: PdfRequest): MaybePromise<{ readonly content: Uint8Array; readonly pages: number }>;
  /** Closes its browser or threads. Called by `orchestrator.close()`. */
  close?(): MaybePromise<void>;
}
