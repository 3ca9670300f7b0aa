/** The PDF renderer that needs no browser: pdfmake, in threads of its own. */

import { refuseUnknownKeys } from '../../engine/base/refuse-unknown-keys.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { PdfRenderer } from '../../engine/ports/pdf.ts';
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
const KNOWN = ['fonts', 'missingCharacter', 'threads', 'memoryBytes'];
const STYLES: ReadonlySet<string> = new Set(['normal', 'bold', 'italics', 'bolditalics']);

/**
 * Creates the renderer for `createOrchestrator({ pdf })`. It needs the packages `pdfmake`, `html-to-pdfmake`, `linkedom`, `parse5` and
 * `juice`, and threads: Node.js, Deno or Bun.
 *
 * @throws TypeError for an unknown option; INVALID_REQUEST for one that is out of range
 */
export function embeddedPdf(options: EmbeddedPdfOptions = {}): PdfRenderer {
  refuseUnknownKeys(options, KNOWN, 'embeddedPdf');
  const { fonts = {}, missingCharacter } = options;
  for (const [name, files] of Object.entries(fonts)) checkFont(name, files);
  if (missingCharacter !== undefined && !/^[\x20-\x7e]?$/.test(missingCharacter))
    throw refuse('`missingCharacter` must be one character of ASCII, or empty text');
  const threads = createPdfThreads({
    threads: inRange('threads', options.threads ?? 1, 1, 16),
    memoryBytes: inRange('memoryBytes', options.memoryBytes ?? 512 * MIB, 64 * MIB, 4096 * MIB),
    data: { fonts, missingCharacter },
  });
  return Object.freeze<PdfRenderer>({
    async render({ html, pageSize, margin, pageNumbers, maxPages, timeoutMs, signal }) {
      signal.throwIfAborted();
      return threads.render({ html, pageSize, margin, pageNumbers, maxPages }, { timeoutMs, signal });
    },
    close: () => threads.close(),
  });
}

function checkFont(name: string, files: FontFiles): void {
  const entries = typeof files === 'object' && files !== null ? Object.entries(files) : [];
  if (
    !entries.some(([style]) => style === 'normal') ||
    !entries.every(([style, file]) => STYLES.has(style) && file instanceof Uint8Array)
  )
    throw refuse(
      `font \`${name}\` must be { normal, bold, italics, bolditalics }, each the bytes of a font file; only \`normal\` is required`,
    );
}

function inRange(name: string, value: number, min: number, max: number): number {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw refuse(`\`${name}\` must be a whole number from ${min} to ${max}`);
}

function refuse(message: string): OrchestratorError {
  return new OrchestratorError('INVALID_REQUEST', `embeddedPdf: ${message}`);
}
