/** Renders one HTML text as a PDF, with pdfmake. */

import { readFileSync } from 'node:fs';
import { messageOf } from '../../engine/base/errors.ts';
import { cleanHtml } from './clean-html.ts';
import { convertHtml, type PdfNode, TABLE_LAYOUT } from './convert-html.ts';
import { STYLES, setFonts, toFamilies } from './fonts.ts';
import type { PdfPackages } from './load-pdf-packages.ts';
import { type FontFiles, RefusedHtml, type ThreadData, type ThreadJob } from './thread-messages.ts';

const NUMBER_SIZE = 8;
const MAX_MESSAGE = 200;

/** @returns the function that renders, with fonts that are read once */
export function createRender(packages: PdfPackages, data: ThreadData) {
  const { pdfmake, parse5 } = packages;
  const normal = [
    ...Object.entries(packages.fonts).map(([name, paths]) => [name, readFileSync(paths.normal)] as const),
    ...Object.entries(data.fonts).map(([name, files]) => [name, files.normal] as const),
  ];
  const families = toFamilies(Object.fromEntries(normal), packages.openFont);
  // A document reads nothing but the bundled fonts.
  const paths = new Set(Object.values(packages.fonts).flatMap((family) => Object.values(family)));
  pdfmake.setUrlAccessPolicy(() => false);
  pdfmake.setLocalAccessPolicy((path) => paths.has(path));
  const { virtualfs } = pdfmake as unknown as { readonly virtualfs: Files };
  pdfmake.setFonts({ ...packages.fonts, ...storeFonts(data.fonts, virtualfs) });
  pdfmake.setTableLayouts({ html: TABLE_LAYOUT as never });
  return async (job: ThreadJob) => {
    const { pageSize, margin } = job;
    const width = pageSize.width - margin.left - margin.right;
    const content = convertHtml(cleanHtml(job.html, parse5), width, packages);
    setFonts(content, families, data.missingCharacter);
    let pages = 1;
    const count = (page: number) => {
      pages = Math.max(pages, page);
      if (pages > job.maxPages) throw new RefusedHtml(tooMany(job.maxPages));
      return null;
    };
    const document = pdfmake.createPdf({
      content: content as never,
      pageSize: { ...pageSize },
      pageMargins: [margin.left, margin.top, margin.right, margin.bottom],
      defaultStyle: { font: 'Roboto', fontSize: 12 },
      background: count as never,
      ...(job.pageNumbers && { footer: pageNumber(margin.bottom) as never }),
      info: { creator: 'ensemble-orchestrator', producer: 'pdfmake' },
    });
    try {
      return { content: await document.getBuffer(), pages };
    } catch (thrown) {
      if (thrown instanceof RefusedHtml) throw thrown;
      throw new RefusedHtml(`the layout failed (${messageOf(thrown).slice(0, MAX_MESSAGE)})`);
    }
  };
}

function tooMany(limit: number): string {
  return `it has more than ${limit} pages; split it`;
}

// The number is in the middle of the bottom margin.
function pageNumber(bottom: number) {
  return (page: number, pages: number): PdfNode =>
    ({
      text: `${page} / ${pages}`,
      alignment: 'center',
      fontSize: NUMBER_SIZE,
      margin: [0, Math.max(0, (bottom - NUMBER_SIZE * 1.2) / 2), 0, 0],
    }) as PdfNode;
}

interface Files {
  existsSync(name: string): boolean;
  writeFileSync(name: string, content: Uint8Array): void;
}

/** Puts the fonts into the memory of pdfmake. @returns their names there */
function storeFonts(fonts: Readonly<Record<string, FontFiles>>, files: Files) {
  return Object.fromEntries(
    Object.entries(fonts).map(([family, given]) => {
      const names = STYLES.map((style) => {
        const name = `${family}-${style}`;
        files.writeFileSync(name, Buffer.from(given[style] ?? given.normal));
        return [style, name] as const;
      });
      return [family, Object.fromEntries(names)];
    }),
  );
}
