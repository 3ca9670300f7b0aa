/** Scans SQL text with gaps for values: finds gaps where no value can stand, and a second statement. */

/** Where a problem begins: before which gap, or at an index of one of the texts. */
export interface SqlProblem {
  readonly message: string;
  /** The number of the gap; undefined for a problem of the text itself. */
  readonly gap?: number;
  /** The number of the text, for a problem of the text itself. */
  readonly text: number;
  readonly index: number;
}

type TokenKind = 'word' | 'symbol' | 'quoted' | 'open' | 'gap';

interface SqlToken {
  readonly kind: TokenKind;
  /** Words in capitals. Empty for quoted text that is closed, or the name of what is open at a gap. */
  readonly text: string;
  readonly segment: number;
  readonly index: number;
  /** Whether the token touches the one before it. */
  readonly touches: boolean;
}

/** Words before a name. A value after one of them would be a name. */
const BEFORE_NAME: ReadonlySet<string> = new Set(
  (
    'FROM JOIN INTO UPDATE TABLE AS BY SET EXISTS ONLY INDEX VIEW COLUMN SCHEMA DATABASE REFERENCES COLLATE CONSTRAINT WINDOW OVER ' +
    'TRIGGER FUNCTION TRUNCATE'
  ).split(' '),
);
/** Words that begin a list of names, which commas separate. */
const LISTS: ReadonlySet<string> = new Set(['FROM', 'BY', 'SET', 'INTO', 'TABLE', 'UPDATE', 'JOIN', 'TRUNCATE']);
/** Words that end such a list. */
const LIST_ENDS: ReadonlySet<string> = new Set(
  'WHERE VALUES SELECT LIMIT OFFSET HAVING ON RETURNING UNION EXCEPT INTERSECT FETCH FOR DEFAULT'.split(' '),
);
const STATEMENTS: ReadonlySet<string> = new Set('SELECT INSERT UPDATE DELETE WITH VALUES MERGE REPLACE'.split(' '));

/**
 * Knows quoted text with doubled quotes, `E'...'` with escapes, names in `[...]`, text between `$tag$`, and comments, which may be nested.
 * Whether a text is valid SQL is for the database to say.
 *
 * @param strings - the texts around the gaps, one more than there are gaps
 * @returns the first problem
 */
export function scanSql(strings: readonly string[]): SqlProblem | undefined {
  const tokens = [...tokenizeSql(strings)];
  const stack: Frame[] = [{ list: undefined, isQuery: true, isColumns: false }];
  let ended = false;
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i] as SqlToken;
    const { kind, text, segment, index } = token;
    const at = { text: segment, index };
    if (kind === 'open') return openProblem(text, token, tokens[i + 1]);
    if (ended) return { ...at, ...(kind === 'gap' && { gap: segment }), message: SECOND_STATEMENT };
    if (text === ';' && kind === 'symbol') ended = true;
    else if (kind === 'gap') {
      const message = problemOfGap(tokens, i, stack.at(-1) as Frame);
      if (message !== undefined) return { ...at, gap: segment, message };
    } else follow(tokens, i, stack);
  }
  return undefined;
}

const SECOND_STATEMENT = 'a query is one statement: run each further statement with an agent of its own';
const NAME_PLACE =
  "is in the place of a name, such as that of a table or a column; a value is passed as a parameter, which can't be a name: write the name into the query, or choose between several queries with `condition`";
const NAME_PART =
  "is joined to the text next to it; a value is passed as a parameter, which can't be a part of a name or of a number: write a space between them, or join texts in SQL with ||";
const IN_LIST =
  'follows `IN` without brackets; write `IN (${a}, ${b})` with one value each, or pass a list as JSON text to a function such as `json_each`';
const STATEMENT_PLACE =
  'is the statement itself; write the SQL into the query, and use ${...} for its values only, which are passed as parameters';

/** What is known about one level of brackets. */
interface Frame {
  /** The word that began a list of names. */
  list: string | undefined;
  /** Whether the level is a statement, and not the arguments of a function such as `trim(both from x)`. */
  isQuery: boolean;
  /** Whether the level is a list of columns. */
  readonly isColumns: boolean;
}

/** What is open at a gap, or at the end of the text. */
function openProblem(open: string, token: SqlToken, next: SqlToken | undefined): SqlProblem {
  const at = { text: token.segment, index: token.index };
  if (next?.kind !== 'gap') return { ...at, message: `${open} is not closed` };
  const isComment = open === '--' || open === '/*';
  const message = isComment
    ? 'is in a comment, where it has no effect; remove it, or end the comment before it'
    : `is between quotes (${open}), where a parameter is plain text; remove the quotes, or join texts in SQL with ||`;
  return { text: next.segment, index: next.index, gap: next.segment, message };
}

function problemOfGap(tokens: readonly SqlToken[], i: number, frame: Frame): string | undefined {
  const token = tokens[i] as SqlToken;
  const previous = tokens[i - 1];
  const next = tokens[i + 1];
  if (!previous) return STATEMENT_PLACE;
  if (previous.text === '.' || next?.text === '.' || previous.text === '::') return NAME_PLACE;
  if ((token.touches && isValue(previous)) || (next?.touches && isValue(next))) return NAME_PART;
  if (next?.text === '(') return NAME_PLACE;
  const isList = previous.text === ',' && previous.kind === 'symbol';
  if (frame.isColumns && (isList || previous.text === '(')) return NAME_PLACE;
  if (isList) return frame.list === undefined ? undefined : NAME_PLACE;
  if (previous.kind !== 'word') return undefined;
  if (previous.text === 'IN') return IN_LIST;
  return BEFORE_NAME.has(previous.text) && !isComparison(tokens, i - 1, frame) ? NAME_PLACE : undefined;
}

function isValue({ kind }: SqlToken): boolean {
  return kind === 'word' || kind === 'quoted' || kind === 'gap';
}

/** `IS DISTINCT FROM x`, and `extract(year FROM x)`. */
function isComparison(tokens: readonly SqlToken[], i: number, { isQuery }: Frame): boolean {
  if (tokens[i]?.text !== 'FROM') return false;
  return !isQuery || tokens[i - 1]?.text === 'DISTINCT';
}

/** Keeps the brackets and the lists of names. */
function follow(tokens: readonly SqlToken[], i: number, stack: Frame[]): void {
  const { kind, text } = tokens[i] as SqlToken;
  const frame = stack.at(-1) as Frame;
  if (kind === 'symbol' && (text === '(' || text === '[')) {
    const before = tokens[i - 1];
    const isColumns = text === '(' && (frame.list === 'INTO' || before?.text === 'USING');
    stack.push({ list: undefined, isQuery: false, isColumns });
  } else if (kind === 'symbol' && (text === ')' || text === ']')) {
    if (stack.length > 1) stack.pop();
  } else if (kind === 'word') {
    if (STATEMENTS.has(text)) frame.isQuery = true;
    if (LISTS.has(text) && !isComparison(tokens, i, frame)) frame.list = text;
    else if (LIST_ENDS.has(text)) frame.list = undefined;
  }
}

/** The state of the scan: what is open across gaps. */
interface OpenText {
  /** How messages name it: `'`, `"`, `` ` ``, `[`, `$tag$`, `--` or `/*`. */
  readonly name: string;
  /** Finds its end from an index. @returns the index after it, or -1 */
  readonly end: (text: string, from: number) => number;
}

function* tokenizeSql(strings: readonly string[]): Generator<SqlToken> {
  let touches = false;
  let previous = '';
  for (let segment = 0; segment < strings.length; segment++) {
    const text = strings[segment] as string;
    if (segment > 0) {
      yield { kind: 'gap', text: '', segment: segment - 1, index: (strings[segment - 1] as string).length, touches };
      touches = true;
      previous = '';
    }
    for (let at = 0; at < text.length; ) {
      const space = /[\s\ufeff]+/y;
      space.lastIndex = at;
      if (space.test(text)) {
        at = space.lastIndex;
        touches = false;
        continue;
      }
      const open = openAt(text, at, touches ? previous : '');
      if (open) {
        const end = open.end(text, at);
        // A comment line ends with the last text.
        if (end < 0 && (open.name !== '--' || segment < strings.length - 1)) {
          yield { kind: 'open', text: open.name, segment, index: at, touches };
          if (segment === strings.length - 1) return;
          yield { kind: 'gap', text: '', segment, index: text.length, touches: true };
          return;
        }
        const isComment = open.name === '--' || open.name === '/*';
        if (!isComment) yield { kind: 'quoted', text: '', segment, index: at, touches };
        at = end < 0 ? text.length : end;
        touches = !isComment;
        previous = '';
        continue;
      }
      const word = WORD.exec(text.slice(at, at + MAX_WORD))?.[0];
      const token = word ?? (text.startsWith('::', at) ? '::' : (text[at] as string));
      previous = word === undefined ? token : word.toUpperCase();
      yield { kind: word === undefined ? 'symbol' : 'word', text: previous, segment, index: at, touches };
      at += token.length;
      touches = true;
    }
  }
}

const WORD = /^[\w\u0080-\uffff][\w$\u0080-\uffff]*/;
const MAX_WORD = 256;

/** What is opened at an index. @param before - the token that touches it */
function openAt(text: string, at: number, before: string): OpenText | undefined {
  const two = text.slice(at, at + 2);
  if (two === '--') return { name: '--', end: (all, from) => after(all, '\n', from) };
  if (two === '/*') return { name: '/*', end: endOfComment };
  const character = text[at] as string;
  if (character === "'") {
    const escapes = before === 'E';
    return { name: "'", end: (all, from) => endOfQuotes(all, from, "'", escapes) };
  }
  if (character === '"' || character === '`') {
    return { name: character, end: (all, from) => endOfQuotes(all, from, character, false) };
  }
  // Right after a name or a bracket, `[` is the index of an array.
  if (character === '[' && !/[\w\])\u0080-\uffff]$/.test(before)) {
    return { name: '[', end: (all, from) => after(all, ']', from) };
  }
  if (character === '$' && !/[\w$\u0080-\uffff]$/.test(before)) {
    const tag = /^\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/.exec(text.slice(at, at + MAX_WORD))?.[0];
    if (tag !== undefined) return { name: tag, end: (all, from) => after(all, tag, from + tag.length) };
  }
  return undefined;
}

function after(text: string, end: string, from: number): number {
  const found = text.indexOf(end, from);
  return found < 0 ? -1 : found + end.length;
}

function endOfQuotes(text: string, from: number, quote: string, escapes: boolean): number {
  for (let at = from + 1; at < text.length; at++) {
    if (escapes && text[at] === '\\') at++;
    else if (text[at] === quote) {
      if (text[at + 1] !== quote) return at + 1;
      at++;
    }
  }
  return -1;
}

function endOfComment(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const two = text.slice(at, at + 2);
    if (two === '/*') depth++;
    else if (two === '*/') depth--;
    else continue;
    at++;
    if (depth === 0) return at + 1;
  }
  return -1;
}
