/** Parses a JavaScript regular expression with the flag `u`, the form that JSON Schema has, to a tree with all that its cost depends on. */

import { onceEach } from '../base/once.ts';

/** Ranges of code points, both ends included. */
export type Chars = readonly (readonly [number, number])[];

export type PatternNode =
  | { readonly kind: 'chars'; readonly chars: Chars }
  | { readonly kind: 'sequence'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'choice'; readonly options: readonly PatternNode[] }
  | { readonly kind: 'repeat'; readonly body: PatternNode; readonly min: number; readonly max: number }
  /** `^` and `$`. */
  | { readonly kind: 'edge'; readonly end: boolean }
  | { readonly kind: 'look'; readonly body: PatternNode; readonly isLookBehind: boolean };

const LAST = 0x10ffff;
export const EVERY: Chars = [[0, LAST]];
const DIGIT: Chars = [[48, 57]];
const WORD: Chars = [...DIGIT, [65, 90], [95, 95], [97, 122]];
const SPACE: Chars = [
  ...([
    [9, 13],
    [32, 32],
    [0xa0, 0xa0],
    [0x1680, 0x1680],
    [0x2000, 0x200a],
    [0x2028, 0x2029],
    [0x202f, 0x202f],
    [0x205f, 0x205f],
    [0x3000, 0x3000],
    [0xfeff, 0xfeff],
  ] as const),
];
const LINE_END: Chars = [
  [10, 10],
  [13, 13],
  [0x2028, 0x2029],
];
const CLASSES: Readonly<Record<string, Chars>> = {
  ...{ d: DIGIT, w: WORD, s: SPACE },
  ...{ D: complement(DIGIT), W: complement(WORD), S: complement(SPACE) },
};
const CONTROLS: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, v: 11, f: 12 };
const NOTHING: PatternNode = { kind: 'sequence', parts: [] };

/** All other characters. */
function complement(chars: Chars): Chars {
  const out: [number, number][] = [];
  let next = 0;
  for (const [from, to] of [...chars].sort((a, b) => a[0] - b[0])) {
    if (from > next) out.push([next, from - 1]);
    next = Math.max(next, to + 1);
  }
  if (next <= LAST) out.push([next, LAST]);
  return out;
}

/** The union of character sets, in few ranges. */
export function union(...all: readonly Chars[]): Chars {
  return complement(complement(all.flat()));
}

/** Where characters are assigned, in whole blocks. All others of a range that follows are alike. */
const ASSIGNED: Chars = [
  [0, 0x33fff],
  [0xe0000, 0xe0fff],
];
const ALIKE: Chars = [
  [0x34000, 0xdffff],
  [0xe1000, LAST],
];
const BLOCK = 256;
const MAX_PROPERTIES = 1_000;

/** The characters of a Unicode property, such as `\p{L}`, as the runtime knows them. It takes some 30 ms. */
const charsOfProperty = onceEach((property: string): Chars => {
  const [any, all, runs] = [
    new RegExp(property, 'u'),
    new RegExp(`^${property}+$`, 'u'),
    new RegExp(`${property}+`, 'gu'),
  ];
  const found: (readonly [number, number])[] = [];
  const points = new Array<number>(BLOCK);
  for (const [from, to] of ASSIGNED)
    for (let start = from; start <= to; start += BLOCK) {
      for (let i = 0; i < BLOCK; i++) points[i] = start + i;
      const text = String.fromCodePoint(...points);
      if (!any.test(text)) continue;
      const units = start > 0xffff ? 2 : 1;
      if (all.test(text)) found.push([start, start + BLOCK - 1]);
      else
        for (const { 0: run, index } of text.matchAll(runs))
          found.push([start + index / units, start + (index + run.length) / units - 1]);
    }
  for (const range of ALIKE) if (any.test(String.fromCodePoint(range[0]))) found.push(range);
  return union(found);
}, MAX_PROPERTIES);

/**
 * @param source - a pattern that is valid with the flag `u`
 * @returns undefined for unsupported syntax: back-references and group flags
 */
export function readPattern(source: string): PatternNode | undefined {
  let at = 0;

  const next = (): number => {
    const code = source.codePointAt(at) as number;
    at += code > 0xffff ? 2 : 1;
    return code;
  };

  const choice = (): PatternNode | undefined => {
    const options: PatternNode[] = [];
    do {
      const option = sequence();
      if (!option) return undefined;
      options.push(option);
    } while (source[at] === '|' && ++at);
    return options.length === 1 ? options[0] : { kind: 'choice', options };
  };

  const sequence = (): PatternNode | undefined => {
    const parts: PatternNode[] = [];
    while (at < source.length && source[at] !== '|' && source[at] !== ')') {
      const part = atom();
      if (!part) return undefined;
      parts.push(quantified(part));
    }
    return { kind: 'sequence', parts };
  };

  const quantified = (body: PatternNode): PatternNode => {
    const [text, mark, minDigits, comma, maxDigits] =
      /^(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/.exec(source.slice(at, at + 40)) ?? [];
    if (text === undefined) return body;
    at += text.length;
    if (mark !== undefined)
      return { kind: 'repeat', body, min: mark === '+' ? 1 : 0, max: mark === '?' ? 1 : Infinity };
    const min = Number(minDigits);
    return { kind: 'repeat', body, min, max: comma === '' ? min : maxDigits === '' ? Infinity : Number(maxDigits) };
  };

  const atom = (): PatternNode | undefined => {
    const code = next();
    const char = String.fromCodePoint(code);
    if (char === '^' || char === '$') return { kind: 'edge', end: char === '$' };
    if (char === '.') return { kind: 'chars', chars: complement(LINE_END) };
    if (char === '[') return charClass();
    if (char === '(') return group();
    if (char !== '\\') return { kind: 'chars', chars: unit(code) };
    if (/[bB]/.test(source[at] ?? '')) {
      at++;
      return NOTHING;
    }
    if (/[1-9k]/.test(source[at] ?? '')) return undefined;
    return { kind: 'chars', chars: escaped() };
  };

  const group = (): PatternNode | undefined => {
    const opener = /^\?(?::|<?[=!]|<[A-Za-z_$][\w$]*>)/.exec(source.slice(at, at + 80))?.[0] ?? '';
    if (opener === '' && source[at] === '?') return undefined;
    at += opener.length;
    const body = choice();
    at++;
    const isLook = /^\?<?[=!]$/.test(opener);
    return body && isLook ? { kind: 'look', body, isLookBehind: opener[1] === '<' } : body;
  };

  const charClass = (): PatternNode => {
    const negated = source[at] === '^' && at++ > 0;
    const chars: (readonly [number, number])[] = [];
    while (at < source.length && source[at] !== ']') {
      const from = classUnit();
      const isRange = source[at] === '-' && source[at + 1] !== ']';
      if (!isRange) {
        chars.push(...from);
        continue;
      }
      at++;
      const to = classUnit();
      // With the flag `u`, both ends are single characters.
      chars.push([from[0]?.[0] as number, to[0]?.[0] as number]);
    }
    at++;
    return { kind: 'chars', chars: negated ? complement(chars) : chars };
  };

  const classUnit = (): Chars => {
    const code = next();
    if (code !== 92) return unit(code);
    if (source[at] !== 'b') return escaped();
    at++;
    return unit(8);
  };

  // Reads what follows the backslash. With the flag `u`, a character without a special meaning is not escaped, except in syntax.
  const escaped = (): Chars => {
    const code = next();
    const char = String.fromCodePoint(code);
    if (Object.hasOwn(CLASSES, char)) return CLASSES[char] as Chars;
    if (Object.hasOwn(CONTROLS, char)) return unit(CONTROLS[char] as number);
    if (char === '0') return unit(0);
    if (char === 'c') return unit(next() % 32);
    if (char === 'x') return unit(hexadecimal(/^[\da-f]{2}/i));
    if (char === 'p' || char === 'P') {
      const name = source.slice(at, source.indexOf('}', at) + 1);
      at += name.length;
      return charsOfProperty(`\\${char}${name}`);
    }
    if (char !== 'u') return unit(code);
    if (source[at] === '{') return unit(hexadecimal(/^\{([\da-f]+)\}/i));
    const high = hexadecimal(/^[\da-f]{4}/i);
    const low = /^\\u(d[c-f][\da-f]{2})/i.exec(source.slice(at, at + 6))?.[1];
    if (low === undefined || (high & 0xfc00) !== 0xd800) return unit(high);
    at += 6;
    return unit((high - 0xd800) * 0x400 + Number.parseInt(low, 16) - 0xdc00 + 0x10000);
  };

  const hexadecimal = (pattern: RegExp): number => {
    const [text = '', inside = text] = pattern.exec(source.slice(at)) ?? [];
    at += text.length;
    return Number.parseInt(inside, 16);
  };

  const root = choice();
  return at >= source.length ? root : undefined;
}

function unit(code: number): Chars {
  return [[code, code]];
}
