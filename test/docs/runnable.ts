/** Makes a code block of the documentation a file that can be run, and knows what it says that it prints. */

import ts from 'typescript';
import type { CodeBlock } from './code-blocks.ts';

/** Where the file finds its `console.log`. */
export const PRINTER = '__documentationPrinter';

export interface Runnable {
  readonly block: CodeBlock;
  /** The block, each `console.log` with a comment behind it told apart by its number. */
  readonly text: string;
  /** What each of those says that it prints. */
  readonly expected: readonly string[];
}

/** `console.log(...)` with a comment behind it in the same line is a promise: that is what it prints. */
export function toRunnable(block: CodeBlock): Runnable {
  const ast = ts.createSourceFile('example.ts', block.code, ts.ScriptTarget.Latest, true);
  const expected: string[] = [];
  const callees: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && node.expression.getText(ast) === 'console.log') {
      const [behind = ''] = block.code.slice(node.end).split('\n', 1);
      const comment = /^[\s;)}]*\/\/(.*)$/.exec(behind);
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

/** Whether what was printed is what the comment says; `...` stands for anything, and the number of spaces and lines does not count. */
export function printsAs(expected: string, printed: string): boolean {
  const squeeze = (text: string) => text.replace(/\s+/g, ' ').trim();
  const parts = squeeze(expected)
    .split('...')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(squeeze(printed));
}
