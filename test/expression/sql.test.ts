/** SQL text: each `${...}` becomes a bound parameter, and is refused where no value can stand. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSql } from '../../src/engine/expression/compile/compile-sql.ts';
import { scanSql } from '../../src/engine/expression/compile/scan-sql.ts';
import { ExpressionSyntaxError } from '../../src/engine/expression/syntax/expression-syntax-error.ts';
import { createEvaluation, optionsOf } from './expression-fixtures.ts';

const options = optionsOf({ input: { a: 'A', b: [1], c: "x'; DROP TABLE users; --" }, rows: { output: 3 } });

function problemOf(sql: string): { message: string; at: string } | undefined {
  try {
    compileSql(sql, options);
    return undefined;
  } catch (error) {
    if (!(error instanceof ExpressionSyntaxError)) throw error;
    return { message: error.message, at: sql.slice(error.index, error.index + error.length) };
  }
}

describe('values', () => {
  it('are passed apart from the text, with their type', () => {
    const sql = compileSql('SELECT * FROM t WHERE a = ${input.a} AND b IN (${input.b}, ${rows.output}) -- x', options);
    expect(sql.evaluate(createEvaluation())).toStrictEqual({
      strings: ['SELECT * FROM t WHERE a = ', ' AND b IN (', ', ', ') -- x'],
      values: ['A', [1], 3],
    });
    expect(sql.references.map(({ path }) => path[0])).toEqual(['a', 'b', 'output']);
    expect(sql.constant).toBe(false);
  });

  it('never become text, whatever they hold', () => {
    const { strings, values } = compileSql('SELECT ${input.c}', options).evaluate(createEvaluation()) as {
      strings: string[];
      values: string[];
    };
    expect([strings, values]).toEqual([['SELECT ', ''], ["x'; DROP TABLE users; --"]]);
  });

  it('`$${` writes ${, and {{ }} is plain text', () => {
    const sql = compileSql("SELECT '$${x}', '{{ a }}'", options);
    expect(sql.evaluate(createEvaluation())).toEqual({ strings: ["SELECT '${x}', '{{ a }}'"], values: [] });
    expect(sql.constant).toBe(true);
  });
});

describe('places of values', () => {
  it.each([
    'SELECT ${input.a} AS a, coalesce(x, ${input.b}) FROM t',
    'SELECT * FROM f(${input.a}, 1) WHERE x LIKE ${input.a} ORDER BY y LIMIT ${input.a} OFFSET ${input.b};  -- end',
    'INSERT INTO t (a, "b;c") VALUES (${input.a}, ${input.b}), (1, ${rows.output}) ON CONFLICT (a) DO UPDATE SET b = ${input.b}',
    'INSERT INTO t VALUES (${input.a},${input.b})',
    "UPDATE t SET a = ${input.a}, b = 'it''s', c=${input.b} WHERE id=${rows.output}",
    'DELETE FROM t WHERE a IS NOT DISTINCT FROM ${input.a}',
    "SELECT trim(both ' ' from ${input.a}), ${input.a}::text, [a b] FROM t -- it's\nWHERE x = ${input.b}",
    "SELECT E'it\\'s', x FROM t /* a /* ' */ */ WHERE x = ${input.a}",
    "SELECT $$it's$$, $q$ $$ ' $q$, ARRAY[${input.a}], list[${rows.output}] FROM t WHERE x->>'k' = ${input.a}",
    'WITH x AS (SELECT ${input.a} AS v) SELECT * FROM x WHERE v || ${input.a} <> `q``q`',
    'SELECT * FROM t ORDER BY CASE WHEN a = ${input.a} THEN 1 ELSE ${rows.output} END',
    'SELECT * FROM t WHERE id IN (SELECT value FROM json_each(${input.b}))',
    'SELECT cast(${input.a} AS integer), \'a\' \'b\', "x""y" FROM t WHERE NOT ${input.b}',
  ])('allows %s', (sql) => {
    expect(problemOf(sql)).toBeUndefined();
  });

  it.each([
    ["SELECT '${input.a}'", 'between quotes'],
    ["SELECT 'it''s ${input.a}'", 'between quotes'],
    ["SELECT E'it\\'s ${input.a}'", 'between quotes'],
    ["SELECT E'it''s \\' ${input.a}'", 'between quotes'],
    ["SELECT '%' || '${input.a}%'", 'between quotes'],
    ['SELECT "${input.a}"', 'between quotes'],
    ['SELECT `${input.a}`', 'between quotes'],
    ['SELECT [${input.a}] FROM t', 'between quotes'],
    ['SELECT $q$ $$ ${input.a} $q$', 'between quotes'],
    ['SELECT 1 -- ${input.a}\n', 'in a comment'],
    ['SELECT 1 /* /* */ ${input.a} */', 'in a comment'],
    ['SELECT * FROM ${input.a}', 'place of a name'],
    ['select * from a, ${input.a}', 'place of a name'],
    ['SELECT * FROM a JOIN ${input.a} ON 1', 'place of a name'],
    ['SELECT * FROM (SELECT * FROM ${input.a})', 'place of a name'],
    ['INSERT INTO ${input.a} VALUES (1)', 'place of a name'],
    ['INSERT INTO t (${input.a}) VALUES (1)', 'place of a name'],
    ['INSERT INTO t (a, ${input.a}) VALUES (1)', 'place of a name'],
    ['UPDATE ${input.a} SET x = 1', 'place of a name'],
    ['UPDATE t SET ${input.a} = 1', 'place of a name'],
    ['UPDATE t SET a = 1, ${input.a} = 1', 'place of a name'],
    ['DROP TABLE ${input.a}', 'place of a name'],
    ['DROP TABLE IF EXISTS ${input.a}', 'place of a name'],
    ['SELECT * FROM t ORDER BY ${input.a} DESC', 'place of a name'],
    ['SELECT * FROM t ORDER BY a DESC, ${input.a}', 'place of a name'],
    ['SELECT * FROM t GROUP /* x */ BY ${input.a}', 'place of a name'],
    ['SELECT 1 AS ${input.a}', 'place of a name'],
    ['SELECT t.${input.a} FROM t', 'place of a name'],
    ['SELECT ${input.a}.x FROM t', 'place of a name'],
    ['SELECT ${input.a}(1)', 'place of a name'],
    ['SELECT x::${input.a}', 'place of a name'],
    ['SELECT * FROM t_${input.a}', 'joined to the text'],
    ['SELECT x_${input.a} FROM t', 'joined to the text'],
    ['SELECT ${input.a}x FROM t', 'joined to the text'],
    ["SELECT 'a'${input.a}", 'joined to the text'],
    ['SELECT ${input.a}${input.b}', 'joined to the text'],
    ['SELECT * FROM t WHERE x IN ${input.b}', 'without brackets'],
    ['${input.a}', 'is the statement itself'],
    [' -- x\n ${input.a} ;', 'is the statement itself'],
    ['${input.a} FROM t', 'is the statement itself'],
  ])('refuses %s', (sql, message) => {
    const problem = problemOf(sql);
    expect(problem?.message).toContain(message);
    expect(problem?.message.startsWith(`\`${problem.at}\` `)).toBe(true);
  });

  it.each([
    ['SELECT 1; DELETE FROM t', 'one statement', 'D'],
    ['SELECT $${x}; DELETE FROM t', 'one statement', 'D'],
    ['SELECT ${input.a} /* ; */ ; ; ', 'one statement', ';'],
    ['SELECT 1; -- x\n ${input.a}', 'one statement', '${input.a}'],
    ["SELECT 'a; SELECT ${input.a}", 'between quotes', '${input.a}'],
    ["SELECT 'it''s", "' is not closed", "'"],
    ['SELECT ${input.a} /* x', '/* is not closed', '/'],
  ])('refuses %s', (sql, message, at) => {
    expect(problemOf(sql)).toMatchObject({ message: expect.stringContaining(message), at });
  });

  it('an expression in the text is checked as everywhere', () => {
    expect(problemOf('SELECT ${nobody.output}')).toBeDefined();
    expect(problemOf('SELECT ${input.a')?.message).toContain('${ is not closed');
  });
});

describe('any text', () => {
  // Each piece is whole by itself, and ends in code.
  const quoted = fc
    .string({ unit: fc.constantFrom('a', ';', '-', '/', '*', '[', ']', '"', '`', "'", '\\', ' ', '$', '\n') })
    .chain((inner) =>
      fc.constantFrom(
        `'${inner.replaceAll("'", "''")}'`,
        `E'${inner.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`,
        `"${inner.replaceAll('"', '""')}"`,
        `\`${inner.replaceAll('`', '``')}\``,
        `[${inner.replaceAll(']', '')}]`,
        `$tag$${inner}$tag$`,
        `/* ${inner.replaceAll('/', '').replaceAll('*', '')} /* ' */ */`,
        `-- ${inner.replaceAll('\n', '')}\n`,
      ),
    );
  const word = fc.constantFrom('x', 'AND', '=', '(', '1', '<>', 'E', 'NULL');
  const pieces = fc.array(fc.oneof(quoted, word), { maxLength: 12 }).map((parts) => parts.join(' '));

  it('text in quotes and comments hides nothing that follows it', () => {
    fc.assert(
      fc.property(pieces, (text) => {
        const before = `SELECT ${text} = `;
        expect(scanSql([before, ''])).toBeUndefined();
        expect(scanSql([`${before}'`, "'"])).toMatchObject({ gap: 0, message: expect.stringContaining('quotes') });
        expect(scanSql([`${before} 1; x`])).toMatchObject({ message: expect.stringContaining('one statement') });
        expect(scanSql([`${before} 1; -- x`])).toBeUndefined();
      }),
    );
  });

  it('never throws, and a text of a megabyte takes little time', () => {
    const part = fc.string({ unit: fc.constantFrom(...'\'"`[]()$;-/*\\.,:eE \n', 'FROM ', '$q$', 'x') });
    fc.assert(fc.property(fc.array(part, { minLength: 1, maxLength: 4 }), (strings) => void scanSql(strings)));
    for (const unit of ["'", '[', '(', '$', '/*', '-', 'x', '$a', 'E', "E'\\"]) {
      const start = performance.now();
      scanSql([unit.repeat(1_000_000 / unit.length)]);
      expect(performance.now() - start).toBeLessThan(8_000);
    }
  });
});
