/** The code style that a parser can check: sizes, names, forms of code, and nothing mutable at module level. */

import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { readSourceGraph, type SourceFile, toGraph } from './source-graph.ts';

const graph = readSourceGraph();

const MAX_LINES = 400;
/** Files that may be longer, each with its reason. */
const LONGER: Readonly<Record<string, string>> = {};

/** Lines of a function without those of the functions inside it. */
const MAX_FUNCTION_LINES = 60;
const MIN_LINES = 40;
/** Folders in which each file is one of a kind, and the index of the folder is their importer. */
const FAMILIES =
  /^(entries|adapters\/hosts|adapters\/storage\/.*(tables|drivers|database)|cli\/commands|cli\/project|engine\/expression|http-handlers(\/api)?|project|testing-kit\/.*|conformance(\/.*)?)\//;
/** Other short files with one importer, each with its reason. */
const SHORT: Readonly<Record<string, string>> = {
  'adapters/mcp/client-package.ts': 'it is loaded with `import()`',
  'engine/running/store-with-state.ts': 'its importer has the largest size',
  'orchestrator/runs/log-end.ts': 'its importer has the largest size',
};

const VAGUE = /^(utils?|helpers?|common|misc|manager)$/;
const FORBIDDEN: Readonly<Partial<Record<ts.SyntaxKind, string>>> = {
  [ts.SyntaxKind.EnumDeclaration]: 'an enum',
  [ts.SyntaxKind.ModuleDeclaration]: 'a namespace',
  [ts.SyntaxKind.Decorator]: 'a decorator',
  [ts.SyntaxKind.ExportAssignment]: 'a default export',
  [ts.SyntaxKind.DefaultKeyword]: 'a default export',
};
/** Types that say that a collection at module level does not change. */
const READONLY = /^(Readonly(Map|Set)?|readonly)\b/;

const lines = (text: string) => text.split('\n').length - 1;

function where({ path, ast }: SourceFile, node: ts.Node, what: string): string {
  return `src/${path}:${ast.getLineAndCharacterOfPosition(node.getStart(ast)).line + 1}: ${what}`;
}

function forbiddenForms(file: SourceFile): readonly string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    const what = FORBIDDEN[node.kind];
    if (what !== undefined && !(node.kind === ts.SyntaxKind.DefaultKeyword && ts.isDefaultClause(node.parent)))
      found.push(where(file, node, what));
    ts.forEachChild(node, visit);
  };
  visit(file.ast);
  return found;
}

function changingAtModuleLevel(file: SourceFile): readonly string[] {
  const found: string[] = [];
  for (const statement of file.ast.statements) {
    if (!ts.isVariableStatement(statement)) continue;
    if (!(statement.declarationList.flags & ts.NodeFlags.Const))
      found.push(where(file, statement, 'a variable at module level that can change'));
    for (const { initializer, type } of statement.declarationList.declarations) {
      const collection =
        initializer &&
        ts.isNewExpression(initializer) &&
        /^(Weak)?(Map|Set)$/.test(initializer.expression.getText(file.ast));
      if (collection && !READONLY.test(type?.getText(file.ast) ?? ''))
        found.push(where(file, statement, 'a collection at module level that is not typed as readonly'));
    }
  }
  return found;
}

interface LongFunction {
  readonly name: string;
  /** Without those of the functions inside it. */
  readonly lines: number;
}

function functionsOf({ path, ast }: SourceFile): readonly LongFunction[] {
  const found: LongFunction[] = [];
  const lineOf = (position: number) => ast.getLineAndCharacterOfPosition(position).line;
  const lengthOf = (node: ts.Node) => lineOf(node.end) - lineOf(node.getStart(ast)) + 1;
  const hasBody = (node: ts.Node): boolean =>
    ts.isFunctionLike(node) && (node as ts.FunctionLikeDeclaration).body !== undefined;
  const inside = (node: ts.Node): number => {
    let length = 0;
    ts.forEachChild(node, (child) => {
      length += hasBody(child) ? lengthOf(child) : inside(child);
    });
    return length;
  };
  const visit = (node: ts.Node): void => {
    if (hasBody(node)) {
      const { name } = node as ts.FunctionLikeDeclaration;
      const given = name ?? (ts.isVariableDeclaration(node.parent) ? node.parent.name : undefined);
      found.push({
        name: `${path} ${given?.getText(ast) ?? ''}`.trim(),
        lines: lengthOf(node) - inside(node),
      });
    }
    ts.forEachChild(node, visit);
  };
  visit(ast);
  return found;
}

/** Calls that run when the module is loaded and start or draw something. */
function startsAtImport(file: SourceFile): readonly string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) || ts.isClassLike(node)) return;
    if (ts.isCallExpression(node)) {
      const callee = node.expression.getText(file.ast);
      if (
        /^(setTimeout|setInterval|setImmediate|queueMicrotask|fetch|Date\.now|Math\.random|(globalThis\.)?crypto\..*|performance\.now)$/.test(
          callee,
        )
      ) {
        found.push(where(file, node, `${callee}() runs at import`));
      }
      if (/^z\./.test(callee)) found.push(where(file, node, `${callee}() creates a schema at import; use once()`));
    }
    if (ts.isAwaitExpression(node)) found.push(where(file, node, 'an await at module level'));
    ts.forEachChild(node, visit);
  };
  visit(file.ast);
  return found;
}

describe('code style', () => {
  it(`a file has at most ${MAX_LINES} lines, except those with a reason`, () => {
    const long = [...graph.values()].filter(({ path, text }) => lines(text) > MAX_LINES && !(path in LONGER));
    expect(long.map(({ path, text }) => `src/${path}: ${lines(text)} lines`)).toEqual([]);
  });

  it('the list of longer files names only files that are longer', () => {
    const short = Object.keys(LONGER).filter((path) => lines(graph.get(path)?.text ?? '') <= MAX_LINES);
    expect(short).toEqual([]);
  });

  it(`a file of fewer than ${MIN_LINES} lines with one importer joins it, unless it is one of a family or has a reason`, () => {
    const importers = new Map<string, Set<string>>();
    for (const { path, imports } of graph.values())
      for (const { file } of imports)
        if (file !== undefined) importers.set(file, (importers.get(file) ?? new Set()).add(path));
    const short = [...graph.values()]
      .filter(
        ({ path, text }) =>
          lines(text) < MIN_LINES &&
          importers.get(path)?.size === 1 &&
          !FAMILIES.test(path) &&
          !path.endsWith('.port.ts'),
      )
      .map(({ path }) => path);
    expect(short.filter((path) => SHORT[path] === undefined)).toEqual([]);
    expect(Object.keys(SHORT).filter((path) => !short.includes(path))).toEqual([]);
  });

  it(`a function has at most ${MAX_FUNCTION_LINES} lines of its own`, () => {
    const long = [...graph.values()].flatMap(functionsOf).filter(({ lines: length }) => length > MAX_FUNCTION_LINES);
    expect(long.map(({ name, lines: length }) => `${name}: ${length} lines`)).toEqual([]);
  });

  it('a file opens with one comment that says what it does', () => {
    const bare = [...graph.values()].filter(({ text }) => !/^(#![^\n]*\n)?\/\*\*\s*(\*\s*)?\S/.test(text));
    expect(bare.map(({ path }) => `src/${path}`)).toEqual([]);
  });

  it('files are in kebab-case, and none has a name that says nothing', () => {
    const parts = [...graph.keys()].flatMap((path) =>
      path
        .replace(/\.tsx?$/, '')
        .split('/')
        .map((part) => ({ path, part })),
    );
    expect(
      parts
        .filter(({ part }) => !/^[a-z0-9]+(-[a-z0-9]+)*(\.port)?$/.test(part) || VAGUE.test(part))
        .map(({ path }) => path),
    ).toEqual([]);
  });

  it('no enum, namespace, decorator or default export', () => {
    expect([...graph.values()].flatMap(forbiddenForms)).toEqual([]);
  });

  it('nothing at module level changes', () => {
    expect([...graph.values()].flatMap(changingAtModuleLevel)).toEqual([]);
  });

  it('nothing is started, drawn or awaited, and no schema is created at import, the command line aside', () => {
    const library = [...graph.values()].filter(({ path }) => !path.startsWith('cli/'));
    expect(library.flatMap(startsAtImport)).toEqual([]);
  });

  it('sees what it is there to see', () => {
    const [bad] = toGraph([
      [
        'bad.ts',
        'let n = 0;\nconst m = new Map();\nconst ok: ReadonlySet<string> = new Set();\nconst id = crypto.randomUUID();\nenum E { A }\nexport default n;\nswitch (n) { default: }\nconst s = z.string();\nconst t = () => z.string();',
      ],
    ]).values();
    const file = bad as SourceFile;
    expect(changingAtModuleLevel(file)).toEqual([
      'src/bad.ts:1: a variable at module level that can change',
      'src/bad.ts:2: a collection at module level that is not typed as readonly',
    ]);
    expect(startsAtImport(file)).toEqual([
      'src/bad.ts:4: crypto.randomUUID() runs at import',
      'src/bad.ts:8: z.string() creates a schema at import; use once()',
    ]);
    expect(forbiddenForms(file)).toEqual(['src/bad.ts:5: an enum', 'src/bad.ts:6: a default export']);
  });
});
