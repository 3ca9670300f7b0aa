/** Every definition of `test/vectors/definitions/broken` is refused with exactly the issues that it must get. */

import { describe, expect, test } from 'vitest';
import type { DefinitionIssue } from '../../src/engine/base/errors.ts';
import { formatIssue } from '../../src/engine/definition/source/definition-issue.ts';
import { createOrchestrator, isOrchestratorError, type OrchestratorError } from '../../src/index.ts';
import { scaled } from '../slowdown.ts';
import { type BrokenVector, options, readVectors } from './definition-fixtures.ts';

const vectors = readVectors<BrokenVector>('broken');

function refusal(source: string | object, agents: BrokenVector['agents'] = []): OrchestratorError {
  try {
    createOrchestrator({ ...options(), ensembles: [source as string], agents });
  } catch (error) {
    if (isOrchestratorError(error)) return error;
    throw error;
  }
  throw new Error('the definition was accepted');
}

function issuesOf(error: OrchestratorError): readonly DefinitionIssue[] {
  return error.details.issues as readonly DefinitionIssue[];
}

function brief({ line, column, path, message, suggestion }: DefinitionIssue) {
  return { at: `${line}:${column}`, path, message, ...(suggestion === undefined ? {} : { suggestion }) };
}

describe('broken definitions', () => {
  test('there are at least 120 vectors, each with a different source', () => {
    expect(vectors.length).toBeGreaterThanOrEqual(120);
    expect(new Set(vectors.map(({ source, agents }) => source + JSON.stringify(agents))).size).toBe(vectors.length);
  });

  test.each(vectors)('$file: $why', (vector) => {
    const error = refusal(vector.source, vector.agents);
    expect(issuesOf(error).map(brief)).toEqual(vector.issues);
    expect(error.code).toBe(vector.code ?? 'INVALID_DEFINITION');
    expect(issuesOf(error).every((issue) => issue.frame !== undefined)).toBe(true);
    if (vector.printed) expect(`${issuesOf(error).map(formatIssue).join('\n\n')}\n`).toBe(vector.printed);
  });

  test('the message of the error contains every issue, and the name of the ensemble when it could be read', () => {
    const error = refusal('name: orders\nflow: [{ agent: nobody }]\noutputs: { x: "${b.output}" }\n');
    expect(error.message).toBe(
      `ensemble \`orders\` has 2 problems:\n\n${issuesOf(error).map(formatIssue).join('\n\n')}`,
    );
    expect(refusal('name: 7\nflow: []\n').message).toMatch(
      /^the definition has 1 problem:\n\n1:7 name: must be a string/,
    );
  });
});

describe('definitions that are objects', () => {
  test('an object gets the same messages as its text, without places', () => {
    const issues = issuesOf(refusal({ name: 'a', flow: [{ agnet: 'b' }], outputs: { x: '${nobody.output}' } }));
    expect(issues).toEqual([
      { ensemble: 'a', path: 'flow[0].agnet', message: '`agnet` is not a key of a step', suggestion: 'agent' },
      { ensemble: 'a', path: 'outputs.x', message: 'there is no agent or name `nobody`' },
    ]);
  });

  test('a value that is not plain data is refused with its place', () => {
    const when = new Map();
    const issues = issuesOf(refusal({ name: 'a', flow: [], outputs: { when } }));
    expect(issues).toEqual([
      {
        ensemble: 'ensembles[0]',
        path: 'outputs.when',
        message: 'is a Map (use Object.fromEntries(map)), not plain data',
      },
    ]);
  });

  test('an object with an own key __proto__ is refused', () => {
    const source = JSON.parse('{ "name": "a", "flow": [], "__proto__": { "x": 1 } }') as object;
    expect(issuesOf(refusal(source)).map((issue) => issue.path)).toEqual(['__proto__']);
  });
});

describe('limits', () => {
  const step = '  - { agent: b }\n';
  const agents = 'agents: [{ name: b, operation: code, config: { script: score } }]\n';

  test('1,001 steps at all levels together are refused with one issue', () => {
    const nested = `  - if: "true"\n    then:\n${`    ${step}`.repeat(500)}    else:\n${`    ${step}`.repeat(500)}`;
    const issues = issuesOf(refusal(`name: a\nflow:\n${nested}${agents}outputs: { x: "\${b.output}" }\n`));
    expect(issues.map(brief)).toEqual([
      { at: '3:3', path: 'flow', message: 'has 1001 steps; at most 1000 are allowed; split it into several ensembles' },
    ]);
  });

  test('a text with more than 500,000 keys, values and signs is refused where it exceeds the limit, before it is composed', () => {
    const began = process.cpuUsage();
    const [issue] = issuesOf(refusal(`name: a\nx: [${'{},'.repeat(300_000)}]\n`));
    expect([issue?.line, issue?.message]).toEqual([
      2,
      expect.stringMatching(/^the document has more than 500000 keys, values and signs/),
    ]);
    // Processor time: other processes of the machine do not count.
    const { user, system } = process.cpuUsage(began);
    expect((user + system) / 1000).toBeLessThan(scaled(2_000));
  });

  test('steps are counted inside every form', () => {
    // `forms` has nine steps and `tries` has four, with the steps inside.
    const forms = (i: number) => `
  - parallel: [{ agent: b, name: p${i} }, { sleep: 1s }]
  - switch: \${input.x}
    cases: { a: [{ agent: b, name: s${i} }], b: [{ agent: b, name: s${i} }] }
    default: [{ agent: b, name: s${i} }]
  - while: \${input.x}
    steps: [{ until: 2030-01-31 }]`;
    const tries = (i: number) => `
  - try: [{ agent: b, name: t${i} }]
    catch: [{ agent: b, name: c${i} }]
    finally: [{ agent: b, name: f${i} }]`;
    const all = Array.from({ length: 76 }, (_, i) => forms(i) + tries(i)).join('');
    const rest = Array.from({ length: 12 }, (_, i) => `\n  - { agent: b, name: r${i} }`).join('');
    const load = (more: string) => refusal(`name: a\nflow:${all}${rest}${more}\n${agents}`);
    expect(() => load('')).toThrow('the definition was accepted');
    expect(issuesOf(load('\n  - sleep: 1s')).map(({ message }) => message)).toEqual([
      'has 1001 steps; at most 1000 are allowed; split it into several ensembles',
    ]);
  });

  test('1,000 steps are accepted', () => {
    const steps = Array.from({ length: 1000 }, (_, i) => `  - { agent: b, name: n${i} }\n`).join('');
    expect(() => createOrchestrator({ ...options(), ensembles: [`name: a\nflow:\n${steps}${agents}`] })).not.toThrow();
  });

  test('1,001 agents are refused with one issue', () => {
    const many = Array.from(
      { length: 1001 },
      (_, i) => `  - { name: n${i}, operation: code, config: { script: score } }\n`,
    );
    const issues = issuesOf(refusal(`name: a\nflow: [{ agent: n7 }]\nagents:\n${many.join('')}`));
    expect(issues.map(brief)).toEqual([
      { at: '4:3', path: 'agents', message: 'has 1001 entries; at most 1000 are allowed' },
    ]);
  });

  test('a `foreach` over 100,001 literal items is refused, over 100,000 items it is accepted', () => {
    const over = (count: number) =>
      `name: a\nflow:\n  - foreach: [${Array(count).fill('1').join(',')}]\n    steps: [{ agent: b }]\n${agents}`;
    expect(issuesOf(refusal(over(100_001))).map(brief)).toEqual([
      { at: '3:14', path: 'flow[0].foreach', message: 'has 100001 items; at most 100000 are allowed' },
    ]);
    expect(() => createOrchestrator({ ...options(), ensembles: [over(100_000)] })).not.toThrow();
  });

  test('an expression that is too long is refused at its place', () => {
    const issues = issuesOf(refusal(`name: a\nflow: []\noutputs:\n  x: "\${${'1+'.repeat(5000)}1}"\n`));
    expect(issues.map(({ line, column, path }) => ({ line, column, path }))).toEqual([
      { line: 4, column: 9, path: 'outputs.x' },
    ]);
    expect(issues[0]?.message).toContain('longer than');
  });

  test('of thousands of problems, the first hundred and the total number are shown', () => {
    const outputs = Array.from({ length: 3000 }, (_, i) => `  x${i}: \${nobody.output}\n`).join('');
    const issues = issuesOf(refusal(`name: a\nflow: []\noutputs:\n${outputs}`));
    expect(issues).toHaveLength(101);
    expect(issues[99]?.line).toBe(103);
    expect(issues[100]?.message).toBe('only 100 of 3000 problems are shown; fix these first');
  });

  test('ten thousand mistakes are reported in linear time', () => {
    const outputs = Array.from({ length: 10_000 }, (_, i) => `  x${i}: \${nobody.output + }\n`).join('');
    // The fastest of three runs counts, because the machine may be busy. A quadratic search takes many seconds.
    let best = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 3; i++) {
      const start = performance.now();
      refusal(`name: a\nflow: []\noutputs:\n${outputs}`);
      best = Math.min(best, performance.now() - start);
    }
    expect(best).toBeLessThan(scaled(2000));
  });
});

describe('printed issues', () => {
  test('a printed issue contains no control characters of keys and names', () => {
    const error = refusal('name: a\nflow: []\n"k\\e[31m\\nred": 1\n');
    expect(issuesOf(error).map(formatIssue).join('')).not.toContain('\u001b');
    expect(issuesOf(error)[0]?.message).toBe('`k\ufffd[31m\ufffdred` is not a key of an ensemble');
  });

  test('a name of a thousand characters is cut', () => {
    const key = 'k'.repeat(1000);
    expect(issuesOf(refusal(`name: a\nflow: []\n${key}: 1\n`))[0]?.message).toBe(
      `\`${'k'.repeat(79)}…\` is not a key of an ensemble`,
    );
  });
});
