/** The rules for statements that every `SqlDatabase` checks before it runs one: a single statement that stays within the data. */

import type { Json } from '../../../engine/base/json/json.ts';
import { isPlainText, type SqlStatement } from '../../../engine/storage/data.port.ts';
import { refuseSql, type SqlDialect, type SqlToken, scanSql, VALUE_MARK } from '../../../engine/storage/sql-text.ts';

/** What a statement is for: `read` for `query` and `stream`, `write` for `execute`. */
export type SqlUse = 'read' | 'write';

const READS: ReadonlySet<string> = new Set(['SELECT', 'VALUES', 'TABLE']);
const CHANGES: ReadonlySet<string> = new Set(['INSERT', 'UPDATE', 'DELETE', 'REPLACE', 'MERGE']);
const DEFINES: ReadonlySet<string> = new Set(['CREATE', 'ALTER', 'DROP', 'TRUNCATE', 'REFRESH']);
/** What a statement may create, alter or drop, and the words that may stand before. */
const THINGS: ReadonlySet<string> = new Set(['TABLE', 'INDEX', 'VIEW', 'SEQUENCE', 'TYPE', 'SCHEMA']);
const BEFORE_THINGS: ReadonlySet<string> = new Set([
  'OR',
  'REPLACE',
  'UNIQUE',
  'MATERIALIZED',
  'UNLOGGED',
  'RECURSIVE',
]);

/** Functions and tables that read or write files, reach other servers, run text as SQL, or show or change connections and settings. */
const OUTSIDE: Readonly<Record<SqlDialect, RegExp>> = {
  sqlite:
    /^(load_extension|readfile|writefile|fsdir|sha3_query|fts3_tokenizer|sqlite_dbpage|sqlite3mc_.*|carray|zipfile|sqlar_.*|sqlite_log|sqlcipher_.*|pragma_.*)$/i,
  postgres:
    /^(current_setting|inet_(server|client)_(addr|port)|pg_(read_|ls_|stat|locks|prepared_|cursors|roles|user$|group|db_role_|backend_pid|file_|terminate_|cancel_|reload_|rotate_|notify|(try_)?advisory|logical_|create_|drop_|replication_|export_|switch_|promote|wal_|backup_|start_backup|stop_backup|hba_|ident_|show_all|settings|logfile_|authid|auth_members|shadow|user_mapping|largeobject|import_|config|log_).*|lo_(import|export)|dblink.*|set_config|.*_to_xml.*|ts_stat|ts_rewrite|crosstab.*|connectby|xpath_table)$/i,
};

/** A statement as text with {@link VALUE_MARK} in place of each value. */
export interface CheckedSql {
  readonly text: string;
  readonly tokens: readonly SqlToken[];
  /** In upper case: `SELECT`, or `INSERT` also after `WITH ...`. */
  readonly verb: string;
}

/**
 * Checks a statement before a database gets it.
 *
 * @param hiddenSchemas - lower-case names of schemas that no statement may name
 * @throws INVALID_INPUT for more than one statement, for a statement of another kind than `use`, for one that reaches outside the data,
 *   and for a placeholder without a value
 */
export function checkSql(
  { strings, values }: SqlStatement,
  use: SqlUse,
  dialect: SqlDialect,
  hiddenSchemas: readonly string[] = [],
): CheckedSql {
  if (strings.length !== values.length + 1) throw refuseSql('a statement has one string more than values');
  if (!strings.every(isPlainText)) throw refuseSql('the text contains a NUL or half of a surrogate pair');
  let text = strings.join(VALUE_MARK);
  let tokens = scanSql(text, dialect);
  while (tokens.at(-1)?.text === ';') {
    text = text.slice(0, tokens.at(-1)?.start);
    tokens = tokens.slice(0, -1);
  }
  if (tokens.some(({ kind, text: mark }) => kind === 'mark' && mark === ';'))
    throw refuseSql('only one statement is allowed; use a step for each');
  const open = tokens.find(({ kind }) => kind === 'placeholder');
  if (open) throw refuseSql(`the placeholder ${open.text} has no value; give \`params\`, or write \${...}`);
  const verb = verbOf(tokens);
  checkVerb(verb, tokens, use);
  for (const [i, token] of tokens.entries()) {
    const next = tokens[i + 1];
    // A database would read them as one placeholder, such as `?5`.
    if (token.kind === 'value' && next?.start === token.end && next.kind !== 'mark')
      throw refuseSql(`a value is joined to ${next.text}; write a space between them`);
    checkName(token, next, dialect);
    if (hiddenSchemas.includes(nameOf(token)) && (next?.text === '.' || DEFINES.has(verb)))
      throw refuseSql(`no statement may name the schema ${token.text}; it holds the data of the orchestrator`);
  }
  return { text, tokens, verb };
}

/** The first word outside of parentheses that says what the statement does. */
function verbOf(tokens: readonly SqlToken[]): string {
  const first = tokens[0]?.kind === 'word' ? tokens[0].text.toUpperCase() : '';
  if (first !== 'WITH') return tokens[0]?.text === '(' ? 'SELECT' : first;
  let depth = 0;
  let before = '';
  for (const { kind, text } of tokens) {
    if (text === '(' && kind === 'mark') depth += 1;
    if (text === ')' && kind === 'mark') depth -= 1;
    if (depth > 0) continue;
    const word = text.toUpperCase();
    // The word after one of these is the name of a query.
    const isName = ['WITH', 'RECURSIVE', ','].includes(before);
    before = word;
    if (!isName && kind === 'word' && (READS.has(word) || CHANGES.has(word))) return word;
  }
  return first;
}

function checkVerb(verb: string, tokens: readonly SqlToken[], use: SqlUse): void {
  if (verb === '') throw refuseSql('there is no statement');
  if (use === 'read') {
    if (READS.has(verb)) return;
    if (CHANGES.has(verb) || DEFINES.has(verb)) throw refuseSql(`${verb} changes data; use \`action: execute\``);
    throw refuseSql(`${verb} is not allowed; a query begins with SELECT, WITH or VALUES`);
  }
  if (READS.has(verb)) throw refuseSql(`${verb} only reads; use \`action: query\``);
  if (CHANGES.has(verb) || verb === 'TRUNCATE') return;
  if (!DEFINES.has(verb))
    throw refuseSql(`${verb} is not allowed; \`execute\` changes rows, tables, indexes and views`);
  const words = tokens.slice(1).map(({ text }) => text.toUpperCase());
  const thing = words.find((word) => !BEFORE_THINGS.has(word)) ?? '';
  if (!THINGS.has(thing)) throw refuseSql(`${verb} ${thing} is not allowed; a table, an index, a view or a schema is`);
}

function nameOf({ kind, text }: SqlToken): string {
  return kind === 'word' ? text.toLowerCase() : text;
}

function checkName({ kind, text, end }: SqlToken, next: SqlToken | undefined, dialect: SqlDialect): void {
  if (kind !== 'word' && kind !== 'name' && !(kind === 'text' && dialect === 'sqlite')) return;
  if (OUTSIDE[dialect].test(text)) throw refuseSql(`${text} is not allowed, because it reaches outside the data`);
  // A name with escaped characters, of which the letters are not known.
  if (dialect === 'postgres' && /^u$/i.test(text) && next?.text === '&' && next.start === end)
    throw refuseSql('U& is not allowed; write the characters themselves');
}

/** Refuses texts that drivers would change. @returns the value as databases bind it: arrays and objects as JSON text */
export function toBound(value: Json): string | number | boolean | null {
  if (typeof value === 'object' && value !== null) return JSON.stringify(value);
  if (typeof value === 'string' && !isPlainText(value))
    throw refuseSql('a value contains a NUL or half of a surrogate pair, which no database stores');
  return value;
}

/**
 * The words of a database, without the values that were bound: texts of three characters and more, and numbers of three digits and
 * more. Shorter ones appear in any message by chance.
 */
export function withoutValues(message: string, values: readonly Json[]): string {
  let text = message;
  for (const value of values) {
    const bound = String(typeof value === 'object' ? JSON.stringify(value) : value);
    if (bound.length > 2 && typeof value !== 'boolean' && value !== null) text = text.replaceAll(bound, '...');
  }
  return text.length > 500 ? `${text.slice(0, 500)}...` : text;
}
