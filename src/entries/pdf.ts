/**
 * The public names for PDF renderers.
 *
 * @module ensemble-orchestrator/pdf
 */

export { type ChromiumPdfOptions, chromiumPdf } from '../adapters/pdf/chromium-pdf.ts';
export { type CloudflarePdfOptions, cloudflarePdf } from '../adapters/pdf/cloudflare-pdf.ts';
export { type EmbeddedPdfOptions, embeddedPdf } from '../adapters/pdf/embedded-pdf.ts';
export type { FontFiles } from '../adapters/pdf/thread-messages.ts';
export type { PdfDocument, PdfRenderer, PdfRequest } from '../engine/operation/pdf.port.ts';
