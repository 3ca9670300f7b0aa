/** Keeps an unquoted `${...}` whole where YAML would cut it: at `{`, `}` or `,` inside `{ id: ${input.id} }`, or at ` : `. */

// Each ASCII character has a stand-in of the same length in the private use area, so that all offsets stay the same.
const BASE = 0xf600;
// A stand-in in the text, or an escape sequence for a stand-in.
const STAND_IN = /[\uf600-\uf67f]|\\(?:u|U0000)[fF]6[0-7]/;
const STAND_INS = /[\uf600-\uf67f]/g;

/** The place of one `${...}`: `start` is its `$`, `end` is after its `}`. */
export interface ExpressionSpan {
  readonly start: number;
  readonly end: number;
}

/** Whether a text can be masked. A text that contains stand-ins itself can't be masked. */
export function canMask(text: string): boolean {
  return !STAND_IN.test(text);
}

/**
 * Replaces the characters of each span, except letters and digits, by stand-ins, which have no meaning in YAML.
 *
 * @param text - the source
 * @param spans - in order and without overlaps
 */
export function maskExpressions(text: string, spans: readonly ExpressionSpan[]): string {
  let out = '';
  let done = 0;
  for (const { start, end } of spans) {
    out += text.slice(done, start + 1);
    out += text.slice(start + 1, end).replace(/[^A-Za-z0-9\u0080-\uffff]/g, standIn);
    done = end;
  }
  return out + text.slice(done);
}

/** Replaces stand-ins by the original characters. */
export function unmask(text: string): string {
  return text.replace(STAND_INS, (char) => String.fromCharCode(char.charCodeAt(0) - BASE));
}

function standIn(char: string): string {
  return String.fromCharCode(char.charCodeAt(0) + BASE);
}

/**
 * Creates the search for expressions that the end of a plain scalar cuts in two: an expression that begins inside the scalar
 * and closes after it, on the same line. A search belongs to one text, and its time is linear in the length of the text.
 *
 * @param text - the source
 */
export function createCutSearch(text: string): (start: number, end: number) => ExpressionSpan | undefined {
  // Limits the scans of a line with thousands of unclosed expressions. Such a text is broken anyway.
  let scansLeft = 4 * text.length + 1024;
  return (start, end) => {
    // The `{` of a cut expression can be the first character after the scalar.
    const scalar = text.slice(start, end + 1);
    let at = scalar.indexOf('${');
    while (at !== -1 && at < end - start && scansLeft > 0) {
      const close = findClose(text, start + at + 2);
      scansLeft -= Math.abs(close) - start - at;
      if (close < 0) return undefined;
      if (close >= end) return { start: start + at, end: close + 1 };
      at = scalar.indexOf('${', close - start);
    }
    return undefined;
  };
}

// Finds the `}` that ends the expression that began before `at`. Braces are counted, except in quotes. When there is none, it
// returns the negative index at which the search ended.
function findClose(text: string, at: number): number {
  let depth = 0;
  let quote = '';
  let i = at;
  for (; i < text.length; i++) {
    const char = text[i] as string;
    if (char === '\n') break;
    if (quote) {
      if (char === '\\') i++;
      else if (char === quote) quote = '';
    } else if (char === "'" || char === '"') quote = char;
    else if (char === '{') depth++;
    else if (char === '}' && depth-- === 0) return i;
  }
  return -i;
}
