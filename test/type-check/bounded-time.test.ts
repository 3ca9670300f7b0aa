/** The check of types blocks the process for a bounded time, whatever the definition. */

import { expect, it } from 'vitest';
import { compileEnsemble } from '../../src/engine/definition/compile/compile-ensemble.ts';
import { parseDefinition } from '../../src/engine/definition/read/parse-ensemble.ts';
import { SchemaTypes } from '../../src/engine/definition/types/from-json-schema.ts';
import { compileHost } from '../../src/orchestrator/create-orchestrator.ts';
import { scaled } from '../slowdown.ts';

const host = compileHost({ scripts: { s: () => null } });
const MAX_MS = 100;

const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const step = (agent: string, more: object = {}) => ({ agent, operation: 'code', config: { script: 's' }, ...more });
const compared = many(8, (i) => `(input.a${i} != null && input.b${i} == 'x')`).join(' || ');
const columns = {
  type: 'object',
  properties: Object.fromEntries(
    many(16, (i) => (i < 8 ? [`a${i}`, { type: 'string' }] : [`b${i - 8}`, { enum: ['x', 'y'] }])),
  ),
};
const variants = (count: number) => ({
  oneOf: many(count, (i) => ({ type: 'object', properties: { kind: { const: `k${i}` } }, required: ['kind'] })),
});
const tree = { type: 'object', properties: Object.fromEntries(many(12, (i) => [`c${i}`, { $ref: '#/$defs/n' }])) };
const nest = <T>(depth: number, inner: T, around: (inner: T, i: number) => T): T =>
  many(depth, (i) => i).reduce(around, inner);

const DEFINITIONS: Readonly<Record<string, object>> = {
  '1,000 agents, each of which reads the one before it': {
    flow: many(1000, (i) => step(`a${i}`, { input: { x: i === 0 ? 1 : `\${a${i - 1}.output.x}` } })),
  },
  '450 conditions of eight comparisons, all equal': {
    inputs: columns,
    flow: many(450, (i) => ({ if: `\${${compared}}`, then: [step(`a${i}`)] })),
  },
  '400 conditions over a union': {
    inputs: { type: 'object', properties: { u: variants(8) } },
    flow: many(400, (i) => ({ if: `\${input.u.kind == 'k${i % 8}' || input.u.kind == null}`, then: [step(`a${i}`)] })),
  },
  'a union of 200 objects': {
    inputs: { type: 'object', properties: { u: variants(200) } },
    flow: many(100, (i) => ({ if: `\${input.u.kind == 'k${i}'}`, then: [step(`a${i}`)] })),
  },
  'a schema that refers to itself twelve ways': {
    inputs: { type: 'object', properties: { n: { $ref: '#/$defs/n' } }, $defs: { n: tree } },
    flow: [],
    outputs: Object.fromEntries(many(200, (i) => [`o${i}`, '${input.n.c1.c2.c3.c4.c5.c6.c7.c8.c9}'])),
  },
  '900 conditions on steps before them': {
    flow: many(900, (i) =>
      step(
        `a${i}`,
        i < 3 ? {} : { condition: `\${a${i - 1}.success && a${i - 2}.output.x != null || a${i - 3}.failed}` },
      ),
    ),
  },
  'arrows in arrows': {
    inputs: { type: 'object', properties: { l: { type: 'array', items: { type: ['string', 'null'] } } } },
    flow: [],
    outputs: Object.fromEntries(
      many(50, (i) => [
        `o${i}`,
        `\${${nest(14, 'true', (inner, n) => `some(input.l, x${n} => x${n} != null && ${inner})`)}}`,
      ]),
    ),
  },
  'loops in loops': {
    flow: [nest<object>(16, step('a'), (inner, i) => ({ while: `\${!a.executed || input.n > ${i}}`, steps: [inner] }))],
  },
};

it.each(Object.entries(DEFINITIONS))('%s', (_what, definition) => {
  const { types } = compileEnsemble(parseDefinition({ name: 'e', ...definition } as never), host);
  // Time of the processor, which other tests don't take away.
  const times = many(5, () => {
    const begun = process.cpuUsage();
    types?.(() => undefined, new SchemaTypes());
    const { user, system } = process.cpuUsage(begun);
    return (user + system) / 1000;
  });
  expect(types).toBeDefined();
  expect(Math.min(...times)).toBeLessThan(scaled(MAX_MS));
});
