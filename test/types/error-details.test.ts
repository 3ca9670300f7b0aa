/** The types of `details`: narrowing by the code, and the match of types, docs and the errors of the library. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, expectTypeOf, it } from 'vitest';
import {
  type DefinitionIssue,
  type ErrorCode,
  type ErrorDetails,
  isOrchestratorError,
  OrchestratorError,
} from '../../src/index.ts';
import { ROOT, readSourceGraph } from '../architecture/source-graph.ts';

describe('isOrchestratorError', () => {
  it('narrows `details` to those of the code', () => {
    const thrown: unknown = new OrchestratorError('INVALID_DEFINITION', 'one problem', { details: { issues: [] } });
    if (!isOrchestratorError(thrown, 'INVALID_DEFINITION')) throw thrown;
    expectTypeOf(thrown).toExtend<OrchestratorError>();
    expectTypeOf(thrown.code).toEqualTypeOf<'INVALID_DEFINITION'>();
    expectTypeOf(thrown.details.issues).toEqualTypeOf<readonly DefinitionIssue[]>();
    expect(thrown.details.issues).toEqual([]);
  });

  it('without a code, a `switch` narrows `details`', () => {
    const read = (thrown: unknown): unknown => {
      if (!isOrchestratorError(thrown)) return undefined;
      expectTypeOf(thrown.code).toEqualTypeOf<ErrorCode>();
      expectTypeOf(thrown.details.anything).toBeUnknown();
      switch (thrown.code) {
        case 'TOKEN_EXPIRED':
          expectTypeOf(thrown.details.expiredAt).toEqualTypeOf<number>();
          return thrown.details.expiredAt;
        case 'AGENT_FAILED':
          expectTypeOf(thrown.details.retryAfterMs).toEqualTypeOf<number | undefined>();
          return thrown.details.retryAfterMs;
        default:
          return thrown.details.issues;
      }
    };
    expect(read(new OrchestratorError('TOKEN_EXPIRED', 'expired', { details: { expiredAt: 5 } }))).toBe(5);
    expect(read(new OrchestratorError('AGENT_FAILED', 'busy', { details: { retryAfterMs: 7 } }))).toBe(7);
    expect(read(new Error('x'))).toBeUndefined();
  });

  it('an error of your own may have any details', () => {
    const own = new OrchestratorError('AGENT_FAILED', 'the bank is busy', { details: { bank: 'first' } });
    expectTypeOf(own.details).toEqualTypeOf<Readonly<Record<string, unknown>>>();
    expect(own.details).toEqual({ bank: 'first' });
  });

  it('each code has details', () => {
    expectTypeOf<keyof ErrorDetails>().toEqualTypeOf<ErrorCode>();
  });
});

type Keys = ReadonlyMap<string, readonly string[]>;

const graph = readSourceGraph();
const sorted = (keys: Iterable<string>) => [...new Set(keys)].sort();

/** The keys of `ErrorDetails`, by code. */
function typedKeys(): Keys {
  const { ast } = graph.get('engine/base/errors.ts') as { readonly ast: ts.SourceFile };
  const details = ast.statements.find(
    (one): one is ts.InterfaceDeclaration => ts.isInterfaceDeclaration(one) && one.name.text === 'ErrorDetails',
  );
  const found = new Map<string, readonly string[]>();
  for (const member of details?.members ?? []) {
    const { name, type } = member as ts.PropertySignature;
    const keys = type && ts.isTypeLiteralNode(type) ? type.members.map((one) => (one.name as ts.Identifier).text) : [];
    found.set((name as ts.Identifier).text, sorted(keys));
  }
  const ended = found.get('EXECUTION_FAILED') ?? [];
  return found.set('EXECUTION_CANCELLED', ended).set('EXECUTION_TIMEOUT', ended);
}

/** The keys of all object literals inside of a node. */
function literalKeys(node: ts.Node): string[] {
  const own = ts.isObjectLiteralExpression(node)
    ? node.properties.flatMap(({ name }) => (name && ts.isIdentifier(name) ? [name.text] : []))
    : [];
  const inner: string[] = [];
  ts.forEachChild(node, (child) => void inner.push(...literalKeys(child)));
  return [...own, ...inner];
}

/** Each `new OrchestratorError('CODE', message, { details: { ... } })` of the library, with the keys of its details. */
function givenKeys(): Keys {
  const found = new Map<string, string[]>();
  const visit = (node: ts.Node): void => {
    if (ts.isNewExpression(node) && node.expression.getText() === 'OrchestratorError') {
      const [code, , options] = node.arguments ?? [];
      const details =
        options && ts.isObjectLiteralExpression(options)
          ? options.properties.find((one) => one.name?.getText() === 'details')
          : undefined;
      if (code && ts.isStringLiteral(code) && details && ts.isPropertyAssignment(details))
        found.set(code.text, [...(found.get(code.text) ?? []), ...literalKeys(details.initializer)]);
    }
    ts.forEachChild(node, visit);
  };
  for (const { ast } of graph.values()) visit(ast);
  return found;
}

describe('details', () => {
  it('each key that the library gives has a type', () => {
    const typed = typedKeys();
    const given = givenKeys();
    expect(given.size).toBeGreaterThan(10);
    const untyped = [...given].flatMap(([code, keys]) =>
      keys.filter((key) => !typed.get(code)?.includes(key)).map((key) => `${code}: ${key}`),
    );
    expect(untyped).toEqual([]);
  });

  it('docs/reference/errors.md lists each key with its code', () => {
    const page = readFileSync(join(ROOT, 'docs/reference/errors.md'), 'utf8');
    const section = page.slice(page.indexOf('## Details'), page.indexOf('## In the code'));
    const listed: [string, readonly string[]][] = [];
    for (const [, codes = '', keys = ''] of section.matchAll(/^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \| ([^|]*) \|/gm)) {
      const named = sorted([...keys.matchAll(/`(\w+)`(?:\?|:)/g)].map(([, key = '']) => key));
      for (const [, code = ''] of codes.matchAll(/`([A-Z_]+)`/g)) listed.push([code, named]);
    }
    const typed = [...typedKeys()].filter(([, keys]) => keys.length > 0);
    expect(listed.sort()).toEqual(typed.sort());
  });
});
