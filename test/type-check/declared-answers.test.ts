/** What scripts, services, functions and operations return is known where it is declared: misspelt fields are refused, and other values fail the step. */

import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import * as zm from 'zod/mini';
import {
  createTestOrchestrator,
  fakeModel,
  stubHttp,
  type TestOrchestratorOptions,
} from '../../src/entries/testing.ts';
import { defineOperation, defineScript, isOrchestratorError } from '../../src/index.ts';

type Options = Omit<TestOrchestratorOptions, 'ensembles'>;

/** @param definition - an ensemble without its name, as YAML */
function load(definition: string, options: Options = {}) {
  return createTestOrchestrator({ ensembles: [`name: e\n${definition}`], ...options } as TestOrchestratorOptions);
}

/** @returns each problem as `path: message` */
function problemsOf(definition: string, options: Options = {}): string[] {
  try {
    load(definition, options);
    return [];
  } catch (error) {
    if (!isOrchestratorError(error, 'INVALID_DEFINITION')) throw error;
    return error.details.issues.map(({ path, message, suggestion }) =>
      [`${path}: ${message}`, ...(suggestion ? [`did you mean ${suggestion}?`] : [])].join('; '),
    );
  }
}

const code = (more: string, outputs: string) =>
  `flow:\n  - { agent: a, operation: code, config: { script: run }${more} }\noutputs: { x: "\${${outputs}}" }`;
const RECEIPT = '{ type: object, properties: { id: { type: string }, note: { type: string } }, required: [id] }';

describe('`output` of an agent', () => {
  const scripts = { run: () => ({ id: 'r1' }) };

  it('refuses a field that it does not name', () => {
    expect(problemsOf(code(`, output: ${RECEIPT}`, 'a.output.idd'), { scripts })).toEqual([
      'outputs.x: there is no `idd` in `a.output`, which has `id` and `note`; did you mean id?',
    ]);
  });

  it('accepts the fields that it names', () => {
    expect(problemsOf(code(`, output: ${RECEIPT}`, "a.output.id + (a.output.note ?? '')"), { scripts })).toEqual([]);
  });

  it('fails the step with INVALID_OUTPUT and the places for another value', async () => {
    const output =
      '{ type: object, properties: { id: { type: integer }, of: { type: array, items: { type: string } } } }';
    const run = await load(code(`, output: ${output}`, 'a.output.id'), {
      scripts: { run: () => ({ id: 'r1', of: ['a', 2] }) },
    }).execute('e');
    expect(run.status).toBe('failed');
    expect(run.error).toMatchObject({
      code: 'INVALID_OUTPUT',
      agent: 'a',
      details: { issues: [{ path: 'id' }, { path: 'of[1]' }] },
    });
    expect(run.error?.message).toBe(
      "what agent `a` gave does not fit its `output`: `id` must be a whole number, not 'r1'; `of[1]` must be a string, not 2",
    );
  });

  it('fills in the defaults of missing properties, and what is stored is what later steps read', async () => {
    const output = '{ type: object, properties: { id: { type: string }, kind: { type: string, default: card } } }';
    const orchestrator = load(code(`, output: ${output}`, 'a.output.kind'), { scripts });
    const run = await orchestrator.execute('e');
    expect(run.output).toEqual({ x: 'card' });
    expect(run.agents[0]?.output).toEqual({ id: 'r1', kind: 'card' });
  });

  it('is not asked for again with `retry`: the same answer would not fit again', async () => {
    let calls = 0;
    const orchestrator = load(code(`, retry: { maxAttempts: 3 }, output: { type: integer }`, 'a.output'), {
      scripts: {
        run: () => {
          calls += 1;
          return 'no number';
        },
      },
    });
    expect((await orchestrator.execute('e')).status).toBe('failed');
    expect(calls).toBe(1);
  });

  it('is checked for a stub, a shared agent, an agent that runs alone and a called agent too', async () => {
    const shared = { name: 'a', operation: 'code', config: { script: 'run' }, output: { type: 'integer' } } as const;
    const orchestrator = load('flow: [ { agent: a } ]\noutputs: { x: "${a.output}" }', {
      agents: [shared],
      scripts: { run: () => 1 },
    } as Options);
    expect((await orchestrator.execute('e')).output).toEqual({ x: 1 });
    orchestrator.stubScript('run', () => 'one');
    expect((await orchestrator.execute('e')).error?.code).toBe('INVALID_OUTPUT');
    expect((await orchestrator.executeAgent('a', {})).error?.code).toBe('INVALID_OUTPUT');
  });

  it('is refused where it has no place, and a mistake in the schema is refused at its place', () => {
    expect(problemsOf(code(', output: { type: strin }', 'a.output'), { scripts })[0]).toContain(
      'flow[0].output.type: must be `string`',
    );
    const agents = `agents: [ { name: a, operation: code, config: { script: run } } ]\nflow: [ { agent: a, output: {} } ]`;
    expect(problemsOf(agents, { scripts })[0]).toContain('flow[0].output: `output` belongs to the agent');
    const router = `agents: [ { name: b, operation: code, config: { script: run } } ]\nflow: [ { agent: r, output: {}, routes: [ { default: true, member: b } ] } ]`;
    expect(problemsOf(router, { scripts })[0]).toContain('flow[0].output: `output` is not for a router');
  });

  it('keeps the fields that are known without it', () => {
    const flow = (path: string) =>
      `flow: [ { agent: a, operation: storage, config: { type: kv, action: get, key: k }, output: { type: object, properties: { value: { type: object, properties: { name: { type: string } } } } } } ]\noutputs: { x: "\${a.output.${path}}" }`;
    expect(problemsOf(flow('value.name'))).toEqual([]);
    expect(problemsOf(flow('found'))).toEqual([]);
    expect(problemsOf(flow('foudn'))[0]).toContain('did you mean found?');
  });

  it('must accept what the operation is known to return', () => {
    const get = 'flow: [ { agent: a, operation: storage, config: { type: kv, action: get, key: k }, output: ';
    const more = ' } ]\noutputs: { x: "${a.output.value.name}" }';
    const value = '{ type: object, properties: { name: { type: string } } }';
    expect(
      problemsOf(`${get}{ type: object, properties: { value: ${value}, found: { type: boolean } } }${more}`),
    ).toEqual([]);
    expect(
      problemsOf(`${get}{ type: object, properties: { value: ${value}, found: { type: string } } }${more}`),
    ).toEqual([
      'flow[0].output: does not fit what `storage` returns: `found` is true or false, where text is declared',
    ]);
  });
});

describe('`defineScript`', () => {
  const run = defineScript({
    input: z.object({ cents: z.number(), currency: z.string().default('eur') }),
    output: z.object({ id: z.string(), state: z.enum(['paid', 'open']) }),
    run: ({ input }) => ({ id: `${input.cents} ${input.currency}`, state: 'paid' as const }),
  });
  const scripts = { run };

  it('refuses a misspelt field, an impossible case and a wrong comparison of its output', () => {
    const [field] = problemsOf(code(', input: { cents: 5 }', 'a.output.status'), { scripts });
    expect(field).toContain('there is no `status` in `a.output`, which has `id` and `state`');
    const [compared] = problemsOf(code(', input: { cents: 5 }', "a.output.state == 'payed'"), { scripts });
    expect(compared).toContain("'paid' or 'open'");
  });

  it('refuses an input that its schema never accepts, and one that lacks a field', () => {
    expect(problemsOf(code(", input: { cents: 'five' }", 'a.output.id'), { scripts })).toEqual([
      "flow[0].input.cents: input `cents` of agent `a` is a number, and this is 'five'",
    ]);
    expect(problemsOf(code(', input: { cent: 5 }', 'a.output.id'), { scripts })).toEqual([
      'flow[0].input.cent: agent `a` requires the input `cents`; did you mean cents?',
    ]);
  });

  it('gives the script what the schema of its input returns, and an input that does not fit fails with INVALID_INPUT', async () => {
    const orchestrator = load(code(', input: { cents: "${input.cents}" }', 'a.output.id'), { scripts });
    expect((await orchestrator.execute('e', { cents: 5 })).output).toEqual({ x: '5 eur' });
    expect((await orchestrator.execute('e', { cents: 'five' })).error).toMatchObject({
      code: 'INVALID_INPUT',
      agent: 'a',
      message: expect.stringContaining('the input does not fit the schema of the script: `cents`:'),
    });
  });

  it('stores what the schema of its output returns, also of a promise, and refuses another value', async () => {
    const upper = defineScript({
      output: z.object({ id: z.string().transform((id) => id.toUpperCase()) }),
      run: async ({ input }) => ({ id: input.id }),
    });
    const orchestrator = load(code(', input: { id: "${input.id}" }', 'a.output.id'), { scripts: { run: upper } });
    expect((await orchestrator.execute('e', { id: 'abc' })).output).toEqual({ x: 'ABC' });
    expect((await orchestrator.execute('e', { id: 7 })).error).toMatchObject({
      code: 'INVALID_OUTPUT',
      details: { issues: [{ path: 'id' }] },
    });
  });

  it('checks a stub of the script like the script', async () => {
    const orchestrator = load(code(', input: { cents: 5 }', 'a.output.id'), { scripts });
    orchestrator.stubScript('run', () => ({ id: 'r1', state: 'lost' }));
    expect((await orchestrator.execute('e')).error).toMatchObject({
      code: 'INVALID_OUTPUT',
      details: { issues: [{ path: 'state' }] },
    });
  });

  it('the output of the agent must accept that of the script', () => {
    const output = '{ type: object, properties: { id: { type: string }, state: { enum: [paid] } } }';
    expect(problemsOf(code(`, input: { cents: 5 }, output: ${output}`, 'a.output.id'), { scripts })).toEqual([
      "flow[0].output: does not fit what `code` returns: `state` may be 'paid' or 'open', where 'paid' is declared",
    ]);
  });

  it.each([
    ['zod/mini', zm.object({ id: zm.string() })],
    ['arktype', type({ id: 'string' })],
  ])('a schema of %s has types', (_, output) => {
    const other = defineScript({ output, run: () => ({ id: 'r1' }) });
    expect(problemsOf(code('', 'a.output.idd'), { scripts: { run: other } })[0]).toContain('there is no `idd`');
    expect(problemsOf(code('', 'a.output.id'), { scripts: { run: other } })).toEqual([]);
  });

  it('a schema that shows no JSON Schema checks values, and says nothing of types', async () => {
    const other = defineScript({ output: v.object({ id: v.string() }), run: () => ({ id: 7 }) as never });
    const orchestrator = load(code('', 'a.output.idd'), { scripts: { run: other } });
    expect((await orchestrator.execute('e')).error?.code).toBe('INVALID_OUTPUT');
  });

  it('refuses what is no schema and no function', () => {
    expect(() => defineScript({ input: { type: 'string' } as never, run: () => 1 })).toThrow(
      'defineScript: `input` must be a Standard Schema',
    );
    expect(() => defineScript({ run: 'x' as never })).toThrow('`run` must be a function');
  });
});

describe('`response` of api', () => {
  const order =
    '{ type: object, properties: { id: { type: string }, lines: { type: array, items: { $ref: "#/$defs/line" } } }, required: [id], $defs: { line: { type: object, properties: { sku: { type: string } }, required: [sku] } } }';
  const get = (path: string, more = '') =>
    `flow: [ { agent: a, operation: api, config: { url: 'https://shop.example/o', response: ${order}${more} } } ]\noutputs: { x: "\${${path}}" }`;

  it('refuses a misspelt field of the body, also behind a `$ref`', () => {
    expect(problemsOf(get('a.output.body.ID'))[0]).toContain('there is no `ID` in `a.output.body`');
    expect(problemsOf(get('a.output.body.lines[0].sku'))).toEqual([]);
    expect(problemsOf(get('a.output.body.lines[0].number'))[0]).toContain('there is no `number`');
  });

  it('fails the agent with what did not fit for another body', async () => {
    const http = stubHttp({ 'GET https://shop.example/o': { status: 200, json: { id: 7, lines: [{}] } } });
    const run = await load(get('a.output.body.id'), { http }).execute('e');
    expect(run.error).toMatchObject({
      code: 'INVALID_OUTPUT',
      message:
        'GET https://shop.example/o answered 200 with a body that does not fit `response`: `id` must be a string, not 7; `lines[0].sku` is required',
      details: { status: 200, issues: [{ path: 'id' }, { path: 'lines[0].sku' }] },
    });
  });

  it('lets a body that fits pass, and refuses a wrong schema and HEAD', async () => {
    const http = stubHttp({ 'GET https://shop.example/o': { status: 200, json: { id: 'o1' } } });
    expect((await load(get('a.output.body.id'), { http }).execute('e')).output).toEqual({ x: 'o1' });
    const wrong = get('a.output.body.id').replace('type: string', 'type: strin');
    expect(problemsOf(wrong)[0]).toContain('flow[0].config.response.properties.id.type');
    expect(problemsOf(get('a.output.status', ', method: HEAD'))[0]).toContain('has no effect with HEAD');
  });

  it('checks the list of all pages', async () => {
    const http = stubHttp({ 'GET https://shop.example/o?page=1': { status: 200, json: [{ sku: 'a' }, { sku: 2 }] } });
    const list = '{ type: array, items: { type: object, properties: { sku: { type: string } } } }';
    const flow = `flow: [ { agent: a, operation: api, config: { url: 'https://shop.example/o?page=1', paginate: { by: page, param: page, maxPages: 1 }, response: ${list} } } ]\noutputs: { x: "\${a.output.body[0].sku}" }`;
    expect(problemsOf(flow.replace('body[0].sku', 'body[0].name'))[0]).toContain('there is no `name`');
    expect((await load(flow, { http }).execute('e')).error?.details).toMatchObject({ issues: [{ path: '[1].sku' }] });
  });
});

it('an ensemble with `inputSchema` has its types: inside what the schema returns, and for a parent what it takes', () => {
  const input = z.object({ id: z.string(), cents: z.number().default(5) });
  const child = { name: 'child', inputSchema: input, flow: [], outputs: { x: '${input.cents + 1}' } };
  const load = (given: string, reads = 'input.cents + 1') =>
    createTestOrchestrator({
      ensembles: [
        { ...child, outputs: { x: `\${${reads}}` } },
        `name: parent\nflow: [ { ensemble: child, input: ${given} } ]\noutputs: { x: "\${child.output.x}" }`,
      ],
    } as TestOrchestratorOptions);
  expect(() => load('{ id: a }')).not.toThrow();
  expect(() => load('{ id: a }', 'input.cent')).toThrow('there is no `cent` in `input`');
  expect(() => load('{ cents: 1 }')).toThrow('ensemble `child` requires the input `id`');
  expect(() => load('{ id: a, cents: many }')).toThrow(
    "input `cents` of ensemble `child` is a number, and this is 'many'",
  );
});

it('an agent that a model calls reads its `parameters`', () => {
  const flow = (reads: string) => `agents:
  - { name: order, operation: code, config: { script: run }, input: { id: "\${${reads}}" } }
flow:
  - agent: ask
    operation: think
    config:
      model: m
      prompt: p
      tools: [ { agent: order, parameters: { type: object, properties: { id: { type: string } }, required: [id] } } ]
`;
  const options = { scripts: { run: () => null }, models: { m: fakeModel([]) } } as Options;
  expect(problemsOf(flow('input.id'), options)).toEqual([]);
  expect(problemsOf(flow('input.idd'), options)).toEqual([
    'agents[0].input.id: there is no `idd` in `input`, which has `id`; did you mean id?',
  ]);
});

it('functions of the app have the type of `returns`, and operations of the app that of `output`', () => {
  const vat = { minArgs: 1, maxArgs: 1, returns: { type: 'object', properties: { cents: {} } }, call: () => ({}) };
  const rate = { minArgs: 0, maxArgs: 0, returns: z.number(), call: () => 1 };
  const shout = defineOperation({ name: 'shout', output: z.object({ text: z.string() }), run: () => ({ text: 'A' }) });
  const options = { functions: { vat, rate }, operations: [shout] } as Options;
  const flow = (expression: string) => `flow: [ { agent: a, operation: shout } ]\noutputs: { x: "\${${expression}}" }`;
  expect(problemsOf(flow('vat(1).cents + rate() + a.output.text'), options)).toEqual([]);
  expect(problemsOf(flow('vat(1).cent'), options)[0]).toContain('there is no `cent`');
  expect(problemsOf(flow('upper(rate())'), options)[0]).toContain('upper() takes text here, and this is a number');
  expect(problemsOf(flow('a.output.txt'), options)[0]).toContain('there is no `txt` in `a.output`');
});
