/** Reduces HTML to what the embedded renderer draws: no scripts, no references, tables with equal rows, no blank text between blocks. */

import type { DefaultTreeAdapterTypes } from 'parse5';
import { checkImage, type ImageBudget } from './image-size.ts';
import { RefusedHtml } from './thread-messages.ts';

type Parse5 = typeof import('parse5');
type Node = DefaultTreeAdapterTypes.ChildNode;
type Element = DefaultTreeAdapterTypes.Element;

/** Elements that are left out with their content. */
const DROPPED: ReadonlySet<string> = new Set(
  (
    'script noscript template iframe frame frameset object embed applet link meta base audio video source track canvas map ' +
    'form-associated input button select textarea datalist math dialog title'
  ).split(' '),
);
const BLOCKS: ReadonlySet<string> = new Set(
  (
    'html head body address article aside blockquote center dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 ' +
    'header hr legend li main nav ol p pre section summary table tbody td tfoot th thead tr ul caption colgroup col style svg'
  ).split(' '),
);
/** Attributes that are kept, on any element. All others are left out. */
const KEPT: ReadonlySet<string> = new Set(
  'style class id colspan rowspan href src width height align valign bgcolor border color size start type value alt'.split(
    ' ',
  ),
);
const MAX_DEPTH = 200;
const MAX_SPAN = 100;

/**
 * @returns HTML of the same text, whose tree is complete (`html`, `head`, `body`, `tbody`)
 * @throws RefusedHtml for HTML that is nested too deeply, and for images that can't be drawn
 */
export function cleanHtml(html: string, { parse, serialize }: Parse5): string {
  const document = parse(html);
  const budget: ImageBudget = { pixels: 0 };
  cleanChildren(document as unknown as Element, 0, { budget, inPre: false, inSvg: false });
  return serialize(document);
}

interface Place {
  readonly budget: ImageBudget;
  readonly inPre: boolean;
  readonly inSvg: boolean;
}

function cleanChildren(parent: Element, depth: number, place: Place): void {
  if (depth > MAX_DEPTH) throw new RefusedHtml(`its elements are nested deeper than ${MAX_DEPTH} levels`);
  const kept: Node[] = [];
  for (const child of parent.childNodes) {
    if (child.nodeName === '#comment' || child.nodeName === '#documentType') continue;
    if (!('tagName' in child)) {
      kept.push(child);
      continue;
    }
    if (DROPPED.has(child.tagName)) continue;
    const inSvg = place.inSvg || child.tagName === 'svg';
    if (inSvg) cleanSvgElement(child, place.budget);
    else if (!cleanElement(child, place.budget, kept)) continue;
    if (inSvg && child.tagName === 'image' && child.attrs.every(({ name }) => name !== 'href')) continue;
    cleanChildren(child, depth + 1, { ...place, inSvg, inPre: place.inPre || child.tagName === 'pre' });
    kept.push(child);
  }
  parent.childNodes = place.inPre || place.inSvg ? kept : withoutBlanks(parent, kept);
  if (parent.tagName === 'table' && !place.inSvg) completeTable(parent);
}

/** @returns whether the element stays. An image that is not data becomes its `alt` text, in `siblings` */
function cleanElement(element: Element, budget: ImageBudget, siblings: Node[]): boolean {
  element.attrs = element.attrs.filter(({ name }) => KEPT.has(name));
  if (element.tagName === 'style') {
    const css = element.childNodes.map((child) => ('value' in child ? child.value : '')).join('');
    element.childNodes = [text(cleanCss(css), element)];
    return true;
  }
  for (const attribute of element.attrs) {
    if (attribute.name === 'style') attribute.value = cleanCss(attribute.value);
    if (attribute.name === 'colspan' || attribute.name === 'rowspan') attribute.value = spanOf(attribute.value);
  }
  element.attrs = element.attrs.filter(
    ({ name, value }) => name !== 'href' || /^(?:https?:|mailto:|tel:|#)/i.test(value.trim()),
  );
  if (element.tagName !== 'img') {
    element.attrs = element.attrs.filter(({ name }) => name !== 'src');
    return true;
  }
  const attributeOf = (name: string) => element.attrs.find((attribute) => attribute.name === name)?.value ?? '';
  const image = checkImage(attributeOf('src'), budget);
  if (image === undefined) {
    if (attributeOf('alt') !== '') siblings.push(text(attributeOf('alt'), element));
    return false;
  }
  element.attrs = element.attrs.filter(({ name }) => name !== 'src');
  element.attrs.push({ name: 'src', value: image.src });
  // CSS pixels of the file, for an image without a size of its own.
  element.attrs.push({ name: 'data-size', value: `${image.width} ${image.height}` });
  return true;
}

// An SVG may name files in `href`, and in `url(...)`: only its own parts and data stay.
function cleanSvgElement(element: Element, budget: ImageBudget): void {
  element.attrs = element.attrs.filter(({ name, value }) => {
    if (/^(?:on|data-)/i.test(name)) return false;
    if (name === 'href' || name === 'src') {
      if (/^\s*#/.test(value)) return true;
      return element.tagName === 'image' && checkImage(value, budget) !== undefined;
    }
    return !/url\(\s*['"]?\s*(?!['"]?\s*#)/i.test(value) && !/[\\]/.test(value);
  });
  if (element.tagName === 'style') {
    const css = element.childNodes.map((child) => ('value' in child ? child.value : '')).join('');
    element.childNodes = [text(cleanCss(css), element)];
  }
}

/** CSS without the rules and values that name something outside. */
function cleanCss(css: string): string {
  return css
    .replace(/\/\*[^*]*\*+(?:[^/*][^*]*\*+)*\//g, ' ')
    .replace(/@(?:import|charset|namespace)\b[^;{}]*;?/gi, '')
    .replace(/url\([^)]*\)?/gi, 'none')
    .replace(/\\/g, '');
}

function spanOf(value: string): string {
  const span = Number.parseInt(value, 10);
  return String(Number.isFinite(span) ? Math.min(Math.max(span, 1), MAX_SPAN) : 1);
}

function text(value: string, parentNode: Element): DefaultTreeAdapterTypes.TextNode {
  return { nodeName: '#text', value, parentNode } as DefaultTreeAdapterTypes.TextNode;
}

const isBlock = (node: Node | undefined) => node !== undefined && 'tagName' in node && BLOCKS.has(node.tagName);
const isBreak = (node: Node | undefined) => node?.nodeName === 'br';

// Blanks as a browser shows them: one space between words, and none at the edges of a block.
function withoutBlanks(parent: Element, children: readonly Node[]): Node[] {
  if (parent.tagName === 'style') return [...children];
  const parentIsBlock = isBlock(parent as Node) || parent.nodeName === '#document';
  return children.filter((child, i) => {
    if (!('value' in child)) return true;
    const [before, after] = [children[i - 1], children[i + 1]];
    const atStart = before === undefined ? parentIsBlock : isBlock(before) || isBreak(before);
    const atEnd = after === undefined ? parentIsBlock : isBlock(after) || isBreak(after);
    let value = child.value.replace(/[ \t\r\n\f]+/g, ' ');
    if (atStart) value = value.replace(/^ /, '');
    if (atEnd) value = value.replace(/ $/, '');
    child.value = value;
    return value !== '';
  });
}

const elementsOf = (parent: Element, ...names: readonly string[]) =>
  parent.childNodes.filter((child): child is Element => 'tagName' in child && names.includes(child.tagName));

/** Adds the cells that a row lacks, and cuts spans that reach beyond the table: the layout needs rows of one length. */
function completeTable(table: Element): void {
  const groups = elementsOf(table, 'thead', 'tbody', 'tfoot');
  const order = ['thead', 'tbody', 'tfoot'];
  groups.sort((a, b) => order.indexOf(a.tagName) - order.indexOf(b.tagName));
  table.childNodes = [...table.childNodes.filter((child) => !groups.includes(child as Element)), ...groups];
  const rows = groups.flatMap((group) => elementsOf(group, 'tr'));
  for (const group of groups) group.childNodes = elementsOf(group, 'tr');
  // Of each row: how many columns are taken by cells of the rows above.
  const taken = rows.map(() => 0);
  const widths = rows.map((row, at) => {
    row.childNodes = elementsOf(row, 'td', 'th');
    let width = taken[at] as number;
    for (const cell of row.childNodes as Element[]) {
      const columns = span(cell, 'colspan');
      const down = Math.min(span(cell, 'rowspan'), rows.length - at);
      setSpan(cell, 'rowspan', down);
      for (let below = 1; below < down; below++) (taken[at + below] as number) += columns;
      width += columns;
    }
    return width;
  });
  const widest = Math.max(1, ...widths);
  rows.forEach((row, at) => {
    for (let missing = widest - (widths[at] as number); missing > 0; missing--) row.childNodes.push(emptyCell(row));
  });
}

function span(cell: Element, name: string): number {
  return Number(cell.attrs.find((attribute) => attribute.name === name)?.value ?? 1);
}

function setSpan(cell: Element, name: string, value: number): void {
  for (const attribute of cell.attrs) if (attribute.name === name) attribute.value = String(value);
}

function emptyCell(row: Element): Element {
  const cell = {
    nodeName: 'td',
    tagName: 'td',
    attrs: [],
    childNodes: [],
    namespaceURI: row.namespaceURI,
    parentNode: row,
  };
  return cell as unknown as Element;
}
