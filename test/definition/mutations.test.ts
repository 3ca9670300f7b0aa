/** Randomly damaged definitions are accepted, or refused fast with issues and places. Nothing else may happen. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { DefinitionIssue } from '../../src/engine/base/errors.ts';
import { compileEnsemble } from '../../src/engine/definition/compile/compile-ensemble.ts';
import { parseDefinition, parseEnsemble } from '../../src/engine/definition/read/parse-ensemble.ts';
import { toIssues } from '../../src/engine/definition/source/problem.ts';
import { readSource } from '../../src/engine/definition/source/read-source.ts';
import { createOrchestrator, isOrchestratorError } from '../../src/index.ts';
import { scaled } from '../slowdown.ts';
import { type BrokenVector, hostFor, options, readVectors, type ValidVector } from './definition-fixtures.ts';

const sources = [...readVectors<ValidVector>('valid'), ...readVectors<BrokenVector>('broken')].map(
  ({ source }) => source,
);
const documents = sources.flatMap((source) => {
  const read = readSource(source);
  return read.ok && typeof read.value === 'object' ? [read.value as object] : [];
});

const strange = fc.constantFrom<unknown>(
  ...[null, true, 0, -1, 1e9, 1.5, '', 'x', '${', '${}', '${nobody.output}', '${item.x}', '${env.X}', 'a b', '__proto'],
  ...[[], {}, [null], [[]], { a: null }, { agent: 'b' }, [{ agent: 'b' }], { type: 'object' }, { routes: [5] }],
  ...[
    { foreach: '${input.x}', steps: [{ agent: 'b' }] },
    { if: true, then: [{ agent: 'b' }] },
    ['constructor'],
    'toString',
    '90s',
    '2030-01-31',
    { until: '2030-01-31' },
    { sleep: '90s', name: 'b' },
    { parallel: [{ agent: 'b' }, { agent: 'c', input: '${b.output}' }], name: 'c' },
    { switch: '${input.x}', cases: { b: [{ agent: 'b' }], constructor: [] }, default: [{ agent: 'b' }] },
    { while: '${b.output}', steps: [{ agent: 'b' }] },
    { try: [{ agent: 'b' }], catch: [{ agent: 'c', input: '${error.message}' }] },
  ],
);
const keys = fc.constantFrom(
  ...['name', 'flow', 'agents', 'operations', 'members', 'agent', 'member', 'routes', 'config', 'type', 'operation'],
  ...['if', 'then', 'else', 'foreach', 'steps', 'as', 'when', 'condition', 'default', 'prompt', 'inputs', 'input'],
  ...[
    'outputs',
    'state',
    'initial',
    'setState',
    'retry',
    'trigger',
    'auth',
    'secret',
    'notifications',
    'nmae',
    'constructor',
    ...['parallel', 'waitFor', 'concurrency', 'switch', 'cases', 'while', 'maxIterations'],
    ...['try', 'catch', 'finally', 'sleep', 'until', 'wait', 'ensemble'],
  ],
);
const mutation = fc.record({
  where: fc.nat(),
  how: fc.constantFrom('drop', 'replace', 'rename', 'add', 'duplicate' as const),
  value: strange,
  key: keys,
});
type Mutation = { where: number; how: string; value: unknown; key: string };

/** Every container inside a value, with each of its keys. */
function places(value: unknown, found: [Record<string, unknown> | unknown[], string | number][] = []) {
  if (typeof value !== 'object' || value === null) return found;
  const container = value as Record<string, unknown>;
  for (const key of Array.isArray(value) ? value.keys() : Object.keys(value)) {
    found.push([container, key]);
    places(container[key as string], found);
  }
  return found;
}

function mutate(document: object, mutations: readonly Mutation[]): unknown {
  const root = { root: structuredClone(document) as unknown };
  for (const { where, how, value, key } of mutations) {
    const all = places(root);
    const [holder, at] = all[where % all.length] as (typeof all)[number];
    const map = holder as Record<string, unknown>;
    if (Array.isArray(holder)) {
      if (how === 'drop') holder.splice(at as number, 1);
      else if (how === 'duplicate') holder.push(structuredClone(holder[at as number]));
      else holder[at as number] = structuredClone(value);
    } else if (how === 'drop' && map !== root) delete map[at];
    else if (how === 'rename' && map !== root) {
      map[key] = map[at];
      delete map[at];
    } else if (how === 'add' && map !== root) map[key] = structuredClone(value);
    else if (map !== root) map[at] = structuredClone(value);
  }
  return root.root;
}

/** The issues of a refusal. Any other error fails the test. */
function issuesOf(load: () => unknown): readonly DefinitionIssue[] {
  try {
    load();
    return [];
  } catch (error) {
    if (!isOrchestratorError(error, 'INVALID_DEFINITION') && !isOrchestratorError(error, 'NOT_CONFIGURED')) throw error;
    return error.details.issues as readonly DefinitionIssue[];
  }
}

describe('damaged definitions', () => {
  const host = hostFor();

  test('are accepted or refused, as text and as objects, and every issue of a text has a place', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...documents),
        fc.array(mutation, { minLength: 1, maxLength: 6 }),
        (document, how) => {
          const damaged = mutate(document, how) as object;
          const text = stringify(damaged, { aliasDuplicateObjects: false });
          const fromText = issuesOf(() => createOrchestrator({ ...options(), ensembles: [text] }));
          for (const issue of fromText) {
            expect(issue.line, issue.message).toBeGreaterThan(0);
            expect(issue.column, issue.message).toBeGreaterThan(0);
            expect(issue.frame, issue.message).toContain('^');
            expect(issue.message.length).toBeGreaterThan(5);
            expect(issue.message).not.toMatch(/undefined|\[object|Invalid input/);
          }
          if (typeof damaged !== 'object' || damaged === null) return;
          const fromObject = issuesOf(() => createOrchestrator({ ...options(), ensembles: [damaged as never] }));
          expect(fromObject.map((issue) => issue.message).sort()).toEqual(
            fromText.map((issue) => issue.message).sort(),
          );
        },
      ),
      { numRuns: 1500 },
    );
  }, 120_000);

  test('an accepted definition is unchanged when it is parsed again', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...documents),
        fc.array(mutation, { minLength: 1, maxLength: 3 }),
        (document, how) => {
          const damaged = mutate(document, how) as object;
          if (issuesOf(() => parseEnsemble(damaged)).length > 0) return;
          const once = parseEnsemble(damaged);
          expect(parseEnsemble(once)).toEqual(once);
        },
      ),
      { numRuns: 500 },
    );
  }, 120_000);

  test('are accepted or refused in less than 50 ms', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...documents),
        fc.array(mutation, { minLength: 1, maxLength: 6 }),
        (document, how) => {
          const text = stringify(mutate(document, how), { aliasDuplicateObjects: false });
          const check = () =>
            issuesOf(() => toIssues(compileEnsemble(parseDefinition(text), host).problems, undefined));
          // The fastest run counts, because the machine may be busy. A slow check is slow in every run.
          let best = Number.POSITIVE_INFINITY;
          for (let i = 0; i < 30 && best >= 50; i++) {
            const start = performance.now();
            check();
            best = Math.min(best, performance.now() - start);
          }
          if (best >= 50) expect(best).toBeLessThan(scaled(50));
        },
      ),
      { numRuns: 500 },
    );
  }, 120_000);

  test('texts with missing characters are accepted, or refused with a place', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...sources),
        fc.nat(),
        fc.nat({ max: 20 }),
        fc.constantFrom('', '"', '{', '- ', ': ', '\n', '${'),
        (source, at, length, put) => {
          const start = at % source.length;
          const text = source.slice(0, start) + put + source.slice(start + length);
          for (const issue of issuesOf(() => createOrchestrator({ ...options(), ensembles: [text] }))) {
            expect(issue.message.length).toBeGreaterThan(5);
            if (issue.message !== 'the document is empty') expect(issue.line, issue.message).toBeGreaterThan(0);
          }
        },
      ),
      { numRuns: 1500 },
    );
  }, 120_000);
});
