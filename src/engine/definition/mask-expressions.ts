/** Keeps unquoted `${...}` whole where YAML would cut it: at `{`, `}`, `,` inside `{ id: ${input.id} }`, or at ` : `. */

// Each ASCII character has a stand-in of the same length in the private use area, so that no offset moves.
const BASE = 0xf600;
// A stand-in in the text, or an escape that gives one.
const STAND_IN = /[\uf600-\uf67f]|\\(?:u|U0000)[fF]6[0-7]/;
const STAND_INS = /[\uf600-\uf67f]/g;

/** One `${...}`, from its `$` to behind its `}`. */
export interface ExpressionSpan {
  readonly start: number;
  readonly end: number;
}

/** Whether a text can be masked: not when it uses the stand-ins itself. */
export function canMask(text: string): boolean {
  return !STAND_IN.test(text);
}

/**
 * Replaces all but letters and digits of each span by stand-ins, which mean nothing to YAML.
 *
 * @param text - the source
 * @param spans - in order, not overlapping
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

/** Puts the characters back that stand-ins stand for. */
export function unmask(text: string): string {
  return text.replace(STAND_INS, (char) => String.fromCharCode(char.charCodeAt(0) - BASE));
}

function standIn(char: string): string {
  return String.fromCharCode(char.charCodeAt(0) + BASE);
}

/**
 * Makes the search for expressions that the end of a plain scalar cuts in two: begun inside it, closed behind it on
 * the same line. One search belongs to one text, and is linear in it.
 *
 * @param text - the source
 */
export function createCutSearch(text: string): (start: number, end: number) => ExpressionSpan | undefined {
  // A line of thousands of unclosed expressions would be scanned to its end for each; such a text is broken anyway.
  let scansLeft = 4 * text.length + 1024;
  return (start, end) => {
    // The `{` of a cut expression can be the first character behind the scalar.
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

// The `}` that ends the expression begun before `at`: braces are counted, those in quotes are not. When there is none,
// the place where the search ended, negative.
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
