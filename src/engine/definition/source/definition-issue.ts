/** How a problem of a definition is printed. */

import type { DefinitionIssue } from '../../base/errors.ts';

/** The parts of a printed issue, so that a terminal can colour each part. A part that the issue does not have is ''. */
export interface IssueParts {
  /** `file:line:column`, or the known part of it. */
  readonly place: string;
  readonly path: string;
  readonly message: string;
  readonly frame: string;
  /** What to do instead, such as: did you mean `x`? */
  readonly help: string;
}

/**
 * Splits an issue into the parts that are printed.
 *
 * @param issue - any issue
 */
export function issueParts(issue: DefinitionIssue): IssueParts {
  const place = [issue.source, issue.line, issue.line === undefined ? undefined : issue.column];
  return {
    place: place.filter((part) => part !== undefined && part !== '').join(':'),
    path: issue.path,
    message: issue.message,
    frame: issue.frame ?? '',
    help: issue.suggestion === undefined ? '' : `did you mean \`${issue.suggestion}\`?`,
  };
}

/**
 * Prints one issue as a compiler does, without colours: `file:line:column path: message`, the frame, then the help.
 *
 * @param issue - any issue
 * @returns one or several lines, without a line end
 */
export function formatIssue(issue: DefinitionIssue): string {
  const { place, path, message, frame, help } = issueParts(issue);
  const where = [place, path].filter((part) => part !== '').join(' ');
  const lines = [where ? `${where}: ${message}` : message];
  if (frame) lines.push(frame);
  if (help) lines.push(`help: ${help}`);
  return lines.join('\n');
}
