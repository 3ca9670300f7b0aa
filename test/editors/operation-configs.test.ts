/** Operations of a project: what the JSON Schema for editors checks in their config. */

import { Ajv } from 'ajv';
import { type } from 'arktype';
import * as v from 'valibot';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { definitionSchema } from '../../src/cli/schema/definition-schema.ts';
import { defineOperation } from '../../src/index.ts';
import { compileHost } from '../../src/orchestrator/create-orchestrator.ts';

type Config = NonNullable<Parameters<typeof defineOperation>[0]['config']>;

/** Whether each config fits an operation with this schema. */
function accepted(schema: unknown, configs: readonly object[]): readonly boolean[] {
  const operation = defineOperation({ name: 'mine/own', config: schema as Config, run: () => null });
  const ajv = new Ajv({ strict: true, strictTypes: false, strictRequired: false });
  ajv.addVocabulary(['markdownDescription', 'errorMessage', 'doNotSuggest']);
  const validate = ajv.compile(definitionSchema(compileHost({ operations: [operation] }).operations));
  return configs.map((config) => validate({ name: 'a', flow: [{ agent: 'b', operation: 'mine/own', config }] }));
}

const validator = { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) };

test('a zod schema is checked, and every value in it may be an expression', () => {
  const schema = z.object({ size: z.number(), tags: z.array(z.enum(['a', 'b'])).optional() });
  expect(accepted(schema, [{ size: 1 }, { size: '${input.size}', tags: ['a', '${input.tag}'] }])).toEqual([true, true]);
  expect(accepted(schema, [{ size: '1' }, { size: 1, tags: ['c'] }, {}])).toEqual([false, false, false]);
});

test('one of several maps is decided by any key with a fixed text', () => {
  const schema = z.object({
    source: z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('file'), path: z.string() }),
      z.object({ kind: z.literal('web'), url: z.string() }),
    ]),
  });
  const sources = [{ kind: 'file', path: 'x' }, { kind: 'web', url: 'x' }, '${input.source}'];
  expect(
    accepted(
      schema,
      sources.map((source) => ({ source })),
    ),
  ).toEqual([true, true, true]);
  const wrong = [{ kind: 'file' }, { kind: 'else', path: 'x' }, {}, 5];
  expect(
    accepted(
      schema,
      wrong.map((source) => ({ source })),
    ),
  ).toEqual([false, false, false, false]);
});

test('a schema of another library is checked when it has a JSON Schema', () => {
  const json = { type: 'object', properties: { size: { type: 'number' } }, required: ['size'] };
  const schema = { '~standard': { ...validator, jsonSchema: { input: () => json } } };
  expect(accepted(schema, [{ size: 1 }, { size: true }, {}])).toEqual([true, false, false]);
});

test('any config is accepted when the schema has no JSON Schema, or one that refers to itself', () => {
  const anything = [{}, { size: 'x', more: [1] }];
  expect(accepted({ '~standard': validator }, anything)).toEqual([true, true]);
  const failing = {
    '~standard': {
      ...validator,
      jsonSchema: {
        input: () => {
          throw new Error('not supported');
        },
      },
    },
  };
  expect(accepted(failing, anything)).toEqual([true, true]);
  const tree: z.ZodType = z.object({
    get children() {
      return z.array(tree);
    },
  });
  expect(accepted(tree, anything)).toEqual([true, true]);
});

test('a schema of arktype is checked, with its keys', () => {
  const schema = type({ '+': 'reject', size: 'number', 'tags?': 'string[]' });
  expect(accepted(schema, [{ size: 1, tags: ['${input.tag}'] }, { size: '${input.size}' }])).toEqual([true, true]);
  expect(accepted(schema, [{ size: 'x' }, {}, { size: 1, sise: 2 }])).toEqual([false, false, false]);
});

test('a choice between maps is checked', () => {
  const schema = z.discriminatedUnion('do', [
    z.object({ do: z.literal('send'), to: z.string() }),
    z.object({ do: z.literal('drop') }),
  ]);
  expect(accepted(schema, [{ do: 'send', to: '${input.to}' }, { do: 'drop' }])).toEqual([true, true]);
  expect(accepted(schema, [{ do: 'send' }, { do: 'keep' }, {}])).toEqual([false, false, false]);
  const union = z.union([z.strictObject({ a: z.number() }), z.strictObject({ b: z.number() })]);
  expect(accepted(union, [{ a: 1 }, { b: '${input.b}' }, { a: 'x' }, { c: 1 }])).toEqual([true, true, false, false]);
});

test('a config whose schema has no JSON Schema is a map, with a description', () => {
  const schema = v.object({ size: v.number() });
  expect(accepted(schema, [{ size: 1 }, { more: 1 }])).toEqual([true, true]);
  const operation = defineOperation({ name: 'mine', config: schema, run: () => null });
  const { definitions } = definitionSchema(compileHost({ operations: [operation] }).operations);
  expect((definitions as Record<string, unknown>)['config-mine']).toMatchObject({
    type: 'object',
    description: 'The config of the operation `mine`, which its own schema checks.',
  });
});
