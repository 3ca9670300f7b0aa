/** Reads the inline styles of elements: lengths, colours and borders. */

/** What is read of an element of the document. */
export interface StyledElement {
  readonly nodeName: string;
  readonly textContent: string | null;
  readonly parentNode: StyledElement | null;
  readonly children: ArrayLike<StyledElement>;
  getAttribute(name: string): string | null;
}

export const PX = 0.75;
const UNITS: Readonly<Record<string, number>> = {
  px: PX,
  pt: 1,
  mm: 72 / 25.4,
  cm: 72 / 2.54,
  in: 72,
  pc: 12,
  em: 12,
  rem: 12,
};
/** The width of a line whose style names none, in points. */
export const DEFAULT_LINE = 0.75;
const MAX_LINE = 6;

export type Style = ReadonlyMap<string, string>;

/** The declarations of an element. The later of two with one name wins. */
export function readStyle(element: StyledElement): Style {
  const declarations = (element.getAttribute('style') ?? '').split(';').map((part) => {
    const colon = part.indexOf(':');
    const value = part.slice(colon + 1).replace(/!important/i, '');
    return [part.slice(0, colon).trim().toLowerCase(), value.trim().toLowerCase()] as const;
  });
  return new Map(declarations.filter(([name]) => name !== ''));
}

/** @returns points; undefined for what is not a length, such as a percentage */
export function toPoints(value: string | null | undefined, bare = 1): number | undefined {
  const found = /^(-?\d{0,6}(?:\.\d{1,6})?)(px|pt|mm|cm|in|pc|r?em)?$/.exec((value ?? '').trim());
  if (!found || found[1] === '' || found[1] === '-') return undefined;
  return Number(found[1]) * (found[2] === undefined ? bare : (UNITS[found[2]] as number));
}

export function isColor(value: string | undefined): value is string {
  return (
    value !== undefined &&
    /^(?:#[0-9a-f]{3}|#[0-9a-f]{6}|[a-z]{3,30}|rgba?\([\d\s,.%/]+\))$/i.test(value) &&
    !/^(?:none|transparent|inherit|initial|unset)$/i.test(value)
  );
}

export function toHex(color: string): string {
  const parts = /^rgba?\(([\d\s,.%/]+)\)$/i
    .exec(color)?.[1]
    ?.split(/[\s,/]+/)
    .filter((part) => part !== '');
  if (!parts) return color;
  const hex = parts.slice(0, 3).map((part) => {
    const value = part.endsWith('%') ? Number.parseFloat(part) * 2.55 : Number.parseFloat(part);
    return Math.min(255, Math.max(0, Math.round(value || 0)))
      .toString(16)
      .padStart(2, '0');
  });
  return `#${hex.join('').padEnd(6, '0')}`;
}

function borderOf(style: Style, side: string): string | undefined {
  return style.get(`border-${side}`) ?? style.get('border');
}

export function borderWidth(style: Style, side: string): number {
  const border = borderOf(style, side);
  if (border === undefined || /\b(?:none|hidden)\b/.test(border)) return 0;
  const width = border
    .split(/\s+/)
    .map((part) => toPoints(part))
    .find((points) => points !== undefined);
  return Math.min(width ?? DEFAULT_LINE, MAX_LINE);
}

const BORDER_WORDS: ReadonlySet<string> = new Set(
  'solid dashed dotted double groove ridge inset outset none hidden thin medium thick currentcolor'.split(' '),
);

export function borderColor(style: Style, side: string): string {
  const found = /#[0-9a-f]{3,6}\b|rgba?\([^)]*\)/i.exec(borderOf(style, side) ?? '')?.[0];
  const words = (borderOf(style, side) ?? '').split(/\s+/);
  const named = words.find((word) => /^[a-z]+$/.test(word) && !BORDER_WORDS.has(word));
  return toHex(found ?? named ?? '#000000');
}
