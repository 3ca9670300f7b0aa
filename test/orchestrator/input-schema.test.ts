/** `inputSchema`: a Standard Schema checks the input of an execution, and what it returns is the input. */

import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { createHandler, createOrchestrator, defineEnsemble, type StandardSchema } from '../../src/index.ts';

const order = defineEnsemble({
  name: 'order',
  inputSchema: z.object({ sku: z.string().trim(), count: z.int().min(1).default(1) }),
  flow: [],
  outputs: { sku: '${input.sku}', count: '${input.count}' },
});

/** A schema that answers later. */
const later: StandardSchema<{ n: number }> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: async (value) =>
      (value as { n?: unknown }).n === 1
        ? { value: { n: 2 } }
        : { issues: [{ message: 'must be 1', path: [{ key: 'n' }] }] },
  },
};

describe('inputSchema', () => {
  it('the execution has what the schema returns: defaults and changed values', async () => {
    const run = await createTestOrchestrator({ ensembles: [order] }).execute('order', { sku: ' bolt ' });
    expect(run.input).toEqual({ sku: 'bolt', count: 1 });
    expect(run.output).toEqual({ sku: 'bolt', count: 1 });
  });

  it('an input that does not fit is INVALID_INPUT with the path of each problem, and nothing is stored', async () => {
    const orchestrator = createTestOrchestrator({ ensembles: [order] });
    await expect(orchestrator.execute('order', { sku: 'bolt', count: 0 })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('the input of `order` does not fit: count: '),
      details: { issues: [{ path: 'count', message: expect.any(String) }] },
    });
    // @ts-expect-error `sku` is required
    await expect(orchestrator.start('order')).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    expect((await orchestrator.executions.list()).executions).toEqual([]);
  });

  it('an asynchronous schema is awaited, also for a child', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [
        { name: 'child', inputSchema: later, flow: [], outputs: { n: '${input.n}' } },
        {
          name: 'parent',
          flow: [{ ensemble: 'child', input: { n: '${input.n}' } }],
          outputs: { n: '${child.output.n}' },
        },
      ],
    });
    expect((await orchestrator.execute('child', { n: 1 })).output).toEqual({ n: 2 });
    await expect(orchestrator.execute('child', { n: 5 })).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    expect((await orchestrator.execute('parent', { n: 1 })).output).toEqual({ n: 2 });
    expect((await orchestrator.execute('parent', { n: 5 })).error?.message).toContain('n: must be 1');
  });

  it('what the schema returns must be JSON, and must fit `inputs` too', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [
        { name: 'map', inputSchema: z.object({}).transform(() => new Map()), flow: [] },
        {
          name: 'both',
          inputs: { n: { type: 'integer' } },
          inputSchema: z.object({ n: z.string().transform(Number) }),
          flow: [],
          outputs: { n: '${input.n}' },
        },
      ],
    });
    await expect(orchestrator.execute('map', {})).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    expect((await orchestrator.execute('both', { n: '5' })).output).toEqual({ n: 5 });
    await expect(orchestrator.execute('both', { n: '5.5' })).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  });

  it('over HTTP, an input that does not fit is 400', async () => {
    const orchestrator = createTestOrchestrator({ ensembles: [order] });
    const { token } = await orchestrator.tokens.create({ name: 'test', scopes: ['admin'] });
    const response = await createHandler(orchestrator).fetch(
      new Request('http://host/api/v1/execute/ensemble/order', {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ input: { sku: 1 } }),
      }),
    );
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'INVALID_INPUT', issues: [{ path: 'sku' }] } });
  });

  it('the input of a schedule is checked when the definition is loaded', () => {
    const load = (input: object | undefined) => () =>
      createOrchestrator({
        ensembles: [
          {
            ...order,
            trigger: [{ type: 'schedule', cron: '0 * * * *', ...(input && { input: input as never }) }],
          },
        ],
      });
    expect(load({ sku: 'bolt' })).not.toThrow();
    expect(load({ sku: 5 })).toThrow(/trigger\[0\]\.input.*the input of `order` does not fit: sku/s);
    expect(load(undefined)).toThrow(/trigger\[0\].*the input of `order` does not fit: sku/s);
  });

  it('a schema that is no Standard Schema is a TypeError', () => {
    expect(() => createOrchestrator({ ensembles: [{ name: 'a', flow: [], inputSchema: {} as never }] })).toThrow(
      'ensemble `a`: `inputSchema` must be a Standard Schema',
    );
  });
});
