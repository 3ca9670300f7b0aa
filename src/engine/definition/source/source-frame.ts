/** Converts offsets of a text to lines and columns, and prints the lines around a place as compilers do. */

import { printable } from '../../base/wording.ts';

/** A place in a text. Lines and columns are counted from 1, columns in UTF-16 units. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** The lines of one text. */
export interface SourceLines {
  /** The place of an offset. An offset after the end gives the end. */
  place(offset: number): Place;
  /** The lines up to a place, with `length` (default 1) characters marked. */
  frame(line: number, column: number, length?: number): string;
}

const CONTEXT_LINES = 2;
const MAX_WIDTH = 100;
const TAB = '    ';
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/g;

/**
 * Prepares a text for looking up places.
 *
 * @param text - the whole text, with LF or CRLF at the ends of lines
 */
export function createSourceLines(text: string): SourceLines {
  let starts: readonly number[] | undefined;
  const lineStarts = () => {
    starts ??= findLineStarts(text);
    return starts;
  };
  const lineText = (line: number): string => {
    const start = lineStarts()[line - 1];
    if (start === undefined) return '';
    const end = lineStarts()[line];
    return text.slice(start, end === undefined ? text.length : end - 1).replace(/\r$/, '');
  };
  return {
    place(offset) {
      const at = Math.max(0, Math.min(offset, text.length));
      let low = 0;
      let high = lineStarts().length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if ((lineStarts()[middle] as number) <= at) low = middle;
        else high = middle - 1;
      }
      return { line: low + 1, column: at - (lineStarts()[low] as number) + 1 };
    },
    frame: (line, column, length = 1) => drawFrame(lineText, line, column, length),
  };
}

function findLineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

function drawFrame(lineText: (line: number) => string, line: number, column: number, length: number): string {
  const marked = lineText(line);
  const index = Math.max(0, Math.min(column - 1, marked.length));
  const from = index > MAX_WIDTH - 20 ? index - MAX_WIDTH / 2 : 0;
  const numberWidth = Math.max(2, String(line).length);
  const out: string[] = [];
  for (let at = Math.max(1, line - CONTEXT_LINES); at <= line; at++) {
    const text = cut(lineText(at), from);
    out.push(`  ${String(at).padStart(numberWidth)} |${text ? ` ${text}` : ''}`);
  }
  const before = toPrintable(marked.slice(from, index)).replace(WIDE, '  ').length + (from > 0 ? 1 : 0);
  const end = Math.max(index + 1, Math.min(index + length, from + MAX_WIDTH));
  const marks = toPrintable(marked.slice(index, end)).replace(WIDE, '  ').length;
  out.push(`  ${' '.repeat(numberWidth)} | ${' '.repeat(before)}${'^'.repeat(Math.max(1, marks))}`);
  return out.join('\n');
}

function cut(line: string, from: number): string {
  const text = toPrintable(line.slice(from, from + MAX_WIDTH));
  const left = from > 0 && line.length > 0 ? '…' : '';
  return `${left}${text}${line.length > from + MAX_WIDTH ? '…' : ''}`;
}

function toPrintable(text: string): string {
  return printable(text.replaceAll('\t', TAB));
}
