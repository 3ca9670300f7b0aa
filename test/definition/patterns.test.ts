/** Patterns of JSON Schemas: those that a text can make slow are refused at load, the usual ones are taken. */

import { describe, expect, it } from 'vitest';
import { slowPattern } from '../../src/engine/definition/check-pattern.ts';
import { createOrchestrator, isOrchestratorError } from '../../src/index.ts';
import vectors from '../vectors/patterns.json' with { type: 'json' };

interface Vector {
  readonly pattern: string;
  /** What the refusal says; a pattern without it is taken. */
  readonly slow?: string;
  readonly why: string;
}

const all = vectors as readonly Vector[];

function load(schema: object) {
  return createOrchestrator({ ensembles: [{ name: 'a', inputs: { type: 'object', ...schema } as never, flow: [] }] });
}

describe('patterns', () => {
  it.each(all.map((vector) => [vector.pattern.slice(0, 60), vector.why, vector] as const))(
    '%s: %s',
    (_p, _w, vector) => {
      const said = slowPattern(vector.pattern);
      if (vector.slow === undefined) expect(said).toBeUndefined();
      else expect(said).toContain(vector.slow);
    },
  );

  it('what is taken looks at a long text once', () => {
    const texts = ['a', 'a-', 'a.', '1', '1.', ' ', '-', '"\\\\', 'a@a.', 'Aa1', '/a'].flatMap((part) =>
      ['', '!', '\n'].map((end) => part.repeat(20_000) + end),
    );
    const began = performance.now();
    for (const { pattern, slow } of all) {
      const regex = new RegExp(pattern);
      if (slow === undefined) for (const text of texts) regex.test(text);
    }
    // One pattern that were quadratic would take longer by itself.
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  it('are refused wherever a schema holds them, with their place', () => {
    const slow = '^(a+)+$';
    const schema = {
      properties: { a: { type: 'string', pattern: slow }, pattern: { type: 'array', items: { pattern: slow } } },
      patternProperties: { [slow]: {} },
      propertyNames: { pattern: slow },
    };
    try {
      load(schema);
      throw new Error('it was taken');
    } catch (error) {
      if (!isOrchestratorError(error, 'INVALID_DEFINITION')) throw error;
      const issues = error.details.issues as { path: string; message: string }[];
      expect(issues.map(({ path }) => path).sort()).toEqual([
        'inputs.patternProperties["^(a+)+$"]',
        'inputs.properties.a.pattern',
        'inputs.properties.pattern.items.pattern',
        'inputs.propertyNames.pattern',
      ]);
      for (const { message } of issues)
        expect(message).toMatch(/^is a pattern that a text could make very slow: what it/);
    }
  });

  it('a key of patternProperties that is no pattern is refused', () => {
    expect(() => load({ patternProperties: { '[': {} } })).toThrow("must be a regular expression, not '['");
  });
});
