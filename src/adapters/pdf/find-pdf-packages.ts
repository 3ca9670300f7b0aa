/** Looks for the optional packages of the embedded renderer, without loading them. */

import { OrchestratorError } from '../../engine/base/errors.ts';

/** What `npm install` needs. */
export const PDF_PACKAGES = ['pdfmake', 'html-to-pdfmake', 'linkedom', 'parse5', 'juice'] as const;

/** @throws NOT_CONFIGURED for a package that is not there */
export function findPdfPackages(): void {
  // A bundler may have taken it away. Then the first document finds out.
  if (typeof import.meta.resolve !== 'function') return;
  for (const name of PDF_PACKAGES) {
    try {
      import.meta.resolve(name);
    } catch (cause) {
      const message = `embeddedPdf: the package ${name} is not installed; \`npm install ${PDF_PACKAGES.join(' ')}\``;
      throw new OrchestratorError('NOT_CONFIGURED', message, { cause, details: { driver: name } });
    }
  }
}
