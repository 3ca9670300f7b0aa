/** The PDF renderer that needs no browser: pdfmake, in threads of its own. */

import { isRecord, like, optional, readOptions, wholeNumber } from '../../engine/base/read-options.ts';
import type { PdfRenderer } from '../../engine/operation/pdf.port.ts';
import { findPdfPackages } from './find-pdf-packages.ts';
import { createPdfThreads } from './pdf-threads.ts';
import type { FontFiles } from './thread-messages.ts';

export interface EmbeddedPdfOptions {
  /**
   * Font families by the name that CSS uses. They are also tried for characters that the bundled fonts lack. Bundled are Roboto, and
   * DejaVu Sans if the package `dejavu-fonts-ttf` is installed.
   */
  readonly fonts?: Readonly<Record<string, FontFiles>> | undefined;
  /** Shown in place of a character that no font has, such as `?`. Default: a document with such a character is refused, by its name. */
  readonly missingCharacter?: string | undefined;
  /** How many documents are rendered at the same time, 1 to 16. Others wait. Default 1. */
  readonly threads?: number | undefined;
  /** The most memory of one thread, in bytes, 64 MiB to 4 GiB. Default 512 MiB. Bun and Deno do not enforce it. */
  readonly memoryBytes?: number | undefined;
}

const MIB = 1024 * 1024;
const STYLES: ReadonlySet<string> = new Set(['normal', 'bold', 'italics', 'bolditalics']);

/**
 * Creates the renderer for `createOrchestrator({ pdf })`. It needs the packages `pdfmake`, `html-to-pdfmake`, `linkedom`, `parse5` and
 * `juice`, and threads: Node.js, Deno or Bun.
 *
 * @throws TypeError for an option that is unknown or wrong
 */
export function embeddedPdf(options: EmbeddedPdfOptions = {}): PdfRenderer {
  const given = readOptions('embeddedPdf', options, {
    fonts: optional('an object with names as keys', isRecord),
    missingCharacter: optional('one character of ASCII, or empty text', like(/^[\x20-\x7e]?$/)),
    threads: wholeNumber(1, 16),
    memoryBytes: wholeNumber(64 * MIB, 4096 * MIB),
  });
  const { fonts = {}, missingCharacter, threads: count = 1, memoryBytes = 512 * MIB } = given;
  for (const [name, files] of Object.entries(fonts)) checkFont(name, files);
  const threads = createPdfThreads({
    threads: count,
    memoryBytes,
    data: { fonts, missingCharacter },
  });
  return Object.freeze<PdfRenderer>({
    async render({ html, pageSize, margin, pageNumbers, maxPages, timeoutMs, signal }) {
      signal.throwIfAborted();
      return threads.render({ html, pageSize, margin, pageNumbers, maxPages }, { timeoutMs, signal });
    },
    ready: findPdfPackages,
    close: () => threads.close(),
  });
}

function checkFont(name: string, files: FontFiles): void {
  const entries = typeof files === 'object' && files !== null ? Object.entries(files) : [];
  if (
    !entries.some(([style]) => style === 'normal') ||
    !entries.every(([style, file]) => STYLES.has(style) && file instanceof Uint8Array)
  )
    throw new TypeError(
      `embeddedPdf: font \`${name}\` must be { normal, bold, italics, bolditalics }, each the bytes of a font file; only \`normal\` is required`,
    );
}
