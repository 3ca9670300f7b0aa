/** The words of the project: one term for one thing, plain English, and no codes of documents that readers don't have. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { ROOT } from './source-graph.ts';

/** Words that readers stumble over, with what to write instead (CONTRIBUTING.md, Rules). */
const REFUSED: readonly (readonly [RegExp, string])[] = [
  [/\bbehind\b(?! (an? |the )?(reverse )?(proxy|proxies|load balancer|pooler|registry|PgBouncer|NAT))/, 'after'],
  [/\b(go|goes|going|went) on\b/, 'continues, resumes'],
  [/\bg(ive|ives|iven|iving|ave) up\b/, 'is suspended, is released, is lost, stops'],
  [/\bt(ake|akes|aken|aking|ook) up\b/, 'resumes; takes (of space or time)'],
  [/\b(stand|stands|stood|standing) (in|at|under|there|beside|behind|ahead)\b/, 'is in, is listed in'],
  [/\bwho(so)?ever\b/, 'the process that, the caller that'],
  [/\bby then\b/, 'before that, already'],
  [/\bat hand\b/, 'current'],
  [/\b(hear|hears|heard|hearing)\b/, 'receives, is notified of'],
  [/(?<!there )\bis no (?!longer|more than|less than|different|other|one\b)/, 'is not a'],
  [/\bso many (?!\w+ that\b)/, 'N, a number of'],
  [/\b(tell|tells|told|telling)\b/, 'reports, says, shows'],
  [/\bbeside\b/, 'alongside, besides, with'],
  [/\b(taken|take|takes) for dead\b/, 'considered dead'],
  [/\b(recall|recalls|recalled|recalling)\b/, 'replay'],
  [/\b(halt|halts|halted)\b/, 'cancellation'],
  [/\b(guest|guests)\b/, 'client'],
  [/\b(rooms?|the house|habits?)\b/, 'layer, capacity, code style'],
  [/\bdoors?\b/, 'handler, entry'],
  [/\b(orphans?|patience|patiently|survey|surveys)\b/, 'deferred write, retry, poll'],
  [/\bthe seed\b(?! of)/, "the specification; the execution's seed"],
];
/** In SQL it is the name of a column. */
const OWNER: readonly [RegExp, string] = [/(?!^owner$)\b(owner|owners)\b(?! (of|role))/, 'worker'];
/** A code of a document outside of the project, such as a rule's or an attack's number. S3, R2 and D1 are products; A3, A4 and A5 are sizes of paper. */
const CODE = /(?<![%\w.$#/-])(?!S3\b|R2\b|D1\b|A[345]\b)[ATDHIRSFP]\d{1,3}(?![\w.:-])/;

const files = (folder: string, ending: RegExp): readonly string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => ending.test(path) && !/(^|\/)(node_modules|dist|api|\.generated)\//.test(path))
    .map((path) => `${folder}/${path.split('\\').join('/')}`)
    .sort();

interface Piece {
  readonly line: number;
  readonly text: string;
  readonly kind: 'comment' | 'string';
}

/** The comments and the literal texts of a TypeScript or JavaScript file. */
function piecesOf(path: string, text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  const ast = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const lineAt = (position: number) => ast.getLineAndCharacterOfPosition(position).line + 1;
  const comments = new Map<number, ts.CommentRange>();
  const visit = (node: ts.Node): void => {
    for (const range of [
      ...(ts.getLeadingCommentRanges(text, node.getFullStart()) ?? []),
      ...(ts.getTrailingCommentRanges(text, node.getEnd()) ?? []),
    ])
      comments.set(range.pos, range);
    const isLiteral =
      ts.isStringLiteral(node) ||
      ts.isNoSubstitutionTemplateLiteral(node) ||
      ts.isTemplateHead(node) ||
      ts.isTemplateMiddleOrTemplateTail(node);
    if (isLiteral && !ts.isImportDeclaration(node.parent) && !ts.isExportDeclaration(node.parent))
      pieces.push({ line: lineAt(node.getStart(ast)), text: node.text, kind: 'string' });
    ts.forEachChild(node, visit);
  };
  visit(ast);
  visit(ast.endOfFileToken);
  for (const { pos, end } of comments.values()) {
    // What is in backticks is code.
    const shown = text
      .slice(pos, end)
      .replace(/```[\s\S]*?```/g, '')
      .replace(/`[^`\n]*`/g, '``')
      .replace(/\n[ \t]*\*/g, '\n ');
    pieces.push({ line: lineAt(pos), text: shown, kind: 'comment' });
  }
  return pieces;
}

/** A page's prose: without blocks of code and code in a line. */
const proseOf = (text: string): string =>
  text
    .replace(/```[\s\S]*?```/g, (block) => block.replace(/[^\n]/g, ''))
    .replace(/`[^`\n]*`/g, '``')
    .replace(/\]\([^)]*\)/g, ']()');

function findAll(
  where: (index: number) => string,
  text: string,
  rules: readonly (readonly [RegExp, string])[],
): string[] {
  const flat = text.replace(/\s/g, ' ');
  return rules.flatMap(([word, instead]) =>
    [...flat.matchAll(new RegExp(word.source, 'gi'))].map(
      ({ 0: found, index }) =>
        `${where(index)}: "${flat.slice(Math.max(0, index - 25), index + found.length + 25).trim()}" (write: ${instead})`,
    ),
  );
}

const lineOf = (text: string, index: number) => text.slice(0, index).split('\n').length;

const PAGES = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...files('docs', /\.md$/)];
const SOURCES = files('src', /\.ts$/);

describe('words', () => {
  it('no page of the docs uses a refused word', () => {
    const found = PAGES.flatMap((path) => {
      const prose = proseOf(readFileSync(join(ROOT, path), 'utf8'));
      return findAll((index) => `${path}:${lineOf(prose, index)}`, prose, [...REFUSED, OWNER]);
    });
    expect(found).toEqual([]);
  });

  it('no comment and no text of the source uses a refused word', () => {
    const found = SOURCES.flatMap((path) =>
      piecesOf(path, readFileSync(join(ROOT, path), 'utf8')).flatMap(({ line, text, kind }) => {
        const isSql = kind === 'string' && path.startsWith('src/adapters/storage/');
        return findAll(
          (index) => `${path}:${line + lineOf(text, index) - 1}`,
          text,
          isSql ? REFUSED : [...REFUSED, OWNER],
        );
      }),
    );
    expect(found).toEqual([]);
  });

  it('no code of an outside document is in a comment, a text, a test or a page', () => {
    const inCode = [
      ...SOURCES,
      ...files('test', /\.(ts|mjs)$/),
      ...files('bench', /\.mjs$/),
      ...files('examples', /\.(ts|mjs)$/),
    ];
    const found = [
      ...inCode.flatMap((path) =>
        piecesOf(path, readFileSync(join(ROOT, path), 'utf8'))
          .filter(({ text }) => CODE.test(text))
          .map(({ line, text }) => `${path}:${line}: ${CODE.exec(text)?.[0]}`),
      ),
      ...PAGES.flatMap((path) => {
        const code = CODE.exec(proseOf(readFileSync(join(ROOT, path), 'utf8')));
        return code === null ? [] : [`${path}: ${code[0]}`];
      }),
    ];
    expect(found).toEqual([]);
  });

  it('finds what it is there to find', () => {
    const pieces = piecesOf(
      'a.ts',
      `/** What goes on (A${12}). */\nconst a = 'the owner hears';\nconst b = \`x \${a} behind\`; // by then`,
    );
    const found = pieces.flatMap(({ text }) => findAll(() => 'a', text, [...REFUSED, OWNER]));
    expect(found).toHaveLength(5);
    expect(pieces.filter(({ text }) => CODE.test(text))).toHaveLength(1);
    expect(findAll(() => 'a', 'behind a proxy it is no longer here', REFUSED)).toEqual([]);
  });
});
