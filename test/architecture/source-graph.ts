/** The files of `src/` and what each imports, read with the TypeScript parser. */

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
export const SRC = join(ROOT, 'src');

export interface Import {
  /** As written. */
  readonly specifier: string;
  /** Path under `src/` with `/`, for a relative import. */
  readonly file?: string;
  /** `import type` or `export type`: it goes away with the types. (`import { type A }` leaves an import behind.) */
  readonly typeOnly: boolean;
  readonly line: number;
  readonly node: ts.Node;
}

export interface SourceFile {
  /** Path under `src/`, with `/`. */
  readonly path: string;
  readonly text: string;
  readonly ast: ts.SourceFile;
  readonly imports: readonly Import[];
}

export type SourceGraph = ReadonlyMap<string, SourceFile>;

export function readSourceGraph(): SourceGraph {
  const paths = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((path) => /(?<!\.d)\.tsx?$/.test(path));
  return toGraph(paths.sort().map((path) => [path.split(sep).join('/'), readFileSync(join(SRC, path), 'utf8')]));
}

/** @param files - path under `src/` and text of each */
export function toGraph(files: readonly (readonly [path: string, text: string])[]): SourceGraph {
  return new Map(
    files.map(([path, text]) => {
      const ast = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
      return [path, { path, text, ast, imports: importsOf(path, ast) }];
    }),
  );
}

function importsOf(path: string, ast: ts.SourceFile): readonly Import[] {
  const imports: Import[] = [];
  const add = (specifier: ts.Expression | undefined, typeOnly: boolean, node: ts.Node) => {
    if (!specifier || !ts.isStringLiteral(specifier))
      throw new Error(`${path}: an import whose target is no plain text: ${node.getText(ast)}`);
    const line = ast.getLineAndCharacterOfPosition(node.getStart(ast)).line + 1;
    const file = specifier.text.startsWith('.') ? underSource(path, specifier.text) : undefined;
    imports.push({ specifier: specifier.text, ...(file !== undefined && { file }), typeOnly, line, node });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node))
      add(node.moduleSpecifier, node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword, node);
    else if (ts.isExportDeclaration(node) && node.moduleSpecifier) add(node.moduleSpecifier, node.isTypeOnly, node);
    else if (ts.isImportTypeNode(node))
      add(ts.isLiteralTypeNode(node.argument) ? node.argument.literal : undefined, true, node);
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      // A computed `import()` loads a user's file: it leads to no file of ours.
      if (node.arguments[0] && ts.isStringLiteral(node.arguments[0])) add(node.arguments[0], false, node);
    }
    ts.forEachChild(node, visit);
  };
  visit(ast);
  return imports;
}

function underSource(from: string, specifier: string): string {
  return relative(SRC, resolve(SRC, dirname(from), specifier))
    .split(sep)
    .join('/');
}

/** Files that import each other in a circle, each circle once, in the order of its imports. */
export function findCycles(graph: SourceGraph): readonly (readonly string[])[] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  const walk = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at >= 0) cycles.push([...trail.slice(at), path]);
    if (at >= 0 || done.has(path)) return;
    for (const { file } of graph.get(path)?.imports ?? []) if (file !== undefined) walk(file, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) walk(path, []);
  return cycles;
}

/** What code outside `src/` runs when `entry` is loaded, with one way to get there. */
export function reachedPackages(graph: SourceGraph, entry: string): ReadonlyMap<string, readonly string[]> {
  const reached = new Map<string, readonly string[]>();
  const seen = new Set<string>();
  const walk = (path: string, trail: readonly string[]): void => {
    if (seen.has(path)) return;
    seen.add(path);
    for (const { file, specifier, typeOnly } of graph.get(path)?.imports ?? []) {
      if (typeOnly) continue;
      if (file !== undefined) walk(file, [...trail, path]);
      else if (!reached.has(packageOf(specifier))) reached.set(packageOf(specifier), [...trail, path, specifier]);
    }
  };
  if (!graph.has(entry)) throw new Error(`there is no src/${entry}`);
  walk(entry, []);
  return reached;
}

function packageOf(specifier: string): string {
  if (specifier.startsWith('node:')) return specifier;
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}
