/** Reads the text of a definition (YAML or JSON) to JSON data with a map back to the text. */

import { type Document, isScalar } from 'yaml';
import type { DefinitionIssue } from '../../base/errors.ts';
import { formatPath, type Json } from '../../base/json/json.ts';
import { type NodeProblem, nodeToJson } from './node-to-json.ts';
import { parseYaml } from './parse-yaml.ts';
import { createSourceLines, type SourceLines } from './source-frame.ts';
import { createSourceMap, type SourceMap } from './source-map.ts';
import { explainYamlError, selectYamlErrors } from './yaml-errors.ts';

export type { SourceMap } from './source-map.ts';

/** The largest text of a definition, in bytes of UTF-8. Its expanded aliases may add the same number of characters. */
export const MAX_SOURCE_BYTES = 1024 * 1024;

/** The result of reading a text: its data and a map back to the text, or all its problems. */
export type ReadResult =
  | { readonly ok: true; readonly value: Json; readonly map: SourceMap }
  | { readonly ok: false; readonly issues: readonly DefinitionIssue[]; readonly rest?: PartialSource };

/** What can be checked of a text with problems. */
export interface PartialSource {
  readonly value: Json;
  readonly map: SourceMap;
  /** The issues, each with the path of its value. */
  readonly problems: readonly { readonly path: readonly (string | number)[]; readonly issue: DefinitionIssue }[];
}

const MAX_ISSUES = 100;
const SECOND_DOCUMENT = 'the text contains several documents; keep one and move each of the others to its own file';
const OLD_VERSION = 'the text asks for another version of YAML; only 1.2 is supported, so remove this line';
// Line feed, carriage return and tab are the only allowed control characters.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that are refused
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\ufffe\uffff]|[\ud800-\udfff]/u;

/**
 * Reads YAML 1.2 (core schema) or JSON text. An unquoted `${...}` on one line is always kept whole. It refuses: more
 * than 1 MiB, nesting past 64 levels, several documents, tags beyond the core schema, merge keys, duplicate keys, a
 * key `__proto__`, cycles, aliases that grow past the limit, integers beyond 2^53, NaN, infinities, and control
 * characters. Keys are always text, as written.
 *
 * @param text - decoded text. A byte-order mark at its start is skipped
 * @returns the data, or all issues of the text. The function doesn't throw
 */
export function readSource(text: string): ReadResult {
  const body = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  if (isTooLarge(body)) {
    return refuseWhole(`the document is larger than ${MAX_SOURCE_BYTES} bytes; split it`);
  }
  const lines = createSourceLines(body);
  const control = CONTROL.exec(body);
  if (control) return toRefusedSource(lines, [problemAt(explainControl(control[0]), control.index)]);
  const parsed = parseYaml(body);
  if (parsed.kind === 'refused') return toRefusedSource(lines, [problemAt(parsed.message, parsed.offset)]);
  const { document, errors, secondAt, restore } = parsed;
  const selected = selectYamlErrors(errors, (offset) => lines.place(offset).line);
  const problems = selected.errors.map((error): NodeProblem => {
    // The parser reports a wrong indentation at the start of the line. The frame marks the text after the indentation.
    const start = error.code === 'BAD_INDENT' ? skipSpaces(body, error.start) : error.start;
    return problemAt(explainYamlError(error, restore), start, Math.max(1, error.end - start));
  });
  if (secondAt !== undefined) problems.push(problemAt(SECOND_DOCUMENT, secondAt, 3));
  const { yaml } = document.directives;
  if (yaml.explicit && yaml.version !== '1.2') problems.push(problemAt(OLD_VERSION, body.indexOf('%YAML'), 9));
  if (problems.length === 0 && isEmpty(document)) return refuseWhole('the document is empty');
  // After a syntax error the tree is a guess, so problems found in it would be guesses too.
  if (selected.broken) return toRefusedSource(lines, problems);
  const converted = nodeToJson(document.contents, MAX_SOURCE_BYTES, restore);
  const all = problems.concat(converted.problems);
  const { aliases, keyText, value } = converted;
  const map = () => createSourceMap({ text: body, lines, root: document.contents, aliases, keyText });
  if (all.length === 0) return { ok: true, value, map: map() };
  const refused = toRefusedSource(lines, all);
  if (problems.length > 0 || !converted.usable || all.length > MAX_ISSUES) return refused;
  const placed = byPlace(all).map(({ path }, i) => ({ path, issue: refused.issues[i] as DefinitionIssue }));
  return { ...refused, rest: { value, map: map(), problems: placed } };
}

function isTooLarge(text: string): boolean {
  if (text.length > MAX_SOURCE_BYTES) return true;
  // A UTF-16 unit takes at most three bytes, so most texts need not be encoded.
  return text.length * 3 > MAX_SOURCE_BYTES && new TextEncoder().encode(text).length > MAX_SOURCE_BYTES;
}

function isEmpty(document: Document.Parsed): boolean {
  const { contents } = document;
  if (contents === null) return true;
  return isScalar(contents) && contents.value === null && contents.source === '' && !contents.tag && !contents.anchor;
}

function explainControl(char: string): string {
  const code = char.charCodeAt(0);
  const name = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  if (code === 0) return `the text contains a NUL character (${name}); is it UTF-16? Save it as UTF-8`;
  if (code >= 0xd800 && code <= 0xdfff)
    return `the text contains half of a surrogate pair (${name}), which is not a character; write the whole pair`;
  return `the text contains the control character ${name}; write it as an escape in double quotes, or remove it`;
}

function problemAt(message: string, start: number, length = 1): NodeProblem {
  return { path: [], message, start, end: start + length };
}

function byPlace(problems: readonly NodeProblem[]): NodeProblem[] {
  return [...problems].sort((a, b) => a.start - b.start);
}

function toRefusedSource(lines: SourceLines, problems: readonly NodeProblem[]): ReadResult & { readonly ok: false } {
  const issues: DefinitionIssue[] = byPlace(problems)
    .slice(0, MAX_ISSUES)
    .map(({ path, message, start, end }) => {
      const { line, column } = lines.place(start);
      return { path: formatPath(path), message, line, column, frame: lines.frame(line, column, end - start) };
    });
  if (problems.length > issues.length) {
    issues.push({ path: '', message: `only the first ${issues.length} problems are shown; fix these first` });
  }
  return { ok: false, issues };
}

function skipSpaces(text: string, start: number): number {
  let at = start;
  while (text[at] === ' ') at++;
  return at;
}

function refuseWhole(message: string): ReadResult {
  return { ok: false, issues: [{ path: '', message }] };
}
