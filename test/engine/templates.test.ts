/** Config keys that an operation calls templates or SQL: what `{{ ... }}` reads, when it is checked, and how an operation renders it. */

import { describe, expect, it } from 'vitest';
import * as z from 'zod/mini';
import type { JsonObject } from '../../src/engine/base/json/json.ts';
import type { AnyOperation } from '../../src/engine/operation/operation.port.ts';
import { createTestOrchestrator, type TestOrchestratorOptions } from '../../src/entries/testing.ts';
import { isOrchestratorError } from '../../src/index.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Gives its config, and what it renders with each of `batch`. */
const letter: AnyOperation = {
  name: 'letter',
  texts: { subject: 'template', body: 'html', 'more.note': 'template', query: 'sql' },
  shows: ['subject'],
  run: ({ config, render }) => {
    const batch = (config.batch ?? []) as JsonObject[];
    const keys = ['subject', 'body', 'more.note', 'plain', 'query'];
    return { config, rendered: batch.map((data) => keys.map((key) => render(key, data) ?? null)) };
  },
};

function setup(config: Fields, agent: Fields = {}, options: TestOrchestratorOptions = {}) {
  const flow = [
    { agent: 'first', operation: 'code', config: { script: 'first' } },
    { agent: 'a', operation: 'letter', config, ...agent },
  ];
  return createTestOrchestrator({
    ensembles: [{ name: 'e', flow, outputs: { a: '${a.output}' } } as never],
    operations: [letter],
    env: { SITE: 'shop' },
    secrets: { KEY: 'a very secret key' },
    ...options,
    scripts: { first: () => ({ name: 'of first', n: 1 }), ...options.scripts },
  });
}

async function configOf(config: Fields, input: unknown = {}, agent: Fields = {}): Promise<JsonObject> {
  const { output, error } = await setup(config, agent).execute('e', input);
  if (error) throw new Error(error.message);
  return (output as { a: { config: JsonObject } }).a.config;
}

async function renderedOf(config: Fields, batch: readonly Fields[], agent: Fields = {}): Promise<unknown> {
  const { output } = await setup({ ...config, batch }, agent).execute('e', {});
  return (output as { a: { rendered: unknown } }).a.rendered;
}

function issuesOf(config: Fields, agent: Fields = {}): { message: string; path: string; column?: number }[] {
  try {
    setup(config, agent);
    return [];
  } catch (error) {
    if (isOrchestratorError(error, 'INVALID_DEFINITION')) return [...error.details.issues] as never;
    throw error;
  }
}

describe('{{ }} in a template', () => {
  it("reads the agent's input, and the values of the flow", async () => {
    const config = {
      subject: 'Hi {{ name }}, {{ upper(city) }}: {{ first.output.n + 1 }} {{ input.x }} {{ env.SITE }}',
      more: { note: '{{ order.lines[1].sku }}/{{ list }}' },
    };
    const input = { name: 'Ada', city: 'Rome', order: { lines: [{}, { sku: 'S' }] }, list: [1] };
    expect(await configOf(config, { x: 'X' }, { input })).toEqual({
      subject: 'Hi Ada, ROME: 2 X shop',
      more: { note: 'S/[1]' },
    });
    expect((await configOf({ subject: '{{ name }}' }, { name: 'of the execution' })).subject).toBe('of the execution');
  });

  it('a field of the data wins over an agent, but never over a reserved name', async () => {
    const subject = '{{ first.output.name }}|{{ env.SITE }}|{{ input.x }}';
    const data = { first: { output: { name: 'of the data' } }, env: { SITE: 'no' }, input: { x: 'no' } };
    expect((await configOf({ subject }, { x: 'X' }, { input: data })).subject).toBe('of the data|shop|X');
    expect((await configOf({ subject }, { x: 'X' }, { input: {} })).subject).toBe('of first|shop|X');
    expect((await configOf({ subject: '{{ first.x }}' }, {}, { input: { first: { x: 1 } } })).subject).toBe('1');
    expect((await configOf({ subject: '[{{ first }}]' }, {}, { input: { first: null } })).subject).toBe('[]');
  });

  it('a name that is nothing is empty text, and only own fields are read', async () => {
    const subject = '[{{ nobody }}{{ nobody.x.y }}{{ constructor }}{{ toString }}{{ length }}{{ __proto__ }}]';
    expect((await configOf({ subject }, { a: 1 })).subject).toBe('[]');
    expect((await configOf({ subject: "[{{ nobody || 'friend' }}]" }, {}, { input: [1, 2] })).subject).toBe('[friend]');
  });

  it('gives text always, also as the whole value', async () => {
    expect(await configOf({ subject: '{{ n }}', more: { note: '{{ 2 + 3 }}' } }, { n: 5 })).toEqual({
      subject: '5',
      more: { note: '5' },
    });
  });

  it('`html` escapes the values of {{ }}, and nothing else', async () => {
    const evil = `<b a="1">'&</b>`;
    const body = '<p>{{ evil }}</p>${input.evil}{{ [evil] }}';
    expect((await configOf({ body }, { evil })).body).toBe(
      `<p>&lt;b a=&quot;1&quot;&gt;&#39;&amp;&lt;/b&gt;</p>${evil}[&quot;&lt;b a=\\&quot;1\\&quot;&gt;&#39;&amp;&lt;/b&gt;&quot;]`,
    );
    expect((await configOf({ subject: '{{ evil }}' }, { evil })).subject).toBe(evil);
  });

  it('is never searched for in a value, and means nothing in other keys', async () => {
    const given = '{{ env.SITE }} ${env.SITE}';
    const config = {
      subject: '${input.given}',
      body: '{{ given }}',
      more: { note: '> ${input.given}' },
      plain: '{{ x }}',
    };
    expect(await configOf(config, { given })).toEqual({
      subject: given,
      body: given,
      more: { note: `> ${given}` },
      plain: '{{ x }}',
    });
  });

  it('the two braces are written as text of an expression', async () => {
    expect((await configOf({ subject: "{{ '{{' }} x }} ${'{{'} {{ {a: {b: 1}}.a.b }}" })).subject).toBe('{{ x }} {{ 1');
  });

  it('a config of constant expressions is evaluated when it is loaded', async () => {
    const config = { subject: "{{ 'a' }}${1 + 1}", more: { note: '$${x}' }, query: 'SELECT 1', n: '${100 * 7}' };
    expect(await configOf(config)).toEqual({
      subject: 'a2',
      more: { note: '${x}' },
      query: { strings: ['SELECT 1'], values: [] },
      n: 700,
    });
    const ensembles = [{ name: 'e', flow: [{ agent: 'a', operation: 'count', config: { n: '${100 * 7}' } }] } as never];
    const count = { name: 'count', config: z.strictObject({ n: z.number() }), run: () => 1 } as AnyOperation;
    expect((await createTestOrchestrator({ ensembles, operations: [count] }).execute('e')).status).toBe('completed');
    const wrong = [{ name: 'e', flow: [{ agent: 'a', operation: 'count', config: { n: "${'x'}" } }] } as never];
    expect(() => createTestOrchestrator({ ensembles: wrong, operations: [count] })).toThrow('flow[0].config.n');
    const broken = setup({ n: '${parseJson("{")}' });
    expect((await broken.execute('e', {})).error?.code).toBe('EXPRESSION_ERROR');
  });
});

describe('at load', () => {
  it.each([
    ['Hi {{ name', '{{ is not closed by }}'],
    ['Hi {{ name }', '{{ is not closed by }}'],
    ['{{ {a: 1 }}', '{{ is not closed by }}'],
    ['{{ shout(name) }}', 'there is no function shout()'],
    ['{{ env.MISSING }}', '`MISSING` is neither'],
    ['{{ execution.nam }}', 'no `nam`'],
    ['{{ state.x }}', 'no `state`'],
    ['{{ item }}', 'only inside a `foreach`'],
    ['{{{ name }}}', '{{{ has no meaning'],
    ['{{#if name}}', 'there are no blocks such as #if'],
    ['{{ name | upper }}', 'call a function as in upper(name)'],
    ['{{ }}', 'expected'],
    ['${name}', 'no agent or name `name`'],
    ['{{ 1 }}'.repeat(257), 'more than 256 expressions'],
    [`{{ ${'('.repeat(100)}1${')'.repeat(100)} }}`, 'nested deeper'],
    [`{{ '${'x'.repeat(9000)}' }}`, 'longer than 8192'],
  ])('refuses %.40s', (subject, message) => {
    expect(issuesOf({ subject })).toMatchObject([
      { path: 'flow[1].config.subject', message: expect.stringContaining(message) },
    ]);
  });

  it('names the line and the column of the expression', () => {
    const source = `name: e
flow:
  - agent: a
    operation: letter
    config:
      body: |
        Dear {{ name }},
        your key is {{ env.NONE }}
`;
    expect(() => createTestOrchestrator({ ensembles: [source], operations: [letter] })).toThrow(
      expect.objectContaining({
        details: expect.objectContaining({ issues: [expect.objectContaining({ line: 8, column: 24 })] }),
      }),
    );
  });

  it('warns of a name that exists but can not be read so, unless the input has a field of that name; and of a hyphen in a name', () => {
    const warningsOf = (input: Fields, subject = '{{ first.ouput }}') => {
      const warnings: string[] = [];
      const log = (_fields: object, message?: string) => void warnings.push(JSON.stringify([_fields, message]));
      setup({ subject }, { input }, { logger: { debug() {}, info() {}, warn: log, error: log } });
      return warnings.filter((line) => /ouput|subtraction/.test(line));
    };
    expect(warningsOf({ x: 1 })).toHaveLength(1);
    expect(warningsOf({ first: 1 })).toEqual([]);
    expect(warningsOf({}, '{{ last-name }}')).toMatchObject([
      expect.stringContaining('`last-name` is read as a subtraction'),
    ]);
    expect(warningsOf({}, '{{ total - paid }}')).toEqual([]);
  });

  it('a secret may not flow through {{ }} into what an operation shows', () => {
    const message = expect.stringContaining('is a secret and may not flow into what `letter` gives');
    expect(issuesOf({ subject: 'x {{ env.KEY }}' })).toMatchObject([{ message }]);
    expect(issuesOf({ subject: '{{ signalUrl("x") }}' }).length).toBeGreaterThan(0);
    expect(issuesOf({ subject: '{{ token }}' }, { input: { token: '${env.KEY}' } })).toMatchObject([{ message }]);
    expect(issuesOf({ subject: '{{ first.output }}' }, { input: { first: '${env.KEY}' } })).toMatchObject([
      { message },
    ]);
    expect(issuesOf({ subject: '{{ other }}' }, { input: { token: '${env.KEY}' } })).toEqual([]);
    expect(issuesOf({ body: '{{ env.KEY }}' })).toEqual([]);
  });
});

describe('render', () => {
  it('fills a template with other data, by its path; a key that is no template gives undefined', async () => {
    const config = { subject: 'Hi {{ name }}', body: '<b>{{ name }}</b>${first.output.n}', more: { note: 'plain' } };
    const input = { name: 'of the input' };
    expect(
      await renderedOf({ ...config, plain: '{{ name }}', query: 'SELECT 1' }, [{ name: '<A>' }, { name: null }], {
        input,
      }),
    ).toEqual([
      ['Hi <A>', '<b>&lt;A&gt;</b>1', 'plain', null, null],
      ['Hi ', '<b></b>1', 'plain', null, null],
    ]);
    expect(await renderedOf({ subject: '${first.output.name}', body: 7 }, [{}])).toEqual([
      [null, null, null, null, null],
    ]);
  });

  it('gives the same random values for the same data on every attempt, and others for other data', async () => {
    const seen: unknown[] = [];
    const twice: AnyOperation = {
      ...letter,
      name: 'twice',
      run({ render, execution }) {
        seen.push(['x', 'y', 'x'].map((name) => render('subject', { name })));
        if (execution.attempt === 1) throw new Error('again');
        return null;
      },
    };
    const flow = [
      { agent: 'a', operation: 'twice', config: { subject: '{{ uuid() }} {{ name }}' }, retry: { maxAttempts: 2 } },
    ];
    const orchestrator = createTestOrchestrator({ ensembles: [{ name: 'e', flow } as never], operations: [twice] });
    expect((await orchestrator.execute('e', {})).status).toBe('completed');
    const [[x, y, again]] = seen as [string[]];
    expect(seen[1]).toEqual(seen[0]);
    expect(again).toBe(x);
    expect(x?.slice(0, 36)).not.toBe(y?.slice(0, 36));
  });

  it('fails the attempt when an expression fails', async () => {
    const orchestrator = setup({ subject: '{{ parseJson(name) }}', batch: [{ name: '{' }] }, { input: { name: '1' } });
    expect((await orchestrator.execute('e', {})).error?.code).toBe('EXPRESSION_ERROR');
  });
});

describe('a key with SQL', () => {
  it('becomes a statement with the values of its expressions', async () => {
    const query = "SELECT * FROM t WHERE a = ${input.a} AND b = '{{ x }}'";
    expect((await configOf({ query }, { a: "1' OR 1" })).query).toEqual({
      strings: ['SELECT * FROM t WHERE a = ', " AND b = '{{ x }}'"],
      values: ["1' OR 1"],
    });
  });

  it.each([
    ["SELECT '${input.a}'", 'between quotes'],
    ['SELECT * FROM ${input.a}', 'in the place of a name'],
    ['${input.a}', 'is the statement itself'],
    ['SELECT 1; DROP TABLE t', 'is one statement'],
  ])('refuses %s at load', (query, message) => {
    expect(issuesOf({ query })).toMatchObject([
      { path: 'flow[1].config.query', message: expect.stringContaining(message) },
    ]);
  });

  it('is checked by the schema as a statement', async () => {
    const schema = z.strictObject({
      query: z.strictObject({ strings: z.array(z.string()), values: z.array(z.any()) }),
      n: z.any(),
    });
    const sql: AnyOperation = { name: 'sql', config: schema, texts: { query: 'sql' }, run: ({ config }) => config };
    for (const query of ['SELECT 1', 'SELECT ${input.a}', 'SELECT ${1}']) {
      const flow = [{ agent: 'a', operation: 'sql', config: { query, n: '${input.a}' } }];
      const orchestrator = createTestOrchestrator({ ensembles: [{ name: 'e', flow } as never], operations: [sql] });
      expect((await orchestrator.execute('e', { a: 1 })).status).toBe('completed');
    }
  });
});
