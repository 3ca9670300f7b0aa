/** Mistakes in the config of an operation of the host, with schemas of several libraries. */

import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import * as mini from 'zod/mini';
import type { StandardSchema } from '../../src/engine/ports/standard-schema.ts';
import { createOrchestrator, defineOperation, isOrchestratorError } from '../../src/index.ts';

/** `path: message (suggestion)` of each problem of a config. */
function problemsOf(config: object, schema: StandardSchema<unknown, unknown>): string[] {
  const operations = [defineOperation({ name: 'shout', config: schema, run: () => null })];
  const flow = [{ agent: 'a', operation: 'shout', config }];
  try {
    createOrchestrator({ operations, ensembles: [{ name: 'e', flow }] });
    return [];
  } catch (error) {
    if (!isOrchestratorError(error, 'INVALID_DEFINITION')) throw error;
    return error.details.issues.map(({ path, message, suggestion }) =>
      [`${path.replace('flow[0].config.', '')}: ${message}`, suggestion].filter(Boolean).join(' -> '),
    );
  }
}

const keys = 'the keys are `text`, `volume`, `to` and `parts`';

describe('config schemas of zod', () => {
  const strict = z.strictObject({
    text: z.string(),
    volume: z.optional(z.number()),
    to: z.union([z.strictObject({ address: z.string() }), z.string()]).nullish(),
    parts: z.array(z.strictObject({ title: z.string().default('x'), weight: z.number().optional() })).optional(),
  });

  test('an unknown key gets the list of keys and the nearest one, which is not missing too', () => {
    expect(problemsOf({ txt: 'a', volum: 3 }, strict)).toEqual([
      `txt: \`txt\` is not a key of the config of \`shout\`; ${keys} -> text`,
      `volum: \`volum\` is not a key of the config of \`shout\`; ${keys} -> volume`,
    ]);
    expect(problemsOf({ text: 'a', colour: 'red' }, strict)).toEqual([
      `colour: \`colour\` is not a key of the config of \`shout\`; ${keys}`,
    ]);
  });

  test('keys inside lists, and next to expressions', () => {
    expect(problemsOf({ text: 'a', parts: [{ titel: '${input.title}' }] }, strict)).toEqual([
      'parts[0].titel: `titel` is not a key of the config of `shout`; the keys are `title` and `weight` -> title',
    ]);
  });

  test('an open map with a required key: the similar key that is given', () => {
    const open = z.object({ text: z.string(), limit: z.number().optional() });
    expect(problemsOf({ texte: 'a' }, open)).toEqual(['texte: `text` is required -> text']);
    expect(problemsOf({ limit: 3 }, open)).toEqual(['text: `text` is required']);
  });

  test('schemas of zod/mini, pipes, lazy schemas and schemas that contain themselves', () => {
    const schema = mini.pipe(
      mini.strictObject({
        get text() {
          return mini.optional(mini.string());
        },
      }),
      mini.transform((value) => value),
    );
    expect(problemsOf({ txet: 'a' }, schema)).toEqual([
      'txet: `txet` is not a key of the config of `shout`; the only key is `text` -> text',
    ]);
    const tree: z.ZodType = z.lazy(() => z.strictObject({ label: z.string().optional(), inner: tree.optional() }));
    expect(problemsOf({ inner: { inner: { lable: 'a' } } }, tree)).toEqual([
      'inner.inner.lable: `lable` is not a key of the config of `shout`; the keys are `label` and `inner` -> label',
    ]);
  });
});

describe('config schemas of other libraries', () => {
  // A strict map as valibot builds and reports it.
  const validate = (value: unknown) => {
    const issues = Object.keys(value as object)
      .filter((key) => key !== 'text')
      .map((key) => ({ message: `Invalid key: Expected never but received "${key}"`, path: [{ key }] }));
    return issues.length > 0 ? { issues } : { value };
  };
  const standard = { version: 1 as const, vendor: 'valibot', validate };

  test('a schema that shows its entries gets the same message', () => {
    const schema = { '~standard': standard, type: 'strict_object', entries: { text: {} } };
    expect(problemsOf({ text: 'a', txt: 'b' }, schema)).toEqual([
      'txt: `txt` is not a key of the config of `shout`; the only key is `text` -> text',
    ]);
  });

  test('a schema that shows nothing keeps its own message', () => {
    expect(problemsOf({ txt: 'b' }, { '~standard': standard })).toEqual([
      'txt: Invalid key: Expected never but received "txt"',
    ]);
  });
});
