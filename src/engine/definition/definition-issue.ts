/** One problem of a definition, and how it is printed; made by the reading, checking and compiling of definitions. */

/** One problem of a definition: where it stands, what is wrong there and what was expected. */
export interface DefinitionIssue {
  /** Path inside the definition, such as `flow[2].condition`; empty for the document as a whole. */
  readonly path: string;
  /** What is wrong, and what was expected. */
  readonly message: string;
  /** Counted from 1; absent when the definition was an object. */
  readonly line?: number;
  /** In UTF-16 units, counted from 1; absent when the definition was an object. */
  readonly column?: number;
  /** The lines of the source around the problem, with a marker under it. */
  readonly frame?: string;
  /** The nearest name that would be valid. */
  readonly suggestion?: string;
  /** File name, when known. */
  readonly source?: string;
  /**
   * Among the definitions of `createOrchestrator`: the name of the ensemble, or its place such as `ensembles[2]` when its name
   * could not be read.
   */
  readonly ensemble?: string;
}

/** The parts of a printed issue, so that a terminal can colour each; a part that the issue has not is ''. */
export interface IssueParts {
  /** `file:line:column`, or what is known of it. */
  readonly place: string;
  readonly path: string;
  readonly message: string;
  readonly frame: string;
  /** What to do instead, such as: did you mean `x`? */
  readonly help: string;
}

/**
 * Takes an issue apart for printing.
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
