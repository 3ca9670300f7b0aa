/** The page of log lines: a row for each line that the library can write, with its level, and no other row. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { readSourceGraph } from '../architecture/source-graph.ts';
import { ROOT } from './code-blocks.ts';

const LEVELS = new Set(['debug', 'info', 'warn', 'error']);

/** The texts that an expression may be, with `...` for the parts that vary; undefined when the source does not show them. */
function textsOf(node: ts.Expression, file: ts.SourceFile): readonly string[] | undefined {
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (ts.isTemplateExpression(node))
    return [node.head.text + node.templateSpans.map(({ literal }) => `...${literal.text}`).join('')];
  if (ts.isIdentifier(node)) return constantsOf(node, file);
  return undefined;
}

/** The texts of the constant with this name in the nearest block around it. */
function constantsOf(name: ts.Identifier, file: ts.SourceFile): readonly string[] | undefined {
  for (let around: ts.Node = name; around; around = around.parent) {
    if (!ts.isBlock(around) && !ts.isSourceFile(around)) continue;
    for (const statement of around.statements) {
      if (!ts.isVariableStatement(statement)) continue;
      const found = statement.declarationList.declarations.find((one) => one.name.getText(file) === name.text);
      if (found?.initializer) return textsOf(found.initializer, file);
    }
    if (ts.isSourceFile(around)) return undefined;
  }
  return undefined;
}

/** Every call of a logger in a file, as `level message`. */
function linesOf(path: string, text: string): readonly string[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const lines: string[] = [];
  const visit = (node: ts.Node): void => {
    ts.forEachChild(node, visit);
    if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return;
    const { name, expression } = node.expression;
    if (!LEVELS.has(name.text) || !/(^|\.)logger$/.test(expression.getText(file))) return;
    const [, message] = node.arguments;
    const texts = message && textsOf(message, file);
    const at = file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
    if (!texts) lines.push(`${path}:${at}: write the message as a text in the call, or as a constant before it`);
    else lines.push(...texts.map((one) => `${name.text} ${one}`));
  };
  visit(file);
  return lines;
}

// Backticks are code in Markdown, and text in a message.
const plain = (text: string) => text.replaceAll('`', '').trim();

it('every line of the log is on the page, with its level, and the page has no other line', () => {
  const written = new Set<string>();
  for (const { path, text } of readSourceGraph().values()) {
    if (path.startsWith('cli/')) continue;
    for (const line of linesOf(path, text)) written.add(plain(line));
  }
  expect(written.size).toBeGreaterThan(30);
  const page = readFileSync(join(ROOT, 'docs/reference/logs.md'), 'utf8');
  const rows = [...page.matchAll(/^\| (debug|info|warn|error) \| (.+?) \|/gm)];
  const shown = rows.map(([, level, message]) => plain(`${level} ${message}`));
  expect([...new Set(shown)].sort()).toEqual([...written].sort());
});

it('the scanner sees a message that the source does not show', () => {
  const text =
    'function f(m) { parts.logger.warn({}, m); logger?.info({}, `a ${m}`); const t = "b"; logger.error({}, t); }';
  expect(linesOf('x.ts', text)).toEqual([
    'x.ts:1: write the message as a text in the call, or as a constant before it',
    'info a ...',
    'error b',
  ]);
});
