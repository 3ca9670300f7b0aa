/** A problem while a definition is checked, before it knows its line: collected by path, turned into issues at the end. */

import { formatPath, type Json } from '../json.ts';
import { valueAt } from '../value-at.ts';
import type { DefinitionIssue } from './definition-issue.ts';
import { markLength } from './mark-length.ts';
import type { SourceMap } from './source-map.ts';
import { printable } from './wording.ts';

export type Path = readonly (string | number)[];

export interface Problem {
  /** Path in the source as its author wrote it. */
  readonly path: Path;
  readonly message: string;
  readonly suggestion?: string | undefined;
  /** The problem is the key at the path, not its value. */
  readonly key?: boolean;
  /** Characters into the text at the path. */
  readonly offset?: number;
  readonly length?: number;
  /** Set when the definition is right and the host lacks something: names the option to set. */
  readonly notConfigured?: boolean;
  /** Nothing is wrong, but hardly what was meant, or not yet served: it is told, and refuses nothing. */
  readonly warning?: boolean;
}

/** The map of a source that was text, with the text itself. */
export interface LocatedSource extends SourceMap {
  /** Without byte-order mark. */
  readonly text: string;
  readonly value: Json;
}

// Nobody reads more at once, and a hostile text can have as many as it has characters.
const MAX_ISSUES = 100;

/** Gives each problem its place in the source, in the order of the source. */
export function toIssues(
  problems: readonly Problem[],
  source: LocatedSource | undefined,
  file?: string,
): DefinitionIssue[] {
  const lines = source?.text.split('\n') ?? [];
  const issues = problems.slice(0, MAX_ISSUES).map((problem) => toIssue(problem, source, lines, file));
  issues.sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
  if (problems.length > MAX_ISSUES) {
    const message = `only ${MAX_ISSUES} of ${problems.length} problems are shown; solve these first`;
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
  const { path, suggestion } = problem;
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

// Escapes take more room in the source than in the value, so that the end is looked up like the start.
function spanOf(problem: Problem, source: LocatedSource, start: { line: number; column: number }): number {
  const { offset = 0, length = 1, path } = problem;
  const end = source.locate(path, { offset: offset + length });
  return end && end.line === start.line ? Math.max(1, end.column - start.column) : Number.MAX_SAFE_INTEGER;
}
