/** Reads the tokens of an SQL statement: words, quoted names, texts, placeholders. Comments are left out. */

import { OrchestratorError } from '../base/errors.ts';

/** Stands for a bound value in the text of a statement. No SQL text contains it. */
export const VALUE_MARK = '\u0000';

export type SqlDialect = 'sqlite' | 'postgres';

export interface SqlToken {
  /**
   * `word`: a keyword, a name without quotes or a number. `name`: a name in quotes. `text`: a text in quotes. `placeholder`: `?`,
   * `$1`, `:name`. `value`: {@link VALUE_MARK}. `mark`: any other character.
   */
  readonly kind: 'word' | 'name' | 'text' | 'placeholder' | 'value' | 'mark';
  /** Without its quotes; quotes inside stay doubled. */
  readonly text: string;
  /** Where it begins and where it ends, in UTF-16 units. */
  readonly start: number;
  readonly end: number;
}

type Kind = SqlToken['kind'] | 'skip';

/** Where a token ends, found by one sticky expression for each kind. */
type Rule = readonly [kind: Kind, pattern: RegExp, quotes?: number];

// Only ASCII has spaces and marks: for the databases, every other character is a part of a name.
const SPACE: Rule = ['skip', /[ \t\n\v\f\r]+/y];
const TEXT: Rule = ['text', /'(?:[^']|'')*'/y, 1];
const NAMES: Rule = ['name', /"(?:[^"]|"")*"/y, 1];
const WORD: Rule = ['word', /[A-Za-z0-9_\u0080-\u{10ffff}][A-Za-z0-9_$\u0080-\u{10ffff}]*/uy];
const REST: readonly Rule[] = [WORD, ['mark', /[\s\S]/y]];

const POSTGRES: readonly Rule[] = [
  SPACE,
  ['skip', /--[^\n\r]*/y],
  ['text', /[eE]'(?:[^'\\]|\\[\s\S]|'')*'/y, 2],
  TEXT,
  NAMES,
  ['text', /\$((?:[A-Za-z_\u0080-\u{10ffff}][A-Za-z0-9_\u0080-\u{10ffff}]*)?)\$[\s\S]*?\$\1\$/uy],
  ['placeholder', /\$\d+/y],
  ...REST,
];

const SQLITE: readonly Rule[] = [
  SPACE,
  ['skip', /--[^\n]*/y],
  // SQLite ends an open comment at the end of the text.
  ['skip', /\/\*[\s\S]*?(?:\*\/|$)/y],
  TEXT,
  NAMES,
  ['name', /`(?:[^`]|``)*`/y, 1],
  ['name', /\[[^\]]*\]/y, 1],
  ['placeholder', /\?\d*|[:@$][A-Za-z0-9_$\u0080-\u{10ffff}]+/uy],
  ...REST,
];

/** For text whose database is not known: what any of them reads as a placeholder is one. */
const ANY: readonly Rule[] = [
  ...POSTGRES.slice(0, 5),
  ['name', /`(?:[^`]|``)*`/y, 1],
  ...POSTGRES.slice(5, 7),
  ['mark', /::/y],
  ['placeholder', /\?|:[\p{L}_][\p{L}\p{N}_]*/uy],
  ...REST,
];

const RULES = { postgres: POSTGRES, sqlite: SQLITE };

/**
 * @param dialect - left out where the database is not known
 * @throws INVALID_INPUT for a quote or a comment that does not end, for a value inside of one, and for text that continues `E'...'`
 */
export function scanSql(text: string, dialect?: SqlDialect): readonly SqlToken[] {
  const rules = dialect === undefined ? ANY : RULES[dialect];
  const tokens: SqlToken[] = [];
  for (let start = 0; start < text.length; ) {
    const [kind, end, quotes] = readToken(text, start, rules, dialect);
    const whole = text.slice(start, end);
    if (whole.length > 1 && kind !== 'value' && whole.includes(VALUE_MARK))
      throw refuseSql('a value stands inside quotes or a comment; write it without quotes');
    if (kind !== 'skip') {
      // Postgres reads a text in the next line as a part of this one, with escapes too.
      const before = tokens.at(-1);
      if (kind === 'text' && whole[0] === "'" && before?.kind === 'text' && /e/i.test(text[before.start] as string))
        throw refuseSql("a text follows E'...'; write them as one text, or join them with ||");
      const inner = quotes === undefined ? whole : whole.slice(quotes, -1);
      tokens.push({ kind, text: inner, start, end });
    }
    start = end;
  }
  return tokens;
}

function readToken(text: string, start: number, rules: readonly Rule[], dialect: SqlDialect | undefined) {
  if (dialect !== 'sqlite' && text.startsWith('/*', start)) return ['skip', endOfComment(text, start)] as const;
  for (const [kind, pattern, quotes] of rules) {
    pattern.lastIndex = start;
    if (pattern.test(text)) {
      if (kind === 'mark' && /['"`]/.test(text[start] as string)) throw refuseSql('a quote does not end');
      return [text[start] === VALUE_MARK ? 'value' : kind, pattern.lastIndex, quotes] as const;
    }
  }
  return ['mark', start + 1] as const;
}

/** Comments of Postgres can contain comments. */
function endOfComment(text: string, start: number): number {
  const ends = /\/\*|\*\//g;
  ends.lastIndex = start;
  for (let depth = 0, found = ends.exec(text); found; found = ends.exec(text)) {
    depth += found[0] === '/*' ? 1 : -1;
    if (depth === 0) return ends.lastIndex;
  }
  throw refuseSql('a comment does not end');
}

/** The error of a statement that no database gets. */
export function refuseSql(why: string): OrchestratorError {
  return new OrchestratorError('INVALID_INPUT', `SQL: ${why}`);
}
