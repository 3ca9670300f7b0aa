/** The import rules: every arrow points inward, and no entry for every runtime reaches what only Node.js has. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { PORTABLE_ENTRIES } from '../portable-entries.ts';
import { layerOf, mayImport, RULES, ruleFor } from './layers.ts';
import { findCycles, ROOT, reachedPackages, readSourceGraph, toGraph } from './source-graph.ts';

const graph = readSourceGraph();
const manifest: { readonly dependencies: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(join(ROOT, 'package.json'), 'utf8'),
);

/** What runs everywhere: the portable entries, and every HTTP handler. The other entries may use what their host has. */
const PORTABLE = [
  ...PORTABLE_ENTRIES.map((name) => (name === 'index' ? 'index.ts' : `entries/${name}.ts`)),
  ...[...graph.keys()].filter((path) => path.startsWith('http-handlers/')),
];
/** What the command line needs; no library entry loads it. */
const COMMAND_LINE_ONLY = ['commander', 'diff', 'picocolors'];
/** The page of the dashboard, which the build makes from `src/dashboard/`, and the entry that has it (`imports` of package.json). */
const BUILT = ['dashboard:assets', '#dashboard'];

describe('import rules', () => {
  it('every file is in a layer that has a rule', () => {
    expect([...graph.keys()].filter((path) => ruleFor(layerOf(path)) === undefined)).toEqual([]);
  });

  it('a file imports only its own layer and those that its rule lists', () => {
    const broken: string[] = [];
    for (const { path, imports } of graph.values()) {
      for (const { file, typeOnly, line } of imports) {
        if (file === undefined) continue;
        const [from, to] = [layerOf(path), layerOf(file)];
        if (!mayImport(from, to, typeOnly))
          broken.push(`src/${path}:${line}: \`${from}\` may not import \`${to}\` (${file})`);
      }
    }
    expect(broken).toEqual([]);
  });

  it('an import names a file that is there, with its extension', () => {
    const broken: string[] = [];
    for (const { path, imports } of graph.values()) {
      for (const { file, specifier, line } of imports) {
        if (file !== undefined && !graph.has(file)) broken.push(`src/${path}:${line}: ${specifier}`);
      }
    }
    expect(broken).toEqual([]);
  });

  it('no files import each other in a circle, types included', () => {
    expect(findCycles(graph).map((cycle) => cycle.join(' -> '))).toEqual([]);
  });

  it('the rules name only layers that have a rule, and point one way', () => {
    const layers = Object.keys(RULES);
    const unknown = Object.values(RULES).flatMap(({ may, types = [] }) =>
      [...may, ...types].filter((layer) => !layers.includes(layer)),
    );
    expect(unknown).toEqual([]);
    const both = layers.flatMap((a) =>
      layers.filter((b) => a < b && mayImport(a, b, true) && mayImport(b, a, true)).map((b) => `${a} <-> ${b}`),
    );
    expect(both).toEqual([]);
  });
});

describe('what the entries reach', () => {
  it.each(PORTABLE)(
    'src/%s reaches no `node:` module, no optional peer and no package of the command line',
    (entry) => {
      const ours = Object.keys(manifest.dependencies).filter((name) => !COMMAND_LINE_ONLY.includes(name));
      const allowed = [...ours, ...BUILT];
      const ways = [...reachedPackages(graph, entry)]
        .filter(([name]) => !allowed.includes(name))
        .map(([, way]) => way.join(' -> '));
      expect(ways).toEqual([]);
    },
  );

  it.each([
    ['entries/s3.ts', 'aws4fetch'],
    ['entries/redis.ts', 'ioredis'],
    ['entries/otel.ts', '@opentelemetry/api'],
  ])('src/%s reaches no `node:` module, and no package but its own, %s', (entry, own) => {
    const foreign = [...reachedPackages(graph, entry).keys()].filter((name) => name !== own);
    expect(foreign).toEqual([]);
  });

  it('no library entry reaches a package of the command line', () => {
    const ways = ['index.ts', 'entries/testing.ts', 'entries/node.ts'].flatMap((entry) =>
      [...reachedPackages(graph, entry)]
        .filter(([name]) => COMMAND_LINE_ONLY.includes(name))
        .map(([, way]) => way.join(' -> ')),
    );
    expect(ways).toEqual([]);
  });

  it("zod is imported as `import * as z from 'zod/mini'` (the classic build and a named import are several times as large)", () => {
    const broken: string[] = [];
    for (const { path, imports } of graph.values()) {
      for (const { specifier, node, line } of imports) {
        if (specifier !== 'zod' && !specifier.startsWith('zod/')) continue;
        const named = ts.isImportDeclaration(node) ? node.importClause?.namedBindings : undefined;
        const whole =
          named !== undefined && ts.isNamespaceImport(named) && named.name.text === 'z' && specifier === 'zod/mini';
        if (!whole) broken.push(`src/${path}:${line}: ${node.getText()}`);
      }
    }
    expect(broken).toEqual([]);
  });
});

describe('the checks themselves see', () => {
  it('a circle that only types make', () => {
    const circle = toGraph([
      ['engine/model/a.ts', "import type { B } from './b.ts'; export type A = B;"],
      ['engine/model/b.ts', "export type B = import('./a.ts').A;"],
    ]);
    expect(findCycles(circle)).toEqual([['engine/model/a.ts', 'engine/model/b.ts', 'engine/model/a.ts']]);
  });

  it('a `node:` module that a re-export or an `import()` reaches, but not what `import type` reaches', () => {
    const reach = toGraph([
      ['index.ts', "export { a } from './a.ts'; import type { c } from './c.ts';"],
      ['a.ts', "export const a = () => import('node:fs');"],
      ['c.ts', "import 'node:net'; export const c = 1;"],
    ]);
    expect([...reachedPackages(reach, 'index.ts').keys()]).toEqual(['node:fs']);
  });

  it.each([
    ['model', 'expression', true, false],
    ['operations/api', 'operations/code', true, false],
    ['operations/api', 'adapters/http', true, false],
    ['adapters/http', 'adapters/clock', true, false],
    ['testing-kit', 'adapters/clock', false, true],
    ['interpreter', 'events', true, false],
    ['events', 'interpreter', true, false],
    ['interpreter', 'definition/compile', true, false],
    ['definition/source', 'definition/forms', true, false],
    ['interpreter', 'operations/code', true, false],
    ['orchestrator', 'authoring', true, true],
    ['orchestrator', 'authoring', false, false],
    ['http-handlers', 'orchestrator', false, false],
    ['http-handlers', 'orchestrator', true, true],
    ['cli', 'orchestrator', false, false],
  ] as const)('that %s -> %s (types only: %s) is %s', (from, to, typeOnly, allowed) => {
    expect(mayImport(from, to, typeOnly)).toBe(allowed);
  });
});
