/** CSV by RFC 4180: rows as text, and text as rows. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';

const LINE_END = '\r\n';

/** With what a spreadsheet begins a formula, also in the wide forms of East Asian text. */
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const NEGATIVE_NUMBER = /^-\d+(\.\d+)?$/;

/** A line with its end. A line with one empty cell is `""`, because readers skip empty lines. */
export function toCsvLine(cells: readonly Json[]): string {
  const line = cells.map(toCell).join(',');
  return (line === '' && cells.length === 1 ? '""' : line) + LINE_END;
}

/** Null is empty, and arrays and objects are JSON. */
function toCell(value: Json): string {
  if (value === null) return '';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  // The apostrophe makes it text. A text that is a negative number can't do harm.
  const safe = FORMULA.test(text) && !NEGATIVE_NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Rows as objects; the first line has the names of the columns. All values are text. @throws INVALID_INPUT */
export function fromCsv(text: string): readonly JsonObject[] {
  const [names = [], ...lines] = readLines(text.replace(/^\ufeff/, ''));
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw invalid(`two columns are named ${JSON.stringify(twice)}`);
  return lines.map((cells, i) => {
    if (cells.length !== names.length)
      throw invalid(`line ${i + 2} has ${cells.length} cells, but the first line has ${names.length}`);
    return Object.fromEntries(cells.map((cell, at) => [names[at] as string, cell]));
  });
}

// Without a choice for each character, for which long cells would need too much stack.
const CELL = /"([^"]*(?:""[^"]*)*)"|[^",\r\n]*/y;
const AFTER_CELL = /,|\r\n|\n|\r|$/y;

function readLines(text: string): readonly (readonly string[])[] {
  const lines: string[][] = [];
  let line: string[] = [];
  for (let at = 0; at < text.length || line.length > 0; ) {
    CELL.lastIndex = at;
    const [whole = '', quoted] = CELL.exec(text) ?? [];
    AFTER_CELL.lastIndex = at + whole.length;
    const end = AFTER_CELL.exec(text)?.[0];
    if (end === undefined) throw invalid(`line ${lines.length + 1} has a quote that does not begin or end its cell`);
    line.push(quoted === undefined ? whole : quoted.replaceAll('""', '"'));
    at += whole.length + end.length;
    if (end === ',') continue;
    // An empty line is not a row.
    if (line.length > 1 || whole !== '') lines.push(line);
    line = [];
  }
  return lines;
}

function invalid(why: string): OrchestratorError {
  return new OrchestratorError('INVALID_INPUT', `storage: the text is not CSV: ${why}`);
}
