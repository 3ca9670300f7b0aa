/** Mistakes in the config of an operation of the host, with schemas of several libraries. */

import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, expectTypeOf, test } from 'vitest';
import * as z from 'zod';
import * as mini from 'zod/mini';
import type { StandardSchema } from '../../src/engine/operation/standard-schema.port.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { createOrchestrator, defineOperation, isOrchestratorError, type JsonObject } from '../../src/index.ts';

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
  const schemas: [string, StandardSchema<unknown, unknown>][] = [
    ['valibot', v.strictObject({ text: v.string(), to: v.optional(v.strictObject({ address: v.string() })) })],
    ['arktype', type({ '+': 'reject', text: 'string', 'to?': { '+': 'reject', address: 'string' } })],
  ];

  test.each(schemas)(
    '%s: an unknown key gets the list of keys and the nearest one, also in a map inside',
    (_, schema) => {
      const known = 'the keys are `text` and `to`';
      expect(problemsOf({ text: 'a', colour: 1 }, schema)).toEqual([
        `colour: \`colour\` is not a key of the config of \`shout\`; ${known}`,
      ]);
      expect(problemsOf({ txt: 'a', to: { adress: 'x' } }, schema).sort()).toEqual([
        'to.adress: `adress` is not a key of the config of `shout`; the only key is `address` -> address',
        `txt: \`txt\` is not a key of the config of \`shout\`; ${known} -> text`,
      ]);
    },
  );

  test.each(schemas)('%s: a value of a wrong type is a problem, and an expression in its place is not', (_, schema) => {
    expect(problemsOf({ text: 5 }, schema)).toEqual([expect.stringMatching(/^text: .*string/)]);
    expect(problemsOf({ text: '${input.text}', to: '${input.to}' }, schema)).toEqual([]);
  });

  test('a schema that shows nothing keeps its own message', () => {
    const validate = () => ({ issues: [{ message: 'no key `txt` here', path: [{ key: 'txt' }] }] });
    expect(problemsOf({ txt: 'b' }, { '~standard': { version: 1, vendor: 'mine', validate } })).toEqual([
      'txt: no key `txt` here',
    ]);
  });

  test('a problem in YAML has its line, its column and the line of the source', () => {
    const operations = [defineOperation({ name: 'shout', config: schemas[1]?.[1], run: () => null })];
    const yaml = 'name: e\nflow:\n  - agent: a\n    operation: shout\n    config:\n      text: a\n      adress: b\n';
    const load = () => createOrchestrator({ operations, ensembles: [yaml] });
    expect(load).toThrow('7:7 flow[0].config.adress: `adress` is not a key of the config of `shout`');
    expect(load).toThrow('7 |       adress: b');
  });
});

describe('schemas that the library refuses', () => {
  const asynchronous: [string, StandardSchema<unknown, unknown>][] = [
    ['zod', z.object({ text: z.string().refine(async () => true) })],
    [
      'valibot',
      v.objectAsync({
        text: v.pipeAsync(
          v.string(),
          v.checkAsync(async () => true),
        ),
      }),
    ],
  ];

  test.each(asynchronous)('one of %s that is asynchronous, at load', (_, schema) => {
    expect(() => problemsOf({ text: 'a' }, schema)).toThrow(
      'operation `shout`: the schema of its config must be synchronous; make asynchronous checks in `run`',
    );
  });

  test('one that shows only before an attempt that it is asynchronous', async () => {
    const schema = z.object({ size: z.number().refine(async () => true) });
    const operations = [defineOperation({ name: 'shout', config: schema, run: () => 'ran' })];
    const flow = [{ agent: 'a', operation: 'shout', config: { size: '${input.size}' }, retry: { maxAttempts: 2 } }];
    const { error, agents } = await createOrchestrator({ operations, ensembles: [{ name: 'e', flow }] }).execute('e', {
      size: 5,
    });
    expect([error?.code, error?.message, agents[0]?.attempts]).toEqual([
      'NOT_CONFIGURED',
      'operation `shout`: the schema of its config must be synchronous; make asynchronous checks in `run`',
      1,
    ]);
  });

  test('one that is no Standard Schema', () => {
    const config = { parse: () => null } as never;
    expect(() => createOrchestrator({ operations: [{ name: 'shout', config, run: () => null }] })).toThrow(
      '`config` of operation `shout` must be a Standard Schema, such as one of zod, valibot or arktype',
    );
  });
});

describe('what an operation receives', () => {
  test('the type of its config is that of its schema, and a map of JSON without one', async () => {
    const seen: unknown[] = [];
    const operations = [
      defineOperation({
        name: 'of-zod',
        config: z.object({ text: z.string(), size: z.number().default(1) }),
        run({ config }) {
          expectTypeOf(config).toEqualTypeOf<{ text: string; size: number }>();
          seen.push(config);
        },
      }),
      defineOperation({
        name: 'of-valibot',
        config: v.object({ text: v.string() }),
        run({ config }) {
          expectTypeOf(config).toEqualTypeOf<{ text: string }>();
          seen.push(config);
        },
      }),
      defineOperation({
        name: 'of-arktype',
        config: type({ text: 'string' }),
        run({ config }) {
          expectTypeOf(config).toEqualTypeOf<{ text: string }>();
          seen.push(config);
        },
      }),
      defineOperation({
        name: 'of-none',
        run({ config }) {
          expectTypeOf(config).toEqualTypeOf<JsonObject>();
          seen.push(config);
        },
      }),
    ];
    const flow = operations.map(({ name }) => ({ agent: name, operation: name, config: { text: '${input.text}' } }));
    const orchestrator = createTestOrchestrator({ operations, ensembles: [{ name: 'e', flow }] });
    expect((await orchestrator.execute('e', { text: 'a' })).status).toBe('completed');
    expect(seen).toEqual([{ text: 'a', size: 1 }, { text: 'a' }, { text: 'a' }, { text: 'a' }]);
  });

  const received = async (schema: StandardSchema<unknown, unknown>, config: object, input = {}) => {
    const seen: unknown[] = [];
    const operations = [
      defineOperation({
        name: 'shout',
        config: schema,
        run(context) {
          seen.push(context.config);
        },
      }),
    ];
    const orchestrator = createOrchestrator({
      operations,
      ensembles: [{ name: 'e', flow: [{ agent: 'a', operation: 'shout', config }] }],
    });
    for (let i = 0; i < 2; i++) expect((await orchestrator.execute('e', input)).status).toBe('completed');
    return seen;
  };

  test('defaults and transformed values, also such that are not JSON: each attempt has its own', async () => {
    const schema = z.object({ at: z.string().transform((text) => new URL(text)), tries: z.number().default(3) });
    const [first, second] = (await received(schema, { at: 'https://example.com/x' })) as { at: URL; tries: number }[];
    expect([first?.at.pathname, first?.tries, second?.at.pathname]).toEqual(['/x', 3, '/x']);
    expect(first?.at).not.toBe(second?.at);
  });

  test('a config without expressions is frozen, and a default of the schema is not', async () => {
    const shared = ['a'];
    const schema = z.object({ tags: z.array(z.string()).default(shared) });
    const [first] = (await received(schema, {})) as { tags: string[] }[];
    expect([Object.isFrozen(first?.tags), Object.isFrozen(shared)]).toEqual([true, false]);
  });
});
