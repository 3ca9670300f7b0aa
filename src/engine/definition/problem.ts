/** A problem while a definition is checked, before it knows its line: collected by path, turned into issues at the end. */

import { formatPath } from '../json.ts';
import type { DefinitionIssue } from './definition-issue.ts';
import type { SourceMap } from './source-map.ts';

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
}

/** Gives each problem its place in the source, in the order of the source. */
export function toIssues(problems: readonly Problem[], map: SourceMap | undefined, source?: string): DefinitionIssue[] {
  const issues = problems.map((problem) => toIssue(problem, map, source));
  return issues.sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
}

function toIssue(problem: Problem, map: SourceMap | undefined, source: string | undefined): DefinitionIssue {
  const place = map?.locate(problem.path, {
    ...(problem.key ? { key: true } : {}),
    ...(problem.offset === undefined ? {} : { offset: problem.offset }),
  });
  return {
    path: formatPath(problem.path),
    message: problem.message,
    ...(place ? { line: place.line, column: place.column } : {}),
    ...(place && map ? { frame: map.frame(place.line, place.column, problem.length ?? markLength(problem)) } : {}),
    ...(problem.suggestion === undefined ? {} : { suggestion: problem.suggestion }),
    ...(source === undefined ? {} : { source }),
  };
}

function markLength(problem: Problem): number | undefined {
  const last = problem.path.at(-1);
  return problem.key && typeof last === 'string' ? last.length : undefined;
}
