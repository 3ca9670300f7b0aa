/** Maps a character of a YAML string's value back to the character of the source that it came from. */

/** How a scalar was written; the names are those of the `yaml` package. */
export type ScalarStyle = 'PLAIN' | 'QUOTE_SINGLE' | 'QUOTE_DOUBLE' | 'BLOCK_LITERAL' | 'BLOCK_FOLDED';

/**
 * The offset in the scalar's source that stands for an offset in its value.
 *
 * @param style - how the scalar was written
 * @param source - the scalar as written, with its quotes or its block header
 * @param value - the text it gave
 * @param offset - UTF-16 units into the value; past its end gives the end of the content
 * @returns UTF-16 units into the source
 */
export function scalarSourceOffset(style: ScalarStyle, source: string, value: string, offset: number): number {
  const at = Math.max(0, Math.min(offset, value.length));
  if (style === 'BLOCK_LITERAL') return literalOffset(source, value, at);
  if (style === 'BLOCK_FOLDED') return foldedOffset(source, value, at);
  return flowOffset(style, source, at);
}

function flowOffset(style: 'PLAIN' | 'QUOTE_SINGLE' | 'QUOTE_DOUBLE', source: string, offset: number): number {
  let at = style === 'PLAIN' ? 0 : 1;
  let done = 0;
  while (done < offset && at < source.length) {
    const char = source[at] as string;
    let taken = 1;
    let given = 1;
    if (char === ' ' || char === '\t' || char === '\r' || char === '\n') {
      const blank = /[ \t\r\n]*/y;
      blank.lastIndex = at;
      const run = (blank.exec(source) as RegExpExecArray)[0];
      const breaks = run.split('\n').length - 1;
      // White space with a line break in it is folded: one break to a space, more to a break fewer.
      if (breaks > 0) {
        taken = run.length;
        given = Math.max(1, breaks - 1);
      }
    } else if (style === 'QUOTE_SINGLE' && char === "'") {
      taken = 2;
    } else if (style === 'QUOTE_DOUBLE' && char === '\\') {
      [taken, given] = escapeLengths(source, at);
    }
    if (done + given > offset) return at;
    done += given;
    at += taken;
  }
  // An escaped line break gives nothing: the character asked for is the one behind it.
  while (style === 'QUOTE_DOUBLE' && /^\\\r?\n/.test(source.slice(at, at + 3))) at += escapeLengths(source, at)[0];
  return at;
}

/** How long an escape is in the source, and what it gives in UTF-16 units. */
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

interface ContentLine {
  readonly start: number;
  readonly text: string;
}

// Every line of a literal gives one line of the value.
function literalOffset(source: string, value: string, offset: number): number {
  const lines = contentLines(source);
  const before = value.slice(0, offset);
  const line = lines[before.split('\n').length - 1];
  if (!line) return source.length;
  const column = offset - (before.lastIndexOf('\n') + 1);
  return line.start + Math.min(line.text.length, blockIndent(lines, value) + column);
}

// The lines of a folded block stand in the value in order, with a space or line breaks between them.
function foldedOffset(source: string, value: string, offset: number): number {
  const lines = contentLines(source);
  const indent = blockIndent(lines, value);
  let done = 0;
  let end = source.length;
  for (const line of lines) {
    const text = line.text.slice(indent);
    if (text === '') continue;
    while (value[done] === '\n') done++;
    if (offset < done) return end;
    if (offset < done + text.length) return line.start + indent + (offset - done);
    done += text.length;
    end = line.start + line.text.length;
    if (value[done] === ' ') done++;
  }
  return end;
}

function contentLines(source: string): ContentLine[] {
  const lines: ContentLine[] = [];
  let start = source.indexOf('\n') + 1;
  while (start > 0) {
    const end = source.indexOf('\n', start);
    const text = source.slice(start, end === -1 ? source.length : end).replace(/\r$/, '');
    lines.push({ start, text });
    start = end + 1;
  }
  return lines;
}

// An indentation indicator counts from the parent, which isn't known here; the value's own first line tells the same.
function blockIndent(lines: readonly ContentLine[], value: string): number {
  const inSource = lines.find((line) => line.text.trim() !== '')?.text.search(/[^ ]/) ?? 0;
  const inValue =
    value
      .split('\n')
      .find((line) => line.trim() !== '')
      ?.search(/[^ ]/) ?? 0;
  return Math.max(0, inSource - inValue);
}
