/** Every definition of `test/vectors/definitions/valid` is accepted, and has the same meaning as its other spellings. */

import { describe, expect, test } from 'vitest';
import type { DefinitionIssue } from '../../src/engine/base/errors.ts';
import { compileEnsemble } from '../../src/engine/definition/compile/compile-ensemble.ts';
import type { CompileHost } from '../../src/engine/definition/compile/triggers/compile-host.ts';
import { parseDefinition, parseEnsemble } from '../../src/engine/definition/read/parse-ensemble.ts';
import { toIssues } from '../../src/engine/definition/source/problem.ts';
import { readSource } from '../../src/engine/definition/source/read-source.ts';
import { createOrchestrator } from '../../src/index.ts';
import { hostFor, readVectors, type ValidVector } from './definition-fixtures.ts';

const vectors = readVectors<ValidVector>('valid');

/** The hash of a definition that compiles. */
function hashOf(source: string | object, host: CompileHost): string {
  const { compiled, problems } = compileEnsemble(parseDefinition(source), host);
  expect(problems).toEqual([]);
  return compiled.stored.version;
}

function dataOf(source: string): object {
  const read = readSource(source);
  if (!read.ok) throw new Error('the vector is not YAML');
  return read.value as object;
}

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, reversed(inner)]),
  );
}

function brief({ line, column, path, message, suggestion }: DefinitionIssue) {
  return { at: `${line}:${column}`, path, message, ...(suggestion === undefined ? {} : { suggestion }) };
}

describe('valid definitions', () => {
  test('there are at least 60 vectors', () => {
    expect(vectors.length).toBeGreaterThanOrEqual(60);
  });

  test.each(vectors.filter(({ parseOnly }) => !parseOnly))('$file: $why', (vector) => {
    const host = hostFor(vector);
    const hash = hashOf(vector.source, host);
    expect(hash).toMatch(/^[0-9a-f]{32}$/);
    expect(hashOf(dataOf(vector.source), host), 'as an object').toBe(hash);
    expect(hashOf(reversed(dataOf(vector.source)) as object, host), 'with its keys in another order').toBe(hash);
    expect(hashOf(parseEnsemble(vector.source), host), 'read, and read again').toBe(hash);
    for (const other of vector.same ?? []) expect(hashOf(other, host), other).toBe(hash);
  });

  test.each(vectors.filter(({ parseOnly }) => !parseOnly))('warnings of $file: $why', (vector) => {
    const parsed = parseDefinition(vector.source);
    const { warnings } = compileEnsemble(parsed, hostFor(vector));
    const shown = toIssues(warnings, parsed.map).filter(({ message }) => !message.includes('by this version'));
    expect(shown.map(brief)).toEqual(vector.warnings ?? []);
  });

  test.each(vectors.filter(({ definition }) => definition))('reads as: $why', ({ source, definition }) => {
    expect(parseEnsemble(source)).toEqual(definition);
  });

  test('definitions with different meanings have different hashes', () => {
    const hashes = vectors
      .filter(({ parseOnly }) => !parseOnly)
      .map((vector) => hashOf(vector.source, hostFor(vector)));
    expect(new Set(hashes).size).toBe(hashes.length);
  });
});

describe('the compiled form', () => {
  test('the needs of a definition are listed, each one once', () => {
    const parsed = parseDefinition(`
name: a
flow:
  - { agent: b, operation: code, config: { script: score } }
  - { agent: c, operation: code, config: { script: score } }
  - { agent: d, operation: plain, config: { size: 1 } }
agents:
  - { name: spare, operation: code, config: { script: notify } }
`);
    expect(compileEnsemble(parsed, hostFor()).compiled.stored.needs).toEqual([
      'operation:code',
      'operation:plain',
      'script:score',
    ]);
  });

  test('the stored definition contains the shared agents that it uses, and its hash changes with them', () => {
    const source = 'name: a\nflow: [{ agent: lookup }]\n';
    const stored = (script: string) => {
      const lookup = { name: 'lookup', operation: 'code', config: { script } };
      const unused = { name: 'unused', operation: 'code', config: { script: 'score' } };
      return compileEnsemble(parseDefinition(source), hostFor({ agents: [lookup, unused] })).compiled.stored;
    };
    expect(stored('score').definition).toEqual({
      name: 'a',
      flow: [{ agent: 'lookup' }],
      agents: [{ name: 'lookup', operation: 'code', config: { script: 'score' } }],
    });
    expect(stored('score').version).not.toBe(stored('notify').version);
  });

  test('a shared agent may read `error`, which is null when the agent runs alone', async () => {
    const alert = {
      name: 'alert',
      operation: 'code',
      config: { script: 'echo' },
      input: '${error.code}: ${error.message}',
    };
    const flow = [
      { try: [{ agent: 'b', operation: 'code', config: { script: 'fail' } }], catch: [{ agent: 'alert' }] },
    ];
    const orchestrator = createOrchestrator({
      agents: [alert],
      ensembles: [{ name: 'a', flow, outputs: { alert: '${alert.output}' } }],
      scripts: {
        echo: ({ input }) => input,
        fail: () => {
          throw new Error('too late');
        },
      },
    });
    expect((await orchestrator.execute('a')).output).toEqual({ alert: 'AGENT_FAILED: too late' });
    expect((await orchestrator.executeAgent('alert')).output).toBe(': ');
  });

  test('exponential retries wait 1, 2, 4 s and at most a minute; linear and fixed retries follow `delay`, up to a day', () => {
    const waits = (retry: string) => {
      const { compiled } = compileEnsemble(
        parseDefinition(`name: a\nflow: [{ agent: b, operation: code, config: { script: score }, retry: ${retry} }]\n`),
        hostFor(),
      );
      const step = compiled.flow.steps[0];
      if (step?.kind !== 'agent') throw new Error('no agent step');
      return [1, 2, 3, 7, 99].map((attempt) => step.retry.delayAfter(attempt));
    };
    expect(waits('{ maxAttempts: 100 }')).toEqual([1000, 2000, 4000, 60_000, 60_000]);
    expect(waits('{ maxAttempts: 100, backoff: fixed, delay: 5 }')).toEqual([5, 5, 5, 5, 5]);
    expect(waits('{ maxAttempts: 100, backoff: linear }')).toEqual([1000, 2000, 3000, 7000, 99_000]);
    expect(waits('{ maxAttempts: 100, backoff: linear, delay: 86400000 }')[4]).toBe(86_400_000);
  });

  test('a lenient host, such as an editor, does not report missing variables, scripts and options', () => {
    const source = `
name: a
trigger: [{ type: webhook, path: /webhooks/a, auth: { type: bearer, secret: "\${env.UNKNOWN}" } }]
flow: [{ agent: b, operation: pdf, config: { html: "\${env.NUMBER}" } }]
`;
    const lenient = { ...hostFor(), lenient: true };
    expect(compileEnsemble(parseDefinition(source), lenient).problems).toEqual([]);
    expect(compileEnsemble(parseDefinition(source), hostFor()).problems).toHaveLength(3);
  });
});
