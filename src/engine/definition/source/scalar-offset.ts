/** Maps an offset in the value of a YAML string to the offset in its source. */

/** How a scalar is written, with the names of the `yaml` package. */
export type ScalarStyle = 'PLAIN' | 'QUOTE_SINGLE' | 'QUOTE_DOUBLE' | 'BLOCK_LITERAL' | 'BLOCK_FOLDED';

/**
 * Maps an offset in the value of a scalar to the offset in its source.
 *
 * @param style - how the scalar is written
 * @param source - the scalar as written, with its quotes or its block header
 * @param value - the value of the scalar
 * @param offset - UTF-16 units into the value. An offset after its end gives the end of the content
 * @returns UTF-16 units into the source
 */
export function scalarSourceOffset(style: ScalarStyle, source: string, value: string, offset: number): number {
  const at = Math.max(0, Math.min(offset, value.length));
  if (style === 'BLOCK_LITERAL' || style === 'BLOCK_FOLDED') return blockOffset(source, value, at);
  return flowOffset(style, source, at);
}

function flowOffset(style: 'PLAIN' | 'QUOTE_SINGLE' | 'QUOTE_DOUBLE', source: string, offset: number): number {
  let at = style === 'PLAIN' ? 0 : 1;
  let done = 0;
  while (done < offset && at < source.length) {
    const char = source[at];
    const blanks = blanksAt(source, at);
    let taken = 1;
    let given = 1;
    if (blanks.includes('\n')) {
      // White space with line breaks is folded: one break becomes a space, and n breaks become n - 1 breaks.
      taken = blanks.length;
      given = Math.max(1, blanks.split('\n').length - 2);
    } else if (style === 'QUOTE_SINGLE' && char === "'") {
      taken = 2;
    } else if (style === 'QUOTE_DOUBLE' && char === '\\') {
      [taken, given] = escapeLengths(source, at);
    }
    if (done + given > offset) return at;
    done += given;
    at += taken;
  }
  // An escaped line break gives no character, so the offset is that of the next character.
  while (style === 'QUOTE_DOUBLE' && /^\\\r?\n/.test(source.slice(at, at + 3))) at += escapeLengths(source, at)[0];
  return at;
}

/** The length of an escape in the source, and the length of its value in UTF-16 units. */
function escapeLengths(source: string, at: number): [taken: number, given: number] {
  const kind = source[at + 1];
  if (kind === '\n' || kind === '\r') {
    const blank = /\\\r?\n[ \t]*/y;
    blank.lastIndex = at;
    return [blank.exec(source)?.[0].length ?? 2, 0];
  }
  if (kind === 'x') return [4, 1];
  if (kind === 'u') return [6, 1];
  if (kind === 'U') return [10, Number.parseInt(source.slice(at + 2, at + 10), 16) > 0xffff ? 2 : 1];
  return [2, 1];
}

// After its header, a block contains the characters of its value in the same order. Only the white space differs.
function blockOffset(source: string, value: string, offset: number): number {
  let at = source.indexOf('\n') + 1 || source.length;
  for (let done = 0; ; done++, at++) {
    const blanks = blanksAt(value, done).length;
    if (done + blanks > offset) return at;
    if (blanks > 0 || done === 0) at += blanksAt(source, at).length;
    done += blanks;
    if (done === offset) return at;
  }
}

function blanksAt(text: string, at: number): string {
  const blanks = /[ \t\r\n]*/y;
  blanks.lastIndex = at;
  return (blanks.exec(text) as RegExpExecArray)[0];
}
