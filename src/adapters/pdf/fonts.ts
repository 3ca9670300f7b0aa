/** Fonts of the embedded renderer: which of them has which characters, and text in parts that one font can show. */

import type { PdfNode } from './convert-html.ts';
import { RefusedHtml } from './thread-messages.ts';

export const STYLES = ['normal', 'bold', 'italics', 'bolditalics'] as const;

/** A family that can be used. Its name is that of CSS. */
export interface Family {
  readonly name: string;
  /** Whether its normal style has a character. */
  has(codePoint: number): boolean;
}

/** Reads a font file. From fontkit. */
export type OpenFont = (file: Uint8Array) => { hasGlyphForCodePoint(codePoint: number): boolean };

/** @param fonts - the normal style of each. @returns the families in the order in which they are tried for a character */
export function toFamilies(fonts: Readonly<Record<string, Uint8Array>>, open: OpenFont): readonly Family[] {
  return Object.entries(fonts).map(([name, file]) => {
    const font = open(file);
    const known = new Map<number, boolean>();
    return {
      name,
      has(codePoint: number) {
        let has = known.get(codePoint);
        if (has === undefined) {
          has = font.hasGlyphForCodePoint(codePoint);
          known.set(codePoint, has);
        }
        return has;
      },
    };
  });
}

const NO_RIGHT_TO_LEFT =
  "it has text that is written from right to left, which the embedded renderer can't lay out; use chromiumPdf() or cloudflarePdf()";

interface FontChoice {
  readonly families: readonly Family[];
  readonly missingCharacter: string | undefined;
  /** What no font has. */
  readonly missing: Set<string>;
}

const MAX_SHOWN = 20;
/** Characters that are not shown: controls, soft hyphens, marks of direction and width, variation selectors. */
const UNSEEN = /(?![\t\n\r\u200d])[\p{Cc}\p{Default_Ignorable_Code_Point}]/gu;
const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

/**
 * Gives each text a font that has its characters, in place.
 *
 * @throws RefusedHtml with the characters that no font has
 */
export function setFonts(
  content: readonly PdfNode[],
  families: readonly Family[],
  missingCharacter: string | undefined,
) {
  const choice: FontChoice = { families, missingCharacter, missing: new Set() };
  visit(content as PdfNode[], choice);
  if (choice.missing.size === 0) return;
  const shown = [...choice.missing].slice(0, MAX_SHOWN).map((cluster) => `${cluster} (${codesOf(cluster)})`);
  const more = choice.missing.size > MAX_SHOWN ? ` and ${choice.missing.size - MAX_SHOWN} more` : '';
  throw new RefusedHtml(
    `no font of the embedded renderer has ${shown.join(', ')}${more}. Pass a font that has them: \`embeddedPdf({ fonts: { Name: { normal } } })\`, install \`dejavu-fonts-ttf\` for symbols, or set \`missingCharacter\``,
  );
}

function codesOf(cluster: string): string {
  return [...cluster]
    .map((character) => `U+${character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`)
    .join(' ');
}

function visit(nodes: readonly (PdfNode | string)[], choice: FontChoice): void {
  nodes.forEach((node, i) => {
    if (typeof node === 'string') {
      (nodes as (PdfNode | string)[])[i] = toRuns(node, undefined, choice) as PdfNode | string;
      return;
    }
    if (typeof node !== 'object' || node === null) return;
    if (typeof node.svg === 'string') {
      setSvgFont(node, node.svg, choice);
      return;
    }
    const wanted = node.font === undefined ? undefined : familyOf(String(node.font), choice.families);
    if (wanted === undefined) delete node.font;
    else node.font = wanted;
    if (typeof node.text === 'string') node.text = toRuns(node.text, node.font, choice) as PdfNode['text'];
    for (const part of [node.text, node.stack, node.ul, node.ol, node.columns, ...(node.table?.body ?? [])])
      if (Array.isArray(part) && part !== node.text) visit(part, choice);
      else if (Array.isArray(part))
        visit(
          part.filter((run) => !(run as PdfNode).isRun),
          choice,
        );
  });
}

/** The families that an SVG can use, whose texts have one font: the renderer of SVGs reads fonts by their path. */
const SVG_FAMILIES: ReadonlySet<string> = new Set(['Roboto', 'DejaVu Sans']);

function setSvgFont(node: PdfNode, svg: string, choice: FontChoice): void {
  node.svg = svg.replace(/\bfont-family\s*=\s*(?:"[^"]*"|'[^']*')/gi, '').replace(/\bfont-family\s*:[^;"'}<>]*/gi, '');
  const families = choice.families.filter(({ name }) => SVG_FAMILIES.has(name));
  const shown = svg
    .replace(/<style[\s\S]*?<\/style>/gi, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(UNSEEN, '');
  if (RIGHT_TO_LEFT.test(shown)) throw new RefusedHtml(NO_RIGHT_TO_LEFT);
  const family = families.find((candidate) => hasAll(candidate, shown));
  node.font = (family ?? families[0])?.name;
  if (family) return;
  for (const character of shown)
    if (!families.some((candidate) => hasAll(candidate, character))) choice.missing.add(character);
  if (choice.missing.size === 0)
    throw new RefusedHtml('an SVG has characters that no single font has; split its text into two SVGs');
}

/** The family that CSS names, if it is there. `monospace` is DejaVu's, if that is installed. */
function familyOf(given: string, families: readonly Family[]): string | undefined {
  // The converter leaves spaces out, and changes the case.
  const plain = (name: string) => name.replace(/\s+/g, '').toLowerCase();
  return families.find(({ name }) => plain(name) === plain(given))?.name;
}

const segmenter = () => new Intl.Segmenter('und', { granularity: 'grapheme' });

function toRuns(given: string, wanted: string | undefined, choice: FontChoice): string | PdfNode[] {
  const text = given.normalize('NFC').replace(UNSEEN, '');
  if (RIGHT_TO_LEFT.test(text)) throw new RefusedHtml(NO_RIGHT_TO_LEFT);
  const first = choice.families.find(({ name }) => name === wanted) ?? choice.families[0];
  const order = first ? [first, ...choice.families.filter((family) => family !== first)] : [];
  if (hasAll(first, text)) return text;
  const runs: { text: string; font?: string; isRun: true }[] = [];
  for (const { segment } of segmenter().segment(text)) {
    const family = order.find((candidate) => hasAll(candidate, segment));
    const shown = family ? segment.replaceAll('\u200d', '') : (choice.missingCharacter ?? '');
    if (!family && choice.missingCharacter === undefined) choice.missing.add(segment);
    const font = family?.name ?? first?.name;
    const last = runs.at(-1);
    if (last && last.font === font) last.text += shown;
    else runs.push({ text: shown, ...(font !== undefined && { font }), isRun: true });
  }
  return runs;
}

function hasAll(family: Family | undefined, text: string): boolean {
  if (!family) return false;
  for (const character of text) {
    const code = character.codePointAt(0) as number;
    // A joiner has no shape of its own.
    if (code > 0x20 && code !== 0xa0 && code !== 0x200d && !family.has(code)) return false;
  }
  return true;
}
