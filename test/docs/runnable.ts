/** Turns a code block of the documentation into a program, and reads which output its comments promise. */

import ts from 'typescript';
import type { CodeBlock } from './code-blocks.ts';

/** The global name under which the program finds its `console.log`. */
export const PRINTER = '__documentationPrinter';

export interface Program {
  readonly block: CodeBlock;
  /** The code, in which each `console.log` with a comment after it has a number. */
  readonly text: string;
  /** The promised output of each of those calls. */
  readonly expected: readonly string[];
}

/** A `console.log(...)` with a comment after it on the same line promises to print the text of the comment. */
export function toProgram(block: CodeBlock): Program {
  const ast = ts.createSourceFile('example.ts', block.code, ts.ScriptTarget.Latest, true);
  const expected: string[] = [];
  const callees: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && node.expression.getText(ast) === 'console.log') {
      const [rest = ''] = block.code.slice(node.end).split('\n', 1);
      const comment = /^[\s;)}]*\/\/(.*)$/.exec(rest);
      if (comment) {
        callees.push(node.expression);
        expected.push((comment[1] as string).trim());
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(ast);
  let text = block.code;
  for (let i = callees.length - 1; i >= 0; i--) {
    const callee = callees[i] as ts.Node;
    text = `${text.slice(0, callee.getStart(ast))}globalThis.${PRINTER}.at(${i})${text.slice(callee.end)}`;
  }
  return { block, text: `${text}\nexport {};\n`, expected };
}

/** Whether the output matches the comment. `...` matches anything; the number of spaces and line breaks does not matter. */
export function printsAs(expected: string, printed: string): boolean {
  const squeeze = (text: string) => text.replace(/\s+/g, ' ').trim();
  const parts = squeeze(expected)
    .split('...')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(squeeze(printed));
}
