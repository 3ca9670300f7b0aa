/** Bundles an entry of the built package as for a Worker, and looks at the result. */

import { gzipSync } from 'node:zlib';
import { type BuildOptions, type BuildResult, build } from 'esbuild';
import ts from 'typescript';
import { DIST } from './built-package.ts';

/** Bundles one entry as for a Worker. */
export function bundle(
  entry: string,
  packages: 'bundle' | 'external',
): Promise<BuildResult<{ write: false; metafile: true }>> {
  return bundleAs({ entryPoints: [`${DIST}/${entry}.js`] }, packages);
}

/** Bundles a program that imports entries as `./<entry>.js`. */
export function bundleProgram(contents: string): Promise<BuildResult<{ write: false; metafile: true }>> {
  return bundleAs({ stdin: { contents, resolveDir: DIST } }, 'bundle');
}

function bundleAs(
  what: Pick<BuildOptions, 'entryPoints' | 'stdin'>,
  packages: 'bundle' | 'external',
): Promise<BuildResult<{ write: false; metafile: true }>> {
  return build({
    ...what,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    platform: 'neutral',
    mainFields: ['browser', 'module', 'main'],
    conditions: ['workerd', 'worker', 'browser'],
    external: ['node:*'],
    // Without the paths of tsconfig.json, `#dashboard` is what package.json says, as in the app of a user.
    tsconfigRaw: {},
    packages,
    write: false,
    metafile: true,
    logLevel: 'silent',
  });
}

export const gzipped = (result: BuildResult<{ write: false }>) =>
  gzipSync(result.outputFiles[0]?.contents ?? new Uint8Array(), { level: 9 }).length;

/** @returns the places where a program makes code from strings */
export function codeFromStrings(name: string, text: string): readonly string[] {
  const ast = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    const called =
      ts.isCallExpression(node) || ts.isNewExpression(node)
        ? node.expression.getText(ast).replace(/^globalThis\./, '')
        : '';
    const timerOfText =
      /^set(Timeout|Interval)$/.test(called) &&
      ts.isCallExpression(node) &&
      node.arguments[0] !== undefined &&
      ts.isStringLiteralLike(node.arguments[0]);
    if (called === 'eval' || called === 'Function' || timerOfText)
      found.push(`${name}: ${node.getText(ast).slice(0, 60)}`);
    ts.forEachChild(node, visit);
  };
  visit(ast);
  return found;
}
