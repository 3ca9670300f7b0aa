/** Patterns of JSON Schemas: patterns that can be slow are refused at load, and usual patterns are accepted. */

import { describe, expect, it } from 'vitest';
import { slowPattern } from '../../src/engine/json-schema/check-pattern.ts';
import { createOrchestrator, isOrchestratorError } from '../../src/index.ts';
import { scaled } from '../slowdown.ts';
import vectors from '../vectors/patterns.json' with { type: 'json' };

interface Vector {
  readonly pattern: string;
  /** Part of the message of the refusal. A pattern without it must be accepted. */
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
      const reason = slowPattern(vector.pattern);
      if (vector.slow === undefined) expect(reason).toBeUndefined();
      else expect(reason).toContain(vector.slow);
    },
  );

  it('accepted patterns are fast on long texts', () => {
    const texts = ['a', 'a-', 'a.', '1', '1.', ' ', '-', '"\\\\', 'a@a.', 'Aa1', '/a'].flatMap((part) =>
      ['', '!', '\n'].map((end) => part.repeat(20_000) + end),
    );
    const began = performance.now();
    for (const { pattern, slow } of all) {
      const regex = new RegExp(pattern, 'u');
      if (slow === undefined) for (const text of texts) regex.test(text);
    }
    // A single quadratic pattern would take longer.
    expect(performance.now() - began).toBeLessThan(scaled(5_000));
  });

  it('slow patterns are refused at every place of a schema, with the place', () => {
    const slow = '^(a+)+$';
    const schema = {
      properties: { a: { type: 'string', pattern: slow }, pattern: { type: 'array', items: { pattern: slow } } },
      patternProperties: { [slow]: {} },
      propertyNames: { pattern: slow },
    };
    try {
      load(schema);
      throw new Error('the schema was accepted');
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
        expect(message).toMatch(/^is a pattern that can be very slow on some texts: the part/);
    }
  });

  it.each(['a\\-b', '^\\@', '\\_', 'a{', '}', ']', '\\p{No}{', '\\pL', '\\u{110000}'])(
    '%s can not be read in Unicode mode, and is refused with what to write',
    (pattern) => {
      const text = 'is not valid in Unicode mode, in which JSON Schema reads a pattern: escape no other characters';
      expect(() => load({ properties: { a: { pattern } } })).toThrow(text);
      expect(() => load({ patternProperties: { [pattern]: {} } })).toThrow(text);
    },
  );

  it.each([
    ['^\\p{L}+$', ['Ada', 'Łukasz', '京'], ['p{L}', 'Ada1', '']],
    ['^.$', ['b', '😀'], ['ab']],
    ['^[😀-😂]$', ['😁'], ['\ud83d', 'a']],
    ['^\\p{Script=Greek}\\P{L}$', ['α1'], ['a1', 'αα']],
  ])('%s means what JSON Schema says', async (pattern, right, wrong) => {
    const orchestrator = createOrchestrator({
      ensembles: [
        {
          name: 'a',
          inputs: {
            type: 'object',
            properties: { a: { type: 'string', pattern } },
            patternProperties: { [pattern]: {} },
            additionalProperties: false,
          } as never,
          flow: [],
        },
      ],
    });
    for (const text of right) {
      await orchestrator.execute('a', { a: text } as never);
      await orchestrator.execute('a', { [`${text}`]: 'x' } as never);
    }
    for (const text of wrong)
      await expect(orchestrator.execute('a', { a: text } as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await orchestrator.close();
  });

  it('a key of patternProperties that is not a pattern is refused', () => {
    expect(() => load({ patternProperties: { '[': {} } })).toThrow("must be a regular expression, not '['");
  });
});
