/** Problems that the checks of a definition report by path, and their conversion to issues with a line and a frame. */

import type { DefinitionIssue } from '../../base/errors.ts';
import { formatPath, type Json } from '../../base/json/json.ts';
import { valueAt } from '../../base/json/value-at.ts';
import { printable } from '../../base/wording.ts';
import type { SourceMap } from './source-map.ts';

export type Path = readonly (string | number)[];

export interface Problem {
  /** Path in the source, as its author wrote it. */
  readonly path: Path;
  readonly message: string;
  readonly suggestion?: string | undefined;
  /** The problem is about the key at the path, not about its value. */
  readonly key?: boolean;
  /** The offset of the problem in the text at the path, in characters. */
  readonly offset?: number;
  readonly length?: number;
  /** Set when the definition is valid, but the host does not have what it needs. The message names the option to set. */
  readonly notConfigured?: boolean;
  /** The issue itself, when its place in the text is known already. */
  readonly placed?: DefinitionIssue;
  /** The part is valid, but probably not what the author meant, or not served by this version. It refuses nothing. */
  readonly warning?: boolean;
}

/** The source map of a definition that was text, with the text and its data. */
export interface LocatedSource extends SourceMap {
  /** The text, without a byte-order mark. */
  readonly text: string;
  readonly value: Json;
}

// Nobody reads more at once, and a hostile text can have as many problems as characters.
const MAX_ISSUES = 100;

/** Converts problems to issues with their places, in the order of the source. */
export function toIssues(
  problems: readonly Problem[],
  source: LocatedSource | undefined,
  file?: string,
): DefinitionIssue[] {
  const lines = source?.text.split('\n') ?? [];
  const issues = problems.slice(0, MAX_ISSUES).map((problem) => toIssue(problem, source, lines, file));
  issues.sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
  if (problems.length > MAX_ISSUES) {
    const message = `only ${MAX_ISSUES} of ${problems.length} problems are shown; fix these first`;
    const last = source ? endOf(issues) : {};
    issues.push({ path: '', message, ...last, ...(file === undefined ? {} : { source: file }) });
  }
  return issues;
}

function endOf(issues: readonly DefinitionIssue[]): Pick<DefinitionIssue, 'line' | 'column'> {
  const { line = 1, column = 1 } = issues.at(-1) ?? {};
  return { line, column };
}

function toIssue(
  problem: Problem,
  source: LocatedSource | undefined,
  lines: readonly string[],
  file: string | undefined,
): DefinitionIssue {
  const { path, suggestion, placed } = problem;
  if (placed) return file === undefined ? placed : { ...placed, source: file };
  return {
    path: printable(formatPath(path)),
    message: printable(problem.message),
    ...(source && placeOf(problem, source, lines)),
    ...(suggestion === undefined ? {} : { suggestion: printable(suggestion) }),
    ...(file === undefined ? {} : { source: file }),
  };
}

function placeOf(problem: Problem, source: LocatedSource, lines: readonly string[]): Partial<DefinitionIssue> {
  const { path, key, offset } = problem;
  const place = source.locate(path, { ...(key ? { key } : {}), ...(offset === undefined ? {} : { offset }) });
  if (!place) return {};
  const { line, column } = place;
  const rest = (lines[line - 1] ?? '').slice(column - 1);
  const length =
    offset === undefined
      ? markLength(rest, (key ? path.at(-1) : valueAt(source.value, path)) as Json | undefined)
      : spanOf(problem, source, place);
  return { line, column, frame: source.frame(line, column, length) };
}

// An escape is longer in the source than in the value, so the end is looked up in the same way as the start.
function spanOf(problem: Problem, source: LocatedSource, start: { line: number; column: number }): number {
  const { offset = 0, length = 1, path } = problem;
  const end = source.locate(path, { offset: offset + length });
  return end && end.line === start.line ? Math.max(1, end.column - start.column) : Number.MAX_SAFE_INTEGER;
}

/**
 * The number of characters that a frame marks: the key or value that starts at a place, up to the end of its line.
 *
 * @param line - the text from that place to the end of the line
 * @param value - the value, when it is known: it shows where unquoted text ends
 */
function markLength(line: string, value: Json | undefined): number {
  const text = line.trimEnd();
  const first = text[0];
  if (first === '"' || first === "'") return quotedLength(text, first);
  if (first === '[' || first === '{') return collectionLength(text);
  if (first === '|' || first === '>') return (/^[|>][-+0-9]*/.exec(text) as RegExpExecArray)[0].length;
  if (typeof value === 'string' && value !== '' && text.startsWith(value)) return value.length;
  return plainLength(text);
}

function quotedLength(text: string, quote: string): number {
  for (let at = 1; at < text.length; at++) {
    if (text[at] === '\\' && quote === '"') at++;
    else if (text[at] === quote && text[at + 1] === quote && quote === "'") at++;
    else if (text[at] === quote) return at + 1;
  }
  return text.length;
}

// Ends at the closing bracket. Brackets inside quotes don't count.
function collectionLength(text: string): number {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at] as string;
    if (char === '"' || (char === "'" && /[\s,[{:]/.test(text[at - 1] ?? '')))
      at += quotedLength(text.slice(at), char) - 1;
    else if (char === '[' || char === '{') depth++;
    else if ((char === ']' || char === '}') && --depth === 0) return at + 1;
  }
  return text.length;
}

// When the value is not known, unquoted text ends at the end of a key, at a comment or at the end of a flow collection's entry.
function plainLength(text: string): number {
  if (/^[-?](\s|$)/.test(text)) return 1;
  const end = /:(?=\s|$)|\s#|[,\]}]/.exec(text)?.index ?? text.length;
  return Math.max(1, text.slice(0, end).trimEnd().length);
}
