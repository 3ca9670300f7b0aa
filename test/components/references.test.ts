/** References in the configs of agents: what they become, which version an execution uses, and what is refused. */

import { describe, expect, it } from 'vitest';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { sqliteDatabase } from '../../src/entries/sqlite.ts';
import { fakeModel, manualClock } from '../../src/entries/testing.ts';
import type { NewComponent, OrchestratorOptions } from '../../src/index.ts';
import { createOrchestrator, defineOperation, memoryMail, memoryStorage } from '../../src/index.ts';
import { newFile } from '../storage/sqlite-files.ts';

/** Gives its config. */
const show = defineOperation({ name: 'show', texts: { page: 'html' }, run: ({ config }) => config });

const ensemble = (config: string, rest = '') => `
name: e
flow:
  - { agent: a, operation: show, ${rest} config: ${config} }
outputs: { got: "\${a.output}" }
`;

async function setUp(options: OrchestratorOptions = {}) {
  const clock = manualClock();
  const orchestrator = createOrchestrator({ clock, logger: false, operations: [show], ...options });
  const { components } = orchestrator;
  const add = async (kind: 'prompt' | 'template' | 'config' | 'query', name: string, ...contents: string[]) => {
    await components.register({ name, kind });
    for (const [i, content] of contents.entries())
      await components.createVersion(name, { version: `v${i + 1}.0.0`, content });
  };
  return { clock, orchestrator, components, add };
}

describe('a reference in a config', () => {
  it('becomes the text of the version, filled in with the input of the agent', async () => {
    const { orchestrator, add } = await setUp({
      ensembles: [
        ensemble(
          '{ text: "prompt://greet@v1.0.0", page: "template://page@latest", deep: { list: ["config://limits@latest"] } }',
          'input: { name: "<${input.who}>" },',
        ),
      ],
    });
    await add('prompt', 'greet', 'Hello {{ name }}, ${input.name} and $${x}');
    await add('template', 'page', '<p>{{ name }}</p>');
    await add('config', 'limits', 'max: 5\nnames: [a, "${b}"]');
    const { output, status, components } = await orchestrator.execute('e', { who: 'Ada' });
    expect([status, output]).toEqual([
      'completed',
      {
        got: {
          text: 'Hello <Ada>, <Ada> and ${x}',
          page: '<p>&lt;Ada&gt;</p>',
          deep: { list: [{ max: 5, names: ['a', '${b}'] }] },
        },
      },
    ]);
    expect(components).toEqual([
      { kind: 'prompt', name: 'greet', ref: 'v1.0.0', version: 'v1.0.0' },
      { kind: 'template', name: 'page', ref: 'latest', version: 'v1.0.0' },
      { kind: 'config', name: 'limits', ref: 'latest', version: 'v1.0.0' },
    ]);
  });

  it('names its environment by a variable; without a version there, the agent fails and nothing else is used', async () => {
    const { orchestrator, components, add } = await setUp({
      env: { STAGE: 'staging' },
      ensembles: [ensemble('{ text: "prompt://greet@${env.STAGE}" }')],
    });
    await add('prompt', 'greet', 'one', 'two');
    const failed = await orchestrator.execute('e');
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'VERSION_NOT_FOUND', agent: 'a' } });
    await components.deploy('greet', { to: 'staging', version: 'v1.0.0' });
    expect((await orchestrator.execute('e')).output).toEqual({ got: { text: 'one' } });
    await components.deploy('greet', { to: 'staging', version: 'v2.0.0' });
    expect((await orchestrator.execute('e')).output).toEqual({ got: { text: 'two' } });
  });

  it('whose variable is empty leads to no version, and never to latest', async () => {
    const { orchestrator, add } = await setUp({
      env: { STAGE: '' },
      ensembles: [ensemble('{ text: "prompt://greet@${env.STAGE}" }')],
    });
    await add('prompt', 'greet', 'one');
    expect((await orchestrator.execute('e')).error?.message).toContain('must say which version');
  });

  it('may read the input and the fields of the agent alone, and no variables, secrets, results and state', async () => {
    const { orchestrator, components, add } = await setUp({
      secrets: { KEY: 'hush-hush' },
      ensembles: [ensemble('{ text: "prompt://greet@latest" }')],
    });
    await components.register({ name: 'greet', kind: 'prompt' });
    for (const text of ['${env.KEY}', '${state.x}', '${a.output}', '{{ name', '${ 1 + }'])
      await expect(components.createVersion('greet', { version: 'v1.0.0', content: text }), text).rejects.toMatchObject(
        {
          code: 'INVALID_REQUEST',
          message: expect.stringContaining('`content`'),
        },
      );
    await add('prompt', 'other', '{{ env }}{{ env.KEY }}');
    const { output } = await orchestrator.execute('e').then(() => orchestrator.execute('e'));
    expect(JSON.stringify(output ?? '')).not.toContain('hush');
  });
});

describe('the version of an execution', () => {
  const TWICE = `
name: e
flow:
  - { agent: first, operation: show, config: { text: "prompt://greet@production" } }
  - { wait: go }
  - { agent: second, operation: show, config: { text: "prompt://greet@production" } }
outputs: { got: ["\${first.output.text}", "\${second.output.text}"] }
`;

  it.each(['memory', 'sqlite'])('stays the same through a wait and another process, on %s', async (kind) => {
    const storage =
      kind === 'memory' ? memoryStorage({ shared: true }) : sqliteStorage({ path: newFile(), synchronous: 'normal' });
    const { orchestrator, components, add, clock } = await setUp({ storage, ensembles: [TWICE] });
    await add('prompt', 'greet', 'one', 'two');
    await components.deploy('greet', { to: 'production', version: 'v1.0.0' });
    const { id, result } = await orchestrator.start('e');
    await clock.advance(5_000);
    await components.deploy('greet', { to: 'production', version: 'v2.0.0' });
    expect((await orchestrator.executions.get(id)).components).toEqual([
      { kind: 'prompt', name: 'greet', ref: 'production', version: 'v1.0.0' },
    ]);
    await orchestrator.executions.signal(id, 'go');
    await clock.advance(5_000);
    const record = await result();
    expect(record.output).toEqual({ got: ['one', 'one'] });
    expect(record.components).toEqual([{ kind: 'prompt', name: 'greet', ref: 'production', version: 'v1.0.0' }]);
    expect((await orchestrator.executions.get(id)).components).toEqual(record.components);
  });
});

describe('operations', () => {
  it('think: the metadata of a prompt are the defaults of the agent, and own keys win', async () => {
    const model = fakeModel(['fine', 'fine']);
    const think = (more: string) =>
      `{ agent: a, operation: think, input: { name: Ada }, config: { prompt: "prompt://greet@latest"${more} } }`;
    const { orchestrator, components } = await setUp({
      models: { small: model, large: model },
      ensembles: [`name: e\nflow:\n  - ${think('')}\n`, `name: own\nflow:\n  - ${think(', temperature: 0')}\n`],
    });
    await components.register({
      name: 'greet',
      kind: 'prompt',
      metadata: { provider: 'large', model: 'm1', temperature: 0.7, maxTokens: 99, variables: ['name'] },
    });
    await components.createVersion('greet', { version: 'v1.0.0', content: 'Greet {{ name }}' });
    const record = await orchestrator.execute('e');
    expect([record.status, record.error?.message]).toEqual(['completed', undefined]);
    await orchestrator.execute('own');
    const asked = model.requests.map((request) => [
      ...[request.model, request.temperature, request.maxTokens],
      JSON.stringify(request.messages),
    ]);
    expect(asked).toEqual([
      ['m1', 0.7, 99, expect.stringContaining('Greet Ada')],
      ['m1', 0, 99, expect.stringContaining('Greet Ada')],
    ]);
    expect(record.agents[0]?.output).toMatchObject({ provider: 'large' });
  });

  it('email: a template is the html of each mail of a batch, escaped', async () => {
    const mail = memoryMail();
    const { orchestrator, add } = await setUp({
      mail: { memory: mail },
      ensembles: [
        `
name: e
flow:
  - agent: a
    operation: email
    config:
      from: a@example.com
      subject: Hi
      template: template://welcome@latest
      batch: { recipients: [{ email: b@example.com, name: "<Bo>" }, { email: c@example.com, name: Cy }] }
`,
      ],
    });
    await add('template', 'welcome', '<p>{{ name }}</p>');
    const record = await orchestrator.execute('e');
    expect([record.status, record.error?.message]).toEqual(['completed', undefined]);
    expect(mail.messages.map(({ html }) => html)).toEqual(['<p>&lt;Bo&gt;</p>', '<p>Cy</p>']);
  });

  it('storage: a query has its values bound', async () => {
    const database = sqliteDatabase({ path: ':memory:' });
    const { orchestrator, components } = await setUp({
      bindings: { db: database },
      ensembles: [
        `
name: e
flow:
  - agent: a
    operation: storage
    input: { id: "\${input.id}" }
    config: { type: d1, binding: db, action: query, query: "query://find@latest" }
outputs: { rows: "\${a.output.results}" }
`,
      ],
    });
    await components.register({ name: 'find', kind: 'query' });
    await expect(
      components.createVersion('find', { version: 'v1.0.0', content: "SELECT * FROM t WHERE a = '${input.id}'" }),
    ).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await components.createVersion('find', { version: 'v1.0.0', content: 'SELECT ${input.id} AS id, 2 AS n' });
    const record = await orchestrator.execute('e', { id: "1' OR '1'='1" });
    expect([record.error?.message, record.output]).toEqual([undefined, { rows: [{ id: "1' OR '1'='1", n: 2 }] }]);
    await database.close?.();
  });

  it('a variable that the input of the agent lacks is named', async () => {
    const { orchestrator, components } = await setUp({
      ensembles: [ensemble('{ text: "prompt://greet@latest" }', 'input: { nme: x },')],
    });
    await components.register({ name: 'greet', kind: 'prompt', metadata: { variables: ['name', 'nme'] } });
    await components.createVersion('greet', { version: 'v1.0.0', content: 'Hi {{ name }}' });
    expect((await orchestrator.execute('e')).error).toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('prompt://greet@v1.0.0 needs `name` in the input of agent `a`'),
    });
  });
});

describe('a variable that is null', () => {
  const greet = async (input: string, variables: NonNullable<NewComponent['metadata']>['variables']) => {
    const { orchestrator, components } = await setUp({
      ensembles: [ensemble('{ text: "prompt://greet@latest" }', `input: ${input},`)],
    });
    await components.register({ name: 'greet', kind: 'prompt', metadata: { variables } });
    await components.createVersion('greet', { version: 'v1.0.0', content: 'Hi {{ who }}, {{ tone }}' });
    const { error, output } = await orchestrator.execute('e', { who: null });
    return error?.message ?? (output as { text?: unknown }).text ?? output;
  };

  it('counts as missing, and has its default', async () => {
    const withDefault = ['who', { name: 'tone', default: 'calm' }] as const;
    expect(await greet('{ who: "${input.who}", tone: x }', ['who', 'tone'])).toContain('needs `who` in the input');
    expect(JSON.stringify(await greet('{ who: Ada, tone: null }', withDefault))).toContain('Hi Ada, calm');
    expect(JSON.stringify(await greet('{ who: Ada }', withDefault))).toContain('Hi Ada, calm');
    expect(JSON.stringify(await greet('{ who: Ada, tone: loud }', withDefault))).toContain('Hi Ada, loud');
    expect(await greet('{ who: Ada }', ['who', { name: 'tone' }])).toContain('needs `tone`');
  });
});

describe('refused at load', () => {
  it.each([
    ['{ text: "prompt://greet" }', 'must say which version'],
    ['{ text: "prompt://../x@latest" }', 'must name a component'],
    ['{ text: "prompt://greet@a@b" }', 'must end with a version'],
    ['{ query: "prompt://greet@latest" }', 'takes a query'],
    ['{ prompt: "query://greet@latest" }', 'takes a prompt or a template'],
  ])('%s', async (config, message) => {
    expect(() => createOrchestrator({ operations: [show], ensembles: [ensemble(config)] })).toThrow(message);
  });
});

describe('a stored config', () => {
  it.each([
    ['alone', '"config://settings@production"', { max: 5, mode: 'slow' }],
    ['under the written keys', '{ <<: "config://settings@${env.STAGE}", mode: fast }', { max: 5, mode: 'fast' }],
  ])('is the config of an agent: %s', async (_title, config, got) => {
    const { orchestrator, components, add } = await setUp({
      env: { STAGE: 'production' },
      ensembles: [ensemble(config)],
    });
    await add('config', 'settings', 'max: 5\nmode: slow\n');
    await components.deploy('settings', { to: 'production', version: 'v1.0.0' });
    const run = await orchestrator.execute('e');
    expect([run.output, run.components?.[0]?.version]).toEqual([{ got }, 'v1.0.0']);
  });

  it('may have what the operation needs, and what is written is still checked', async () => {
    const call = (config: string) => `name: e\nflow:\n  - { agent: a, operation: api, config: ${config} }\n`;
    expect(() =>
      createOrchestrator({ logger: false, ensembles: [call('{ <<: "config://shop@production" }')] }),
    ).not.toThrow();
    const refused = (config: string, message: string) =>
      expect(() => createOrchestrator({ logger: false, ensembles: [call(config)] })).toThrow(message);
    refused('{ <<: "config://shop@production", methd: POST }', 'did you mean `method`?');
    refused('{ <<: "config://shop@production", method: 5 }', 'method');
    refused('{ <<: "prompt://shop@production" }', 'takes a config, such as `config://name@production`');
    refused('{ <<: { url: x } }', 'YAML 1.2 has no merge keys');
    refused('"shop"', 'config');
  });

  it.each(['- 5\n', 'null', '5', 'text'])('that is not a map fails the agent: %j', async (content) => {
    const { orchestrator, add } = await setUp({ ensembles: [ensemble('"config://settings@latest"')] });
    await add('config', 'settings', content);
    const { error } = await orchestrator.execute('e');
    expect(error).toMatchObject({
      code: 'INVALID_DEFINITION',
      message: expect.stringContaining('it must be a map of settings'),
    });
  });
});

describe('the prompt of a route', () => {
  const ROUTED = `
name: e
agents:
  - name: choose
    routes:
      - { condition: "\${input.group == 'b'}", prompt: "prompt://greet@\${input.group}" }
      - { default: true, prompt: "prompt://greet@production" }
  - { name: greet, operation: think, input: { name: "\${input.who}" } }
flow:
  - agent: choose
  - agent: greet
outputs: { said: "\${greet.output}", chosen: "\${choose.output.target}" }
`;

  it('may be a component: its text, its model and its version are those of the next think', async () => {
    const model = fakeModel(['ok', 'ok']);
    const { orchestrator, components } = await setUp({ models: { test: model }, ensembles: [ROUTED] });
    await components.register({ name: 'greet', kind: 'prompt', metadata: { model: 'small', variables: ['name'] } });
    for (const [version, content] of [
      ['v1.0.0', 'Hello {{ name }}'],
      ['v2.0.0', 'Hi {{ name }}'],
    ] as const)
      await components.createVersion('greet', { version, content });
    await components.deploy('greet', { to: 'production', version: 'v1.0.0' });
    await components.deploy('greet', { to: 'b', version: 'v2.0.0' });
    const run = await orchestrator.execute('e', { who: 'Ada', group: 'b' });
    expect([run.status, run.components]).toMatchObject(['completed', [{ name: 'greet', ref: 'b', version: 'v2.0.0' }]]);
    const other = await orchestrator.execute('e', { who: 'Ada', group: 'a' });
    expect(other.components).toMatchObject([{ ref: 'production', version: 'v1.0.0' }]);
    expect(model.requests).toMatchObject([
      { model: 'small', messages: [{ text: 'Hi Ada' }] },
      { model: 'small', messages: [{ text: 'Hello Ada' }] },
    ]);
  });

  it('takes no query, and the result of an expression is never read as a reference', async () => {
    expect(() =>
      createOrchestrator({
        logger: false,
        ensembles: [ROUTED.replace('prompt://greet@production', 'query://x@production')],
      }),
    ).toThrow('takes a prompt or a template');
    const model = fakeModel(['ok']);
    const { orchestrator } = await setUp({
      models: { test: model },
      ensembles: [
        ROUTED.replace('"prompt://greet@${input.group}"', '"${input.prompt}"').replace(
          'operation: think,',
          'operation: think, config: { model: m },',
        ),
      ],
    });
    const run = await orchestrator.execute('e', { group: 'b', who: 'Ada', prompt: 'prompt://greet@production' });
    expect(run.error).toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('by the value of an expression'),
    });
    expect([model.requests, run.components]).toEqual([[], undefined]);
  });
});

it('the schema of an answer may be a stored config', async () => {
  const model = fakeModel(['{"a": 1}', '{"a": "text"}']);
  const { orchestrator, add } = await setUp({
    models: { test: model },
    ensembles: [
      `
name: e
flow:
  - { agent: a, operation: think, config: { model: m, prompt: hi, schema: "config://shape@latest" } }
outputs: { got: "\${a.output.object}" }
`,
    ],
  });
  await add('config', 'shape', 'type: object\nproperties: { a: { type: number } }\nrequired: [a]\n');
  const { output, components } = await orchestrator.execute('e');
  expect([output, components?.[0]?.name]).toEqual([{ got: { a: 1 } }, 'shape']);
  expect(model.requests[0]?.schema).toMatchObject({ properties: { a: { type: 'number' } } });
  expect((await orchestrator.execute('e')).status).toBe('failed');
});

describe('a reference that is written out', () => {
  const warningsOf = async (config: string, rest: string, inputs = '') => {
    const lines: string[] = [];
    const silent = () => undefined;
    const warn = (_about: unknown, message?: string) => void lines.push(String(message));
    const { orchestrator, components } = await setUp({
      logger: { debug: silent, info: silent, error: silent, warn },
      ensembles: [ensemble(config, rest).replace('name: e', `name: e${inputs}`)],
    });
    await components.register({ name: 'greet', kind: 'prompt', metadata: { variables: ['name', 'city'] } });
    await components.createVersion('greet', { version: 'v1.0.0', content: '{{ name }} of {{ city }}' });
    await orchestrator.ready();
    await orchestrator.close();
    return lines;
  };
  const REF = '{ text: "prompt://greet@v1.0.0" }';
  const MISSING = (has: string) =>
    `ensemble \`e\`: flow[0].config.text: prompt://greet@v1.0.0 needs \`city\` in the input of agent \`a\`, which has ${has}`;

  it('is checked by ready(): the variables of its version must be in the input of the agent', async () => {
    expect(await warningsOf(REF, 'input: { name: 1, city: 2 },')).toEqual([]);
    expect(await warningsOf(REF, 'input: { name: 1 },')).toEqual([MISSING('`name`')]);
    expect(await warningsOf(REF, '', '\ninputs: { name: { type: string } }')).toEqual([MISSING('`name`')]);
    // What is not known before an execution is checked by the attempt.
    expect(await warningsOf(REF, '')).toEqual([]);
    expect(await warningsOf(REF, 'input: "${input.all}",')).toEqual([]);
    expect(
      await warningsOf('{ text: "prompt://greet@${env.STAGE}" }'.replace('${env.STAGE}', '${input.stage}'), ''),
    ).toEqual([]);
  });

  it('is checked by ready(): it must lead to a version', async () => {
    const [line, ...more] = await warningsOf('{ text: "prompt://greet@v2.0.0" }', '');
    expect(line).toContain('flow[0].config.text: prompt://greet@v2.0.0 leads to no version: create it');
    expect(more).toEqual([]);
  });
});

describe('what a stored config may bring', () => {
  /** Runs an agent whose config is a stored one. @returns its error, or its output */
  const bring = async (stored: string, rest: string, secrets = { KEY: 'a secret' }) => {
    const { orchestrator, components, add } = await setUp({
      secrets,
      ensembles: [`name: e\nflow:\n  - { agent: a, operation: show, ${rest} }\noutputs: { got: "\${a.output}" }\n`],
    });
    await add('config', 'shop', stored);
    await components.deploy('shop', { to: 'production', version: 'v1.0.0' });
    const { output, error } = await orchestrator.execute('e');
    return error ? `${error.code}: ${error.message}` : output;
  };
  const FROM = '<<: "config://shop@production"';
  const URL = 'url: https://shop.example/\nretries: 2\n';
  const line = (keys: string) => `\`fromComponent: [${keys}]\``;

  it.each([
    ['auth', `config: { ${FROM}, auth: { type: bearer, token: "\${env.KEY}" } }`],
    ['headers', `config: { ${FROM}, headers: { X-Key: plain } }`],
    ['env. in its config', `config: { ${FROM}, body: { key: "\${env.KEY}" } }`],
    ['env. in its input', `input: { key: "\${env.KEY}" }, config: { ${FROM}, body: x }`],
  ])('is no url beside %s; the error names the line that allows it', async (_, rest) => {
    const refused = await bring(URL, rest);
    expect(refused).toMatch(/^INVALID_DEFINITION: config:\/\/shop@v1.0.0 brings `url` to agent `a`/);
    expect(refused).toContain(line('url, retries'));
    expect(await bring(URL, `fromComponent: [url, retries], ${rest}`)).toHaveProperty(
      'got.url',
      'https://shop.example/',
    );
  });

  it('is a url where nothing secret is written, and where the agent writes its own', async () => {
    expect(await bring(URL, `config: { ${FROM}, method: POST }`)).toEqual({
      got: { url: 'https://shop.example/', retries: 2, method: 'POST' },
    });
    const own = `config: { ${FROM}, url: "https://own.example/", auth: { token: "\${env.KEY}" } }`;
    expect(await bring(URL, own)).toHaveProperty('got.url', 'https://own.example/');
  });

  it.each(['script: pay', 'auth: { token: mine }', 'provider: other'])(
    'is no `%s`, unless the agent says so',
    async (stored) => {
      const key = stored.split(':')[0] as string;
      expect(await bring(stored, `config: "config://shop@production"`)).toContain(line(key));
      expect(await bring(stored, `fromComponent: [${key}], config: "config://shop@production"`)).toHaveProperty(
        `got.${key}`,
      );
    },
  );

  it('is what the agent names, and nothing else', async () => {
    const refused = await bring('path: /a\nmode: fast\n', `fromComponent: [path], config: { ${FROM} }`);
    expect(refused).toContain('brings `mode` to agent `a`, which is not in its `fromComponent`');
    expect(await bring('path: /a\n', `fromComponent: [path, query], config: { ${FROM} }`)).toEqual({
      got: { path: '/a' },
    });
  });

  it('`fromComponent` without a stored config has no effect, and is refused', () => {
    const load = (fields: string) =>
      createOrchestrator({
        operations: [show],
        ensembles: [`name: e\nflow:\n  - { agent: a, operation: show, ${fields} }\n`],
      });
    expect(() => load('fromComponent: [url], config: { url: x }')).toThrow('has no effect');
    expect(() => load(`fromComponent: url, config: { ${FROM} }`)).toThrow('fromComponent');
  });
});
