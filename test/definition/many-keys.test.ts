/** A very large number of wrong keys is refused fast, with a helpful message. */

import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { readShape } from '../../src/engine/base/read-shape.ts';
import { suggestName } from '../../src/engine/base/suggest-name.ts';
import { createOrchestrator, isOrchestratorError, type OrchestratorError } from '../../src/index.ts';
import { scaled } from '../slowdown.ts';

const many = (count: number, prefix = 'customerNo') =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${prefix}${i}`, i]));

async function refusalOf(work: () => unknown): Promise<{ error: OrchestratorError; ms: number }> {
  const began = performance.now();
  try {
    await work();
  } catch (error) {
    if (isOrchestratorError(error)) return { error, ms: performance.now() - began };
    throw error;
  }
  throw new Error('the value was accepted');
}

const required = Array.from({ length: 10 }, (_, i) => `customerName${i}`);
const fields = Object.fromEntries(required.map((name) => [name, { type: 'string', required: true }]));
const schema = { type: 'object', properties: { id: { type: 'string' } }, additionalProperties: false };
const orchestrator = createOrchestrator({
  ensembles: [
    { name: 'fields', inputs: fields as never, flow: [] },
    { name: 'schema', inputs: schema, flow: [] },
  ],
});

const keys45000 = many(45_000);
const keys75000 = many(75_000);
// Far above the expected time, and far below the time of a quadratic search.
const MAX_MS = 1_500;

describe('very many wrong keys', () => {
  it('45,000 unknown keys with ten required keys missing: each missing key is named', async () => {
    const { error, ms } = await refusalOf(() => orchestrator.execute('fields', keys45000 as never));
    expect(ms).toBeLessThan(scaled(MAX_MS));
    expect((error.details.issues as unknown[]).length).toBe(10);
    expect(error.message).toContain('customerName9 is required');
  });

  it('75,000 keys that a JSON Schema does not allow: the first hundred are named, the others are counted', async () => {
    const { error, ms } = await refusalOf(() => orchestrator.execute('schema', keys75000 as never));
    expect(ms).toBeLessThan(scaled(MAX_MS));
    const issues = error.details.issues as { message: string }[];
    expect(issues).toHaveLength(101);
    expect(issues.at(-1)?.message).toBe('has 74900 more keys that do not belong to the input');
    expect(error.message).toMatch(/`customerNo19` is not a key of the input; and 81 more in details\.issues$/);
  });

  it('90,000 unknown keys in a request: the first hundred are named, the others are counted', async () => {
    const body = z.strictObject({ input: z.unknown(), async: z.boolean().optional() });
    const { error, ms } = await refusalOf(() =>
      readShape(body, { ...many(90_000), imput: 1 }, 'the body does not fit'),
    );
    expect(ms).toBeLessThan(scaled(MAX_MS));
    expect(error.message).toContain('`customerNo0` is not a key here; the keys are input, async');
    expect((error.details.issues as { message: string }[]).at(-1)?.message).toContain('89901 more unknown keys');
  });

  it('30,000 unknown keys in a definition are refused', async () => {
    const definition = { name: 'a', flow: [], nmae: 1, ...many(30_000) } as never;
    const { error, ms } = await refusalOf(() => createOrchestrator({ ensembles: [definition] }));
    expect(ms).toBeLessThan(scaled(2 * MAX_MS));
    const [first] = error.details.issues as { suggestion?: string }[];
    expect(first?.suggestion).toBe('name');
  });

  it('a key of a megabyte is cut in messages', async () => {
    const { error } = await refusalOf(() => orchestrator.execute('schema', { ['x'.repeat(1_000_000)]: 1 } as never));
    expect(JSON.stringify([error.message, error.details]).length).toBeLessThan(1_000);
    const deep = { a: { ['y'.repeat(1_000_000)]: () => 1 } };
    expect((await refusalOf(() => orchestrator.execute('fields', deep as never))).error.message.length).toBeLessThan(
      500,
    );
  });
});

describe('suggestions', () => {
  it('only the first ten unknown keys get a suggestion', async () => {
    const twenty = Object.fromEntries(
      Array.from({ length: 20 }, (_, i) => [`descriptio${String.fromCharCode(65 + i)}`, 1]),
    );
    const { error } = await refusalOf(() =>
      createOrchestrator({ ensembles: [{ name: 'a', flow: [], ...twenty } as never] }),
    );
    const issues = error.details.issues as { suggestion?: string }[];
    expect(issues.map(({ suggestion }) => suggestion)).toEqual([
      ...Array(10).fill('description'),
      ...Array(10).fill(undefined),
    ]);
  });

  it('only the first of many thousand names of a similar length are compared, and names of another length cost nothing', () => {
    const near = Array.from({ length: 50_000 }, (_, i) => `customer-${String(i).padStart(5, '0')}`);
    const began = performance.now();
    for (let i = 0; i < 10; i++) suggestName('costumer_x1y2z', near);
    expect(performance.now() - began).toBeLessThan(scaled(MAX_MS));
    const long = near.map((name) => `${name}-and-more`);
    expect(suggestName('fetchUsr', [...long, 'fetchUser'])).toBe('fetchUser');
  });
});
