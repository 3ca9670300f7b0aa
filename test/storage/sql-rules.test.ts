/** The rules for SQL statements, where the scanner and a database could read a text differently. */

import { describe, expect, it } from 'vitest';
import { checkSql, type SqlUse } from '../../src/adapters/storage/sql/sql-rules.ts';
import type { Json } from '../../src/engine/base/json/json.ts';
import type { SqlDialect } from '../../src/engine/storage/sql-text.ts';

function check(sql: string, dialect: SqlDialect, use: SqlUse = 'read', values: readonly Json[] = []) {
  return checkSql({ strings: sql.split('{}'), values }, use, dialect);
}

const READ_FILE = 'pg_read_file($$/etc/passwd$$)';

describe('a statement for Postgres is refused if it hides code behind', () => {
  it.each([
    ["a text that continues E'...' in the next line", `SELECT E''\n'\\' || ' || ${READ_FILE} || ' -- '`],
    ['the same after a comment', `SELECT e'' -- x\n'\\' || ' || ${READ_FILE} || ' -- '`],
    ['a name that ends with E, and begins with a sign', `SELECT €E'\\' , ${READ_FILE} --'`],
    ['a name that begins with a space that is not ASCII', `SELECT \u00a0E'\\' , ${READ_FILE} --'`],
    ['a tag that is not of letters', `SELECT $€$ ' $€$, ${READ_FILE} --'`],
    ['a comment that a carriage return ends', `SELECT 1 -- \r, ${READ_FILE}`],
  ])('%s', (_title, sql) => {
    expect(() => check(sql, 'postgres')).toThrow(/pg_read_file is not allowed|a text follows E|a quote does not end/);
  });

  it.each([
    "UPDATE pg_settings SET setting = 'ensemble' WHERE name = 'search_path'",
    'UPDATE t SET a = (SELECT pg_logfile_rotate())',
    'INSERT INTO t SELECT pg_stat_reset()',
  ])('%s', (sql) => {
    expect(() => check(sql, 'postgres', 'write')).toThrow('reaches outside the data');
  });
});

it.each([
  "SELECT current_setting('data_directory')",
  'SELECT usename, query FROM pg_stat_activity',
  'SELECT inet_server_addr()',
  'SELECT rolname FROM pg_catalog.pg_roles',
  'SELECT usename FROM "pg_user"',
])('a query for Postgres does not show the server: %s', (sql) => {
  expect(() => check(sql, 'postgres')).toThrow('reaches outside the data');
  expect(check('SELECT current_date, status, roles FROM pg_typeof_log', 'postgres').verb).toBe('SELECT');
});

describe('a statement for Postgres is accepted with', () => {
  it.each([
    ["SELECT E'it\\'s' || 'a', 'b'", 'texts that are apart'],
    ["SELECT 'a'\n'b', $ü$ ' $ü$, naïve, 日本.語 FROM 日本", 'names and tags in any script'],
    ["SELECT doc ? 'key', doc ?| ARRAY['a'], doc @> '[]'::jsonb FROM t", 'operators for JSON'],
    ["WITH values AS (SELECT 1), t(a) AS (SELECT 2) SELECT * FROM t -- it's\n", 'names of queries that are keywords'],
  ])('%s', (sql) => {
    expect(check(sql, 'postgres').verb).toBe('SELECT');
  });
});

it.each<SqlDialect>(['postgres', 'sqlite'])('the name of a query in WITH does not hide a change, in %s', (dialect) => {
  const sql = 'WITH values AS (SELECT 1) DELETE FROM t';
  expect(() => check(sql, dialect)).toThrow('DELETE changes data');
  expect(check(sql, dialect, 'write').verb).toBe('DELETE');
});

it.each<SqlDialect>(['postgres', 'sqlite'])('a value that touches a number or a name is refused, in %s', (dialect) => {
  expect(() => check('SELECT {}5, {}', dialect, 'read', [1, 2])).toThrow('a value is joined to 5');
  expect(() => check('SELECT {}{}', dialect, 'read', [1, 2])).toThrow('a value is joined');
  expect(check('SELECT {} AS a, {}, ({})+{}', dialect, 'read', [1, 2, 3, 4]).verb).toBe('SELECT');
});

it('a comment of SQLite goes on after a carriage return', () => {
  expect(check("SELECT 1 -- it's\rload_extension('x')\n", 'sqlite').verb).toBe('SELECT');
  expect(() => check("SELECT 1 -- it's\n, load_extension('x')", 'sqlite')).toThrow('reaches outside the data');
});
