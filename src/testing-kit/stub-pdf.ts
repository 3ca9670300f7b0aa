/** A PDF renderer for tests: it keeps the documents, and gives small PDFs with empty pages. */

import type { MaybePromise } from '../engine/base/maybe-promise.ts';
import { aFunction, readOptions, wholeNumber } from '../engine/base/read-options.ts';
import type { PdfRenderer, PdfRequest } from '../engine/operation/pdf.port.ts';

export interface StubPdfOptions {
  /** The pages of each document, 1 to 10,000. Default 1. */
  readonly pages?: number | undefined;
  /** Called for each document before it is kept. What it throws is the failure of that document, which is not kept. */
  readonly onRender?: ((request: PdfRequest) => MaybePromise<void>) | undefined;
}

export interface StubPdf extends PdfRenderer {
  /** What was rendered, in order: the HTML after its templates and expressions, the page and its margins. */
  readonly documents: readonly PdfRequest[];
}

/**
 * Creates a renderer that renders nothing. It keeps each document, and answers with a valid PDF of empty pages in the size that was asked
 * for. So a test needs no renderer, and sees the HTML. Whether a real renderer accepts that HTML is not tested.
 *
 * @param options - see {@link StubPdfOptions}
 * @throws TypeError for an invalid option
 * @example
 * ```ts
 * import { createTestOrchestrator, stubPdf } from 'ensemble-orchestrator/testing';
 *
 * const pdf = stubPdf();
 * const orchestrator = createTestOrchestrator({
 *   pdf,
 *   ensembles: ['name: e\nflow:\n  - { agent: print, operation: pdf, config: { html: "<h1>{{ who }}</h1>" } }'],
 * });
 * console.log((await orchestrator.execute('e', { who: 'Ada' })).status); // completed
 * console.log(pdf.documents[0]?.html); // <h1>Ada</h1>
 * ```
 */
export function stubPdf(options: StubPdfOptions = {}): StubPdf {
  const checks = { pages: wholeNumber(1, 10_000), onRender: aFunction };
  const { pages = 1, onRender } = readOptions('stubPdf', options, checks);
  const documents: PdfRequest[] = [];
  return {
    documents,
    async render(request) {
      request.signal.throwIfAborted();
      await onRender?.(request);
      request.signal.throwIfAborted();
      documents.push(request);
      return { content: emptyPages(pages, request.pageSize), pages };
    },
  };
}

/** The objects of a PDF, their places, and where that table begins. ASCII only, so that characters are bytes. */
function emptyPages(count: number, { width, height }: PdfRequest['pageSize']): Uint8Array {
  const pages = Array.from({ length: count }, (_, i) => `${i + 3} 0 R`);
  const page = `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${width} ${height}] >>`;
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Count ${count} /Kids [${pages.join(' ')}] >>`,
    ...pages.map(() => page),
  ];
  let text = '%PDF-1.4\n';
  const places = objects.map((object, i) => {
    const at = text.length;
    text += `${i + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(at).padStart(10, '0')} 00000 n \n`;
  });
  const size = objects.length + 1;
  const table = `xref\n0 ${size}\n0000000000 65535 f \n${places.join('')}`;
  const trailer = `trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${text.length}\n%%EOF\n`;
  return new TextEncoder().encode(text + table + trailer);
}
