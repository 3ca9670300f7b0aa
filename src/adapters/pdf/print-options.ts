/** The options of Chromium for the pages of a document, on this computer and at Cloudflare. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { PdfDocument, PdfRequest } from '../../engine/operation/pdf.port.ts';
import { countPages } from './count-pages.ts';

const inches = (points: number) => `${(points / 72).toFixed(5)}in`;

export function toPrintOptions({ pageSize, margin, pageNumbers }: PdfRequest) {
  const { top, right, bottom, left } = margin;
  return {
    width: inches(pageSize.width),
    height: inches(pageSize.height),
    margin: { top: inches(top), right: inches(right), bottom: inches(bottom), left: inches(left) },
    printBackground: true,
    preferCSSPageSize: false,
    ...(pageNumbers && { displayHeaderFooter: true, headerTemplate: '<span></span>', footerTemplate: FOOTER }),
  };
}

const FOOTER =
  '<div style="width:100%;text-align:center;font-size:8pt;font-family:sans-serif"><span class="pageNumber"></span> / <span class="totalPages"></span></div>';

/** @throws AGENT_FAILED for bytes that are not a PDF; INVALID_INPUT for too many pages */
export function toDocument(content: Uint8Array, maxPages: number, label: string): PdfDocument {
  const pages = countPages(content);
  if (pages === undefined)
    throw new OrchestratorError('AGENT_FAILED', `${label} returned what is not a PDF of Chromium`);
  if (pages > maxPages)
    throw new OrchestratorError(
      'INVALID_INPUT',
      `this HTML can't be rendered: it has ${pages} pages; the limit is ${maxPages}. Split it`,
    );
  return { content, pages };
}

/** The failure after the time of a call. */
export function renderingTimeout(label: string, timeoutMs: number): OrchestratorError {
  const message = `${label}: the document was not rendered within ${timeoutMs} ms; split it, or raise \`timeout\``;
  return new OrchestratorError('TIMEOUT', message, { details: { timeoutMs }, retryable: true });
}
