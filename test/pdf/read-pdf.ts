/** Reads a PDF back: its text by page, and the sizes of its pages. */

import { getDocument } from 'pdfjs-dist/legacy/build/pdf.mjs';

export interface ReadPdf {
  /** The text of each page, its runs joined by spaces. */
  readonly pages: readonly string[];
  /** Of the first page, in points. */
  readonly width: number;
  readonly height: number;
  /** Addresses of links. */
  readonly links: readonly string[];
  /** The parts of the first page: its text with the place, in points from the left and from the bottom. */
  readonly runs: readonly { readonly text: string; readonly x: number; readonly y: number }[];
}

export async function readPdf(content: Uint8Array): Promise<ReadPdf> {
  const task = getDocument({ data: new Uint8Array(content), verbosity: 0, isEvalSupported: false });
  const document = await task.promise;
  const pages: string[] = [];
  const links: string[] = [];
  const runs: { text: string; x: number; y: number }[] = [];
  let size = { width: 0, height: 0 };
  for (let number = 1; number <= document.numPages; number++) {
    const page = await document.getPage(number);
    const { items } = await page.getTextContent();
    const texts = items.flatMap((item) => ('str' in item ? [item] : []));
    pages.push(
      texts
        .map(({ str, hasEOL }) => (hasEOL ? `${str} ` : str))
        .join('')
        .replace(/\s+/g, ' ')
        .trim(),
    );
    for (const { url } of await page.getAnnotations()) if (typeof url === 'string') links.push(url);
    if (number > 1) continue;
    size = page.getViewport({ scale: 1 });
    runs.push(...texts.map(({ str, transform }) => ({ text: str, x: transform[4], y: transform[5] })));
  }
  await task.destroy();
  return { pages, links, runs, width: Math.round(size.width), height: Math.round(size.height) };
}
