/** Converts clean HTML to the content of pdfmake, and sets what the converter leaves out: borders, padding, widths, breaks. */

import {
  borderColor,
  borderWidth,
  DEFAULT_LINE,
  isColor,
  PX,
  readStyle,
  type Style,
  type StyledElement,
  toHex,
  toPoints,
} from './inline-style.ts';

export interface ConvertParts {
  readonly convert: Convert;
  readonly juice: Juice;
  readonly window: object;
}

/** What is used of `html-to-pdfmake`, which has no types. */
export type Convert = (
  html: string,
  options: {
    readonly window: object;
    readonly removeTagClasses: boolean;
    readonly defaultStyles: object;
    readonly customTag: (tag: { readonly element: object; readonly ret: unknown }) => unknown;
  },
) => unknown;

/** What is used of `juice/client.js`, which has no types: it copies the rules of `<style>` to the elements. */
export type Juice = (html: string, options: object) => string;

/** A node of pdfmake's content, as far as this code reads or changes it. */
export interface PdfNode {
  text?: string | PdfNode[];
  stack?: PdfNode[];
  ul?: PdfNode[];
  ol?: PdfNode[];
  columns?: PdfNode[];
  table?: {
    body: PdfNode[][];
    widths?: (string | number)[];
    headerRows?: number;
    keepWithHeaderRows?: number;
    dontBreakRows?: boolean;
  };
  svg?: string;
  font?: string;
  bold?: boolean;
  italics?: boolean;
  border?: boolean[];
  borderColor?: string[];
  /** Of the sides of a cell: the widths of its borders, in points. */
  borderWidths?: number[];
  /** Of a table: the width of each horizontal line. */
  lineWidths?: number[];
  [key: string]: unknown;
}

/** The layout of every table: lines where a cell has a border, and no space but that of the cells. */
export const TABLE_LAYOUT = {
  hLineWidth: (line: number, { lineWidths }: PdfNode) => lineWidths?.[line] ?? DEFAULT_LINE,
  vLineWidth: () => DEFAULT_LINE,
  hLineColor: () => '#000000',
  vLineColor: () => '#000000',
  paddingLeft: () => 0,
  paddingRight: () => 0,
  paddingTop: () => 0,
  paddingBottom: () => 0,
};

/** As browsers show them. */
const DEFAULT_STYLES = {
  h1: { fontSize: 24, bold: true, margin: [0, 8, 0, 8], marginBottom: '' },
  h2: { fontSize: 18, bold: true, margin: [0, 8, 0, 6], marginBottom: '' },
  h3: { fontSize: 14, bold: true, margin: [0, 7, 0, 5], marginBottom: '' },
  h4: { fontSize: 12, bold: true, margin: [0, 6, 0, 4], marginBottom: '' },
  h5: { fontSize: 10, bold: true, margin: [0, 6, 0, 4], marginBottom: '' },
  h6: { fontSize: 8, bold: true, margin: [0, 6, 0, 4], marginBottom: '' },
  p: { margin: [0, 4, 0, 8] },
  blockquote: { margin: [30, 6, 30, 6] },
  ul: { marginBottom: 6, marginLeft: 10 },
  ol: { marginBottom: 6, marginLeft: 10 },
  th: { bold: true, fillColor: '' },
  table: { marginBottom: '' },
  small: { fontSize: 10 },
  code: { font: 'monospace' },
  pre: { font: 'monospace' },
};

/** @param width - of the content of a page, in points */
export function convertHtml(html: string, width: number, { convert, juice, window }: ConvertParts): PdfNode[] {
  const styled = juice(html, { preserveMediaQueries: false, preserveFontFaces: false, inlinePseudoElements: false });
  const content = convert(styled, {
    window,
    removeTagClasses: true,
    defaultStyles: DEFAULT_STYLES,
    customTag: ({ element, ret }) => {
      if (typeof ret === 'object' && ret !== null) complete(element as unknown as StyledElement, ret as PdfNode, width);
      return ret;
    },
  });
  const nodes = (Array.isArray(content) ? content : [content]) as PdfNode[];
  nameTargets(nodes, new Set());
  return nodes;
}

/** The layout refuses an id that is there twice, and one that every object has, such as `toString`. */
function nameTargets(node: unknown, seen: Set<string>): void {
  if (Array.isArray(node)) {
    for (const child of node) nameTargets(child, seen);
    return;
  }
  if (typeof node !== 'object' || node === null) return;
  const { id, linkToDestination, text, stack, ul, ol, columns, table } = node as PdfNode;
  if (typeof id === 'string') {
    if (seen.has(id)) delete (node as PdfNode).id;
    else (node as PdfNode).id = `#${id}`;
    seen.add(id);
  }
  if (typeof linkToDestination === 'string') (node as PdfNode).linkToDestination = `#${linkToDestination}`;
  nameTargets([text, stack, ul, ol, columns, table?.body], seen);
}

function complete(element: StyledElement, node: PdfNode, width: number): void {
  const style = readStyle(element);
  completeKind(element, node, style, width);
  const breaks = (side: string) =>
    /^(?:always|page|left|right)$/.test(style.get(`page-break-${side}`) ?? style.get(`break-${side}`) ?? '');
  if (breaks('before')) node.pageBreak = 'before';
  if (breaks('after')) node.pageBreak = 'after';
}

function completeKind(element: StyledElement, node: PdfNode, style: Style, width: number): void {
  switch (element.nodeName.toUpperCase()) {
    case 'TABLE':
      completeTable(element, node, style);
      break;
    case 'TD':
    case 'TH':
      completeCell(element, node, style);
      break;
    case 'IMG':
      completeImage(element, node, style, width);
      break;
    case 'HR':
      node.canvas = [{ type: 'line', x1: 0, y1: 0, x2: width, y2: 0, lineWidth: 0.75, lineColor: '#888888' }];
      break;
    case 'SVG':
      completeSvg(element, node, style, width);
      break;
    default:
      if (isBox(element, style)) toBox(node, style);
      else if (style.has('padding') || [...style.keys()].some((key) => key.startsWith('padding-')))
        addPadding(node, style);
  }
}

type Sides = [left: number, top: number, right: number, bottom: number];

function paddingOf(style: Style, fallback: Sides): Sides {
  const given = style.get('padding')?.split(/\s+/) ?? [];
  const [top, right = top, bottom = top, left = right] = given;
  const side = (name: string, short: string | undefined, or: number) =>
    toPoints(style.get(`padding-${name}`)) ?? toPoints(short) ?? or;
  return [
    side('left', left, fallback[0]),
    side('top', top, fallback[1]),
    side('right', right, fallback[2]),
    side('bottom', bottom, fallback[3]),
  ];
}

function addPadding(node: PdfNode, style: Style): void {
  const padding = paddingOf(style, [0, 0, 0, 0]);
  const given = Array.isArray(node.margin) ? (node.margin as number[]) : [0, 0, 0, 0];
  const named = ['marginLeft', 'marginTop', 'marginRight', 'marginBottom'].map((key) => Number(node[key] ?? 0));
  for (const key of ['marginLeft', 'marginTop', 'marginRight', 'marginBottom']) delete node[key];
  node.margin = padding.map((side, i) => side + (given[i] ?? 0) + (named[i] ?? 0));
}

/** Elements that show a background or a border around all of their content. */
const BOXES = /^(?:DIV|P|SECTION|ARTICLE|ASIDE|HEADER|FOOTER|BLOCKQUOTE|PRE|H[1-6])$/i;

function isBox(element: StyledElement, style: Style): boolean {
  if (!BOXES.test(element.nodeName)) return false;
  const fill = style.get('background-color') ?? style.get('background');
  return isColor(fill) || SIDES.some((side) => borderWidth(style, side) > 0);
}

/** A block with a background or a border is a table of one cell. */
function toBox(node: PdfNode, style: Style): void {
  const {
    nodeName,
    pageBreak,
    margin,
    marginLeft = 0,
    marginTop = 0,
    marginRight = 0,
    marginBottom = 0,
    id,
    ...rest
  } = node;
  const fill = style.get('background-color') ?? style.get('background');
  const cell: PdfNode = { ...rest, margin: paddingOf(style, [0, 0, 0, 0]) };
  delete cell.background;
  cell.borderWidths = SIDES.map((side) => borderWidth(style, side));
  cell.border = cell.borderWidths.map((points) => points > 0);
  cell.borderColor = SIDES.map((side) => borderColor(style, side));
  if (isColor(fill)) cell.fillColor = toHex(fill);
  for (const key of Object.keys(node)) delete node[key];
  const body = [[cell]];
  const outer = margin ?? [marginLeft, marginTop, marginRight, marginBottom];
  Object.assign(node, {
    nodeName,
    pageBreak,
    id,
    margin: outer,
    layout: 'html',
    lineWidths: joinBorders(body),
    table: { widths: ['*'], body },
  });
}

/** Properties of rows and groups of rows that their cells show. */
const ROW_PROPERTIES = ['border', 'border-top', 'border-right', 'border-bottom', 'border-left'] as const;
const SIDES = ['left', 'top', 'right', 'bottom'] as const;

function completeCell(element: StyledElement, node: PdfNode, style: Style): void {
  const row = element.parentNode;
  const group = row?.parentNode ?? null;
  const table = group?.parentNode ?? null;
  const above = [row, group].map((parent) => (parent ? readStyle(parent) : new Map<string, string>()));
  const bordered = [style, ...above].find((from) => ROW_PROPERTIES.some((property) => from.has(property)));
  const isRuled = Number(table?.getAttribute('border') ?? 0) > 0;
  node.borderWidths = SIDES.map((side) =>
    bordered === undefined ? (isRuled ? DEFAULT_LINE : 0) : borderWidth(bordered, side),
  );
  node.border = node.borderWidths.map((points) => points > 0);
  if (bordered !== undefined) node.borderColor = SIDES.map((side) => borderColor(bordered, side));
  else delete node.borderColor;
  const fill = [style, ...above].map((from) => from.get('background-color') ?? from.get('background')).find(isColor);
  const attribute = element.getAttribute('bgcolor') ?? row?.getAttribute('bgcolor');
  if (fill !== undefined) node.fillColor = toHex(fill);
  else if (attribute != null && isColor(attribute)) node.fillColor = attribute;
  const align = element.getAttribute('align');
  if (align !== null && /^(?:left|right|center|justify)$/.test(align)) node.alignment = align;
  const vertical = style.get('vertical-align') ?? element.getAttribute('valign') ?? '';
  if (/^(?:middle|bottom)$/.test(vertical)) node.verticalAlignment = vertical;
  node.margin = paddingOf(style, [4, 2, 4, 2]);
  for (const key of ['marginLeft', 'marginTop', 'marginRight', 'marginBottom', 'background', 'width', 'height'])
    delete node[key];
}

/** Two cells share a line: the wider border is drawn, and of two equal ones that of the lower cell. */
function joinBorders(body: readonly PdfNode[][]): number[] {
  const widths = Array.from({ length: body.length + 1 }, () => 0);
  body.forEach((row, at) => {
    row.forEach((cell, column) => {
      const [, top = 0, , bottom = 0] = cell.borderWidths ?? [];
      widths[at] = Math.max(widths[at] as number, top);
      widths[at + 1] = Math.max(widths[at + 1] as number, bottom);
      const above = body[at - 1]?.[column];
      if (!above?.borderColor || !cell.borderColor || top === 0 || top < (above.borderWidths?.[3] ?? 0)) return;
      above.borderColor[3] = cell.borderColor[1] as string;
    });
  });
  return widths;
}

/** A column whose longest text has at most this many characters keeps its own width. */
const SHORT_TEXT = 24;

function completeTable(element: StyledElement, node: PdfNode, style: Style): void {
  const { table } = node;
  if (!table) return;
  if (table.body.length === 0) {
    delete node.table;
    node.text = '';
    return;
  }
  node.layout = 'html';
  node.lineWidths = joinBorders(table.body);
  const groups = Array.from(element.children);
  const rows = groups
    .filter(({ nodeName }) => /^T(?:HEAD|BODY|FOOT)$/i.test(nodeName))
    .flatMap((group) => Array.from(group.children));
  const head = groups.find(({ nodeName }) => /^THEAD$/i.test(nodeName));
  const headRows = head ? head.children.length : 0;
  if (headRows > 0 && headRows < table.body.length) {
    table.headerRows = headRows;
    table.keepWithHeaderRows = 1;
  }
  // A row that is longer than a page has to break.
  table.dontBreakRows = rows.every(
    (row) => (row.textContent ?? '').length < 1500 && !hasInside(row, /^(?:IMG|TABLE|SVG)$/i),
  );
  table.widths = columnWidths(element, rows, table.body, style);
}

function hasInside(element: StyledElement, name: RegExp): boolean {
  return Array.from(element.children).some((child) => name.test(child.nodeName) || hasInside(child, name));
}

function columnWidths(
  element: StyledElement,
  rows: readonly StyledElement[],
  body: readonly PdfNode[][],
  style: Style,
): (string | number)[] {
  const count = body.reduce((most, row) => Math.max(most, row.length), 0);
  const given: (string | number | undefined)[] = Array.from({ length: count });
  const longest = Array.from({ length: count }, () => 0);
  const columns = Array.from(element.children)
    .filter(({ nodeName }) => /^COLGROUP$/i.test(nodeName))
    .flatMap((group) => Array.from(group.children));
  columns.slice(0, count).forEach((column, i) => {
    given[i] = widthOf(column);
  });
  for (const row of rows) {
    const cells = Array.from(row.children);
    const spans = cells.some((cell) => Number(cell.getAttribute('colspan') ?? 1) > 1);
    // In a row with spans, the places of the cells differ from the columns.
    if (spans || cells.length !== count) continue;
    cells.forEach((cell, i) => {
      given[i] ??= widthOf(cell);
      longest[i] = Math.max(longest[i] as number, (cell.textContent ?? '').length);
    });
  }
  const isWide = (style.get('width') ?? element.getAttribute('width') ?? '').trim() === '100%';
  if (!isWide) return given.map((width) => width ?? 'auto');
  const free = given.flatMap((width, i) => (width === undefined ? [i] : []));
  const most = Math.max(...free.map((i) => longest[i] as number), 0);
  const grows = (i: number) => (longest[i] as number) > SHORT_TEXT || (longest[i] as number) === most;
  return given.map((width, i) => width ?? (grows(i) ? '*' : 'auto'));
}

function widthOf(element: StyledElement): string | number | undefined {
  const value = readStyle(element).get('width') ?? element.getAttribute('width') ?? '';
  if (/^\d{1,3}(?:\.\d{1,4})?%$/.test(value)) return value;
  const points = toPoints(value, PX);
  return points !== undefined && points > 0 ? points : undefined;
}

function completeImage(element: StyledElement, node: PdfNode, style: Style, most: number): void {
  const [naturalWidth = 1, naturalHeight = 1] = (element.getAttribute('data-size') ?? '').split(' ').map(Number);
  const ratio = naturalHeight / naturalWidth;
  const lengthOf = (name: string) => {
    const value = style.get(name) ?? element.getAttribute(name) ?? undefined;
    const share = name === 'width' ? /^(\d{1,3}(?:\.\d{1,4})?)%$/.exec(value ?? '')?.[1] : undefined;
    return share === undefined ? toPoints(value, PX) : (Number(share) / 100) * most;
  };
  const height = lengthOf('height');
  const width = lengthOf('width') ?? (height === undefined ? naturalWidth * PX : height / ratio);
  const scale = Math.min(1, most / width, MAX_IMAGE_HEIGHT / (height ?? width * ratio));
  node.width = width * scale;
  node.height = (height ?? width * ratio) * scale;
  for (const key of ['maxWidth', 'maxHeight', 'fit']) delete node[key];
}

const MAX_IMAGE_HEIGHT = 14_000;

function completeSvg(element: StyledElement, node: PdfNode, style: Style, most: number): void {
  const width = toPoints(style.get('width') ?? element.getAttribute('width'), PX);
  const height = toPoints(style.get('height') ?? element.getAttribute('height'), PX);
  if (width !== undefined) node.width = Math.min(width, most);
  if (height !== undefined) node.height = height;
}
