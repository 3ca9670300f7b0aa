/** `createOrchestrator` of the entry for Workers: only the operations that it is given. */

import { describe, expect, it } from 'vitest';
import { api, code, createOrchestrator, storage, think } from '../../src/entries/workers.ts';
import { createHandler, createOrchestrator as createMain, defineOperation, memoryStorage } from '../../src/index.ts';

const greet = 'name: greet\nflow:\n  - { agent: hello, operation: code, config: { script: hello } }';
const scripts = { hello: ({ input }: { readonly input: unknown }) => `Hello ${(input as { who: string }).who}` };
const create = (options: object) => createOrchestrator(options as never);
const thrown = (options: object) => {
  try {
    create(options);
  } catch (error) {
    return error;
  }
};

describe('createOrchestrator of a Worker', () => {
  it('runs the operations that it is given, built-in ones and own ones, also over HTTP', async () => {
    const shout = defineOperation({ name: 'shout', run: ({ input }) => `${input}!` });
    const orchestrator = createOrchestrator({
      operations: [code(), storage(), shout],
      storage: memoryStorage(),
      ensembles: [
        greet,
        'name: loud\nflow:\n  - { agent: put, operation: storage, config: { type: kv, action: put, key: a, value: 1 } }\n  - { agent: s, operation: shout, input: hey }\noutputs: { s: "${s.output}" }',
      ],
      scripts,
    });
    expect((await orchestrator.execute('greet', { who: 'Ada' })).agents[0]?.output).toBe('Hello Ada');
    expect(await orchestrator.execute('loud')).toMatchObject({ status: 'completed', output: { s: 'hey!' } });
    const response = await createHandler(orchestrator).fetch(new Request('http://localhost/api/v1/health'));
    expect(response.status).toBe(200);
  });

  it('refuses a definition that names another operation, with what to add', () => {
    const ensembles = ['name: mail\nflow:\n  - { agent: m, operation: email, config: { to: a@b.example } }'];
    expect(thrown({ operations: [code()], storage: memoryStorage(), ensembles })).toMatchObject({
      code: 'INVALID_DEFINITION',
      message: expect.stringContaining(
        'the operation `email` is not among those of this Worker; add `email()` of ensemble-orchestrator/workers to `operations`',
      ),
    });
  });

  it.each<[string, object, string]>([
    ['no operations', { storage: memoryStorage() }, '`operations` must list all operations of its definitions'],
    ['no storage', { operations: [code()] }, '`storage` must be a storage, such as durableObjectStorage(state)'],
    [
      'scripts without code()',
      { operations: [api()], storage: memoryStorage(), scripts },
      '`scripts` is for an operation that is not in `operations`; add code()',
    ],
    [
      'servers of tools without tools() or think()',
      { operations: [code()], storage: memoryStorage(), mcpServers: { s: { url: 'https://s.example' } } },
      'add tools() or think()',
    ],
    [
      'what is no operation, by its index',
      { operations: [code(), 5], storage: memoryStorage() },
      '`operations[1]` must be a call such as code(), or a result of defineOperation',
    ],
    ['a call without parentheses', { operations: [code], storage: memoryStorage() }, 'call it, as in `code()`'],
    [
      'an own operation with the name of one of this library',
      { operations: [{ name: 'email', run: () => 1 }], storage: memoryStorage() },
      '`email` is an operation of this library; add `email()`, or give yours another name',
    ],
    ['an unknown option', { operations: [code()], storage: memoryStorage(), script: {} }, '`script`'],
    ['an operation twice', { operations: [code(), code()], storage: memoryStorage() }, '`code` exists already'],
  ])('refuses %s', (_, options, message) => {
    expect(thrown(options)).toBeInstanceOf(TypeError);
    expect((thrown(options) as Error).message).toContain(message);
  });

  it('takes an own operation that has a method `make`, and options that are empty', async () => {
    const own = { name: 'own', run: () => 1, make: () => 2 };
    const ensembles = ['name: e\nflow:\n  - { agent: o, operation: own }\noutputs: { o: "${o.output}" }'];
    const options = { operations: [own], storage: memoryStorage(), ensembles, scripts: {}, models: {} };
    expect(await create(options).execute('e')).toMatchObject({ output: { o: 1 } });
  });

  it('names the call to add for another name of an operation, and the entry for a list in the main one', () => {
    const ensembles = ['name: e\nflow:\n  - { agent: a, operation: http, config: { url: https://a.example } }'];
    const lacking = thrown({ operations: [code()], storage: memoryStorage(), ensembles }) as Error;
    expect(lacking.message).toContain(
      'the operation `api` (here: `http`) is not among those of this Worker; add `api()`',
    );
    expect(() => createMain({ operations: [code()] as never })).toThrow(
      '`operations[0]`: `code` is built in here; a list of all operations is for createOrchestrator of ensemble-orchestrator/workers',
    );
  });

  it('connects to tool servers if think() is there', () => {
    const mcpServers = { s: { url: 'https://s.example' } };
    expect(thrown({ operations: [think()], storage: memoryStorage(), mcpServers })).toBeUndefined();
  });
});
