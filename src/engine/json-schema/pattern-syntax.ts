/** Parses a JavaScript regular expression without flags to a tree with all that its cost depends on. */

/** Ranges of UTF-16 units, both ends included. */
export type Chars = readonly (readonly [number, number])[];

export type PatternNode =
  | { readonly kind: 'chars'; readonly chars: Chars }
  | { readonly kind: 'sequence'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'choice'; readonly options: readonly PatternNode[] }
  | { readonly kind: 'repeat'; readonly body: PatternNode; readonly min: number; readonly max: number }
  /** `^` and `$`. */
  | { readonly kind: 'edge'; readonly end: boolean }
  | { readonly kind: 'look'; readonly body: PatternNode; readonly isLookBehind: boolean };

const LAST = 0xffff;
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

/** @param source - a valid pattern @returns undefined for unsupported syntax: back-references and group flags */
export function readPattern(source: string): PatternNode | undefined {
  let at = 0;

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
    const char = source[at++] as string;
    if (char === '^' || char === '$') return { kind: 'edge', end: char === '$' };
    if (char === '.') return { kind: 'chars', chars: complement(LINE_END) };
    if (char === '[') return charClass();
    if (char === '(') return group();
    if (char !== '\\') return one(char.charCodeAt(0));
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
      // Next to a class such as \d, a hyphen is a plain character.
      const isRange = source[at] === '-' && source[at + 1] !== ']' && at + 1 < source.length;
      if (!isRange) {
        chars.push(...from);
        continue;
      }
      at++;
      const to = classUnit();
      if (isUnit(from) && isUnit(to)) chars.push([from[0][0], to[0][0]]);
      else chars.push(...from, [45, 45], ...to);
    }
    at++;
    return { kind: 'chars', chars: negated ? complement(chars) : chars };
  };

  const classUnit = (): Chars => {
    const char = source[at++] as string;
    if (char !== '\\') return unit(char.charCodeAt(0));
    if (source[at] !== 'b') return escaped();
    at++;
    return unit(8);
  };

  // Reads the character after the backslash. A character without a special meaning is a plain character.
  const escaped = (): Chars => {
    const char = source[at++] ?? '\\';
    if (Object.hasOwn(CLASSES, char)) return CLASSES[char] as Chars;
    if (Object.hasOwn(CONTROLS, char)) return unit(CONTROLS[char] as number);
    if (char === 'c' && /[A-Za-z]/.test(source[at] ?? '')) return unit(source.charCodeAt(at++) % 32);
    const digits = char === 'x' ? 2 : char === 'u' ? 4 : 0;
    const hex = source.slice(at, at + digits);
    if (digits > 0 && hex.length === digits && /^[\da-f]+$/i.test(hex)) {
      at += digits;
      return unit(Number.parseInt(hex, 16));
    }
    if (char >= '0' && char <= '7') return unit(octal(char));
    return unit(char.charCodeAt(0));
  };

  const octal = (first: string): number => {
    const more = /^[0-7]{0,2}/.exec(source.slice(at))?.[0] ?? '';
    at += more.length;
    return Number.parseInt(first + more, 8) % 256;
  };

  const root = choice();
  return at >= source.length ? root : undefined;
}

function isUnit(chars: Chars): chars is readonly [readonly [number, number]] {
  const [[from, to] = [0, 1], ...more] = chars;
  return from === to && more.length === 0;
}

function unit(code: number): Chars {
  return [[code, code]];
}

function one(code: number): PatternNode {
  return { kind: 'chars', chars: unit(code) };
}
