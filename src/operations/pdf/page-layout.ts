/** The page of a PDF: its size and its margins, from CSS lengths to points. */

import type { PdfRequest } from '../../engine/operation/pdf.port.ts';

const MM = 72 / 25.4;
/** Points of each unit. */
const UNITS: Readonly<Record<string, number>> = { mm: MM, cm: 10 * MM, in: 72, pt: 1, pc: 12, px: 0.75 };

/** Points, upright. */
const FORMATS = {
  A3: [297 * MM, 420 * MM],
  A4: [210 * MM, 297 * MM],
  A5: [148 * MM, 210 * MM],
  Letter: [612, 792],
  Legal: [612, 1008],
  Tabloid: [792, 1224],
} as const;

export type PageFormat = keyof typeof FORMATS;
export const PAGE_FORMATS = Object.keys(FORMATS) as readonly PageFormat[];

/** The smallest and the largest side of a page: half an inch, and what the PDF format allows. */
const MIN_SIDE = 36;
const MAX_SIDE = 14_400;
/** What must be left between two margins. */
const MIN_CONTENT = 36;
/** The bottom margin that a page number fits into. */
const MIN_NUMBER_MARGIN = 10 * MM;
const DEFAULT_MARGIN = '15mm';

export const LENGTH = 'a CSS length such as `20mm`, in mm, cm, in, pt, pc or px';

/** @returns points; undefined for a text that is not a CSS length of 0 or more */
export function parseLength(text: string): number | undefined {
  const found = /^(\d{1,6}(?:\.\d{1,6})?)(mm|cm|in|pt|pc|px)$/.exec(text.trim().toLowerCase());
  if (!found) return /^0(?:\.0{1,6})?$/.test(text.trim()) ? 0 : undefined;
  return Number(found[1]) * (UNITS[found[2] as string] as number);
}

export interface PageConfig {
  /** Default `A4`. */
  readonly format?: PageFormat | { readonly width: string; readonly height: string } | null;
  readonly landscape?: boolean | null | undefined;
  /** Default `15mm`. A side that is left out of a map has the default. */
  readonly margin?: string | Partial<Readonly<Record<keyof PdfRequest['margin'], string | null>>> | null | undefined;
  readonly pageNumbers?: boolean | null | undefined;
}

type PageLayout = Pick<PdfRequest, 'pageSize' | 'margin'>;

/** @returns the page in points, or what is wrong with it. The lengths are valid */
export function toPageLayout({ format, landscape, margin, pageNumbers }: PageConfig): PageLayout | PageProblem {
  const points = (length: string | null | undefined) => parseLength(length ?? DEFAULT_MARGIN) as number;
  const [width, height] =
    typeof format === 'object' && format !== null
      ? [points(format.width), points(format.height)]
      : FORMATS[format ?? 'A4'];
  if (Math.min(width, height) < MIN_SIDE || Math.max(width, height) > MAX_SIDE)
    return { key: 'format', problem: 'has a side that is shorter than 0.5in or longer than 200in' };
  const pageSize = landscape ? { width: height, height: width } : { width, height };
  const side = (name: keyof PdfRequest['margin']) => points(typeof margin === 'object' ? margin?.[name] : margin);
  const sides = { top: side('top'), right: side('right'), bottom: side('bottom'), left: side('left') };
  const inner = {
    width: pageSize.width - sides.left - sides.right,
    height: pageSize.height - sides.top - sides.bottom,
  };
  if (Math.min(inner.width, inner.height) < MIN_CONTENT)
    return { key: 'margin', problem: 'leaves less than 0.5in of the page for the content; make it smaller' };
  // A length that was rounded still counts.
  if (pageNumbers && sides.bottom < MIN_NUMBER_MARGIN - 0.01)
    return { key: 'margin', problem: 'leaves no space for page numbers; make the bottom margin at least 10mm' };
  return { pageSize, margin: sides };
}

export interface PageProblem {
  readonly key: 'format' | 'margin';
  readonly problem: string;
}
