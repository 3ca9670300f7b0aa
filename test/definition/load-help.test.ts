/** What a load says about definitions that are valid in part, and do not do what they seem to say. */

import { describe, expect, it } from 'vitest';
import { fakeModel, stubHttp } from '../../src/entries/testing.ts';
import { createOrchestrator, memoryStorage } from '../../src/index.ts';

const code = (agent: string, more: object = {}) => ({ agent, operation: 'code', config: { script: 'run' }, ...more });

/** @returns the warnings that a load logs */
function load(definition: object): string[] {
  const warnings: string[] = [];
  const warn = (_fields: object, message?: string) => void warnings.push(message ?? '');
  createOrchestrator({
    ensembles: [{ name: 'a', ...definition } as never],
    scripts: { run: () => null },
    logger: { debug() {}, info() {}, error() {}, warn },
  });
  return warnings;
}

describe('a step between a failure and the condition that reads it', () => {
  const TAIL = 'to stop there, put the steps into a `try` with a `catch`';

  it.each([
    [
      'one step',
      [code('build'), code('deploy'), code('alert', { condition: '${build.failed || deploy.failed}' })],
      '`deploy` runs even when `build` has failed, because the condition of `alert` reads `build.failed`; ',
    ],
    [
      'several steps, and an `if` around the reader',
      [code('build'), code('deploy'), { sleep: 1 }, { if: '${build.success}', then: [code('alert')] }],
      '`deploy` and `flow[2]` run even when `build` has failed, because the condition of `flow[3]` reads `build.success`; ',
    ],
    [
      'seven steps, of which five are named',
      [
        code('build'),
        ...'abcdefg'.split('').map((name) => code(name)),
        code('alert', { condition: '${build.failed}' }),
      ],
      '`a`, `b`, `c`, `d` and `e`, and 2 more steps, run even when `build` has failed, because the condition of `alert` reads `build.failed`; ',
    ],
    [
      'inside of a block',
      [{ foreach: [1], steps: [code('build'), code('deploy'), code('alert', { condition: '${build.failed}' })] }],
      '`deploy` runs even when `build` has failed, because the condition of `alert` reads `build.failed`; ',
    ],
  ])('is warned about: %s', (_, flow, text) => {
    expect(load({ flow })).toEqual([expect.stringContaining(text + TAIL)]);
  });

  it.each([
    ['nothing is between', [code('build'), code('alert', { condition: '${build.failed}' })]],
    [
      'the step between reads it too',
      [
        code('build'),
        code('deploy', { condition: '${build.success}' }),
        code('alert', { condition: '${build.failed}' }),
      ],
    ],
    [
      'the failure counts as handled',
      [code('build', { continueOnError: true }), code('deploy'), code('alert', { condition: '${build.failed}' })],
    ],
    [
      'the condition is in a `finally`, which handles nothing',
      [{ try: [code('build'), code('deploy')], finally: [code('alert', { condition: '${build.failed}' })] }],
    ],
  ])('is not warned about when %s', (_, flow) => {
    expect(load({ flow })).toEqual([]);
  });
});

describe('an `input` that the operation does not read', () => {
  it.each([
    ['api', { url: 'https://a.example' }],
    ['storage', { type: 'kv', action: 'put', key: 'k', value: '${input.text}' }],
  ])('is warned about on `%s`, with what to write', (operation, config) => {
    const [warning, ...more] = load({ flow: [{ agent: 'send', operation, config, input: { text: 'hi' } }] });
    expect(more).toEqual([]);
    expect(warning).toContain(
      `has no effect: \`${operation}\` does not read it. A \`config\` reads the execution's input`,
    );
    expect(load({ flow: [{ agent: 'send', operation, config }] })).toEqual([]);
  });

  it('is explained where the config reads it, and the ensemble does not declare it', () => {
    const config = { url: 'https://a.example', method: 'POST', body: { text: '${input.text}' } };
    const flow = [{ agent: 'send', operation: 'api', config, input: { text: 'hi' } }];
    const inputs = { id: 'string' };
    expect(() => load({ inputs, flow })).toThrow(
      "input `text` is not declared in `inputs`. A `config` reads the execution's input as `input`: write the expression",
    );
    expect(() => load({ inputs, flow: [{ agent: 'send', operation: 'api', config }] })).toThrow(
      /declared in `inputs`$/m,
    );
  });
});

describe('a value that is nearly right', () => {
  it.each(['stripe', 'github', 'standard'])('`type: %s` of a webhook is a scheme of signatures', (type) => {
    const trigger = [{ type: 'webhook', path: '/in', auth: { type, secret: 'x' } }];
    expect(() => load({ trigger, flow: [] })).toThrow(`; write \`type: signature, scheme: ${type}\``);
  });

  it('`completed` in `events` suggests `execution.completed`', () => {
    const notifications = [{ type: 'webhook', url: 'https://a.example', events: ['completed', 'failed'] }];
    try {
      load({ notifications, flow: [] });
      expect.unreachable();
    } catch (error) {
      const { issues } = (error as { details: { issues: { suggestion?: string }[] } }).details;
      expect(issues.map(({ suggestion }) => suggestion)).toEqual(['execution.completed', 'execution.failed']);
    }
  });

  it('a path in place of a storage names `sqliteStorage`', () => {
    expect(() => createOrchestrator({ storage: 'desk.db' as never })).toThrow('write `sqliteStorage({ path:');
  });
});

describe('a key with an expression', () => {
  const KEY = { '${input.k}': 1 };
  it.each([
    ['config', { flow: [code('s', { config: { script: 'run', map: KEY } })] }, 'flow[0].config.map["${input.k}"]'],
    ['input', { flow: [code('s', { input: [{ deep: KEY }] })] }, 'flow[0].input[0].deep["${input.k}"]'],
    ['outputs', { flow: [], outputs: { all: KEY } }, 'outputs.all["${input.k}"]'],
    ['the outputs themselves', { flow: [], outputs: KEY }, 'outputs["${input.k}"]'],
    ['setState', { state: { initial: {} }, flow: [code('s', { setState: KEY })] }, 'flow[0].setState["${input.k}"]'],
    ['the input of a child', { flow: [{ ensemble: 'a', input: KEY }] }, 'flow[0].input["${input.k}"]'],
    ['items', { flow: [{ foreach: [KEY], steps: [code('s')] }] }, 'flow[0].foreach[0]["${input.k}"]'],
  ])('is refused in %s, with its place and the way that works', (_, definition, path) => {
    expect(() => load(definition)).toThrow(`${path}: a key is not evaluated`);
  });

  it('is refused as a case', () => {
    const flow = [{ switch: '${input.a}', cases: { '${input.b}': [code('s')] } }];
    expect(() => load({ flow })).toThrow('a case is not evaluated, so `${...}` in it would stay text: use `if`');
  });

  it('has a way that works, which the message shows', async () => {
    let written = '';
    try {
      load({ flow: [], outputs: { all: KEY } });
    } catch (error) {
      written = /such as `(\$\{.*\})`, or/.exec((error as Error).message)?.[1] ?? '';
    }
    const orchestrator = createOrchestrator({
      ensembles: [{ name: 'a', flow: [], outputs: { all: written } } as never],
    });
    const input = { key: 'a "b"', value: [1] };
    expect((await orchestrator.execute('a', input as never)).output).toEqual({ all: { 'a "b"': [1] } });
  });
});

describe('one mistake is one problem', () => {
  const problems = (source: string) => {
    try {
      createOrchestrator({ ensembles: [source], logger: false, scripts: { run: () => null } });
    } catch (error) {
      return (error as { details: { issues: readonly { message: string }[] } }).details.issues.map(
        ({ message }) => message,
      );
    }
    return [];
  };

  it.each([
    [
      'a step named `index`',
      '  - { agent: index, operation: code, config: { script: run } }\noutputs: { a: "${index.output.x}" }',
      '`index` is a reserved name',
    ],
    [
      'a step named `item`',
      '  - { agent: item, operation: code, config: { script: run } }\n  - { agent: b, operation: code, config: { script: run }, input: "${item.output}" }',
      '`item` is a reserved name',
    ],
    [
      'a step named `error`',
      '  - { agent: error, operation: code, config: { script: run } }\noutputs: { a: "${error.output}" }',
      '`error` is a reserved name',
    ],
    [
      'a trigger of an unknown type',
      '  []\ntrigger: [{ type: queue, topic: orders, group: a }]',
      "must be `webhook` or `schedule`, not 'queue'",
    ],
    [
      'a function of another language',
      '  []\noutputs: { a: "${map(input.x, 1)}" }',
      'argument 2 of map() must be an arrow, as in map(list, x => x.id)',
    ],
    [
      'a filter of another language',
      '  []\noutputs: { a: "${reduce(input.x, 1)}" }',
      'there is no function reduce(); sumBy() adds',
    ],
    ['a name of another system', '  []\noutputs: { a: "${vars.x}" }', 'there is no agent or name `vars`'],
  ])('%s', (_, rest, message) => {
    expect(problems(`name: a\nflow:\n${rest}\n`)).toEqual([expect.stringContaining(message)]);
  });
});

describe('`{{ x }}` where it is plain text', () => {
  it.each([
    ['api', '{ url: "https://a.example/{{ id }}" }'],
    ['storage', '{ type: kv, action: get, key: "{{ id }}" }'],
    ['tools', '{ mcp: shop, tool: "{{ id }}" }'],
    ['think', '{ model: "{{ id }}", prompt: "{{ id }}" }'],
  ])('is warned about by a load, for `%s`', (operation, config) => {
    const warnings: string[] = [];
    const warn = (_fields: object, message?: string) => void warnings.push(message ?? '');
    const logger = { debug() {}, info() {}, error() {}, warn };
    const ports = {
      models: { m: fakeModel([]) },
      mcpServers: { shop: { url: 'https://shop.example/' } },
    };
    const flow = `flow:\n  - { agent: x, operation: ${operation}, config: ${config} }`;
    createOrchestrator({ ...ports, ensembles: [`name: a\n${flow}`], logger });
    expect(warnings).toEqual([expect.stringContaining('`{{ id }}` is not an expression here: write `${id}`')]);
  });

  it('is warned about when a stored definition is loaded, in each process', async () => {
    const warnings: string[] = [];
    const warn = (_fields: object, message?: string) => void warnings.push(message ?? '');
    const logger = { debug() {}, info() {}, error() {}, warn };
    const storage = memoryStorage({ shared: true });
    const http = stubHttp({ '*': {} });
    const { ensembles } = createOrchestrator({ storage, http, logger });
    await ensembles.create(
      'name: a\nflow:\n  - { agent: x, operation: api, config: { url: "https://a.example/{{ id }}" } }',
    );
    await createOrchestrator({ storage, http, logger }).execute('a');
    expect(warnings.filter((text) => text.includes('is not an expression'))).toHaveLength(1);
  });
});
