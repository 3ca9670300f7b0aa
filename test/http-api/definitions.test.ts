/** Definitions that are created, changed and deleted at run time, over HTTP and in the process, in one process and in several. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { callPart, createParts } from '../../src/engine/storage/storage-methods.port.ts';
import { manualClock } from '../../src/entries/testing.ts';
import { createApiHandler } from '../../src/http-handlers/create-api-handler.ts';
import { createOrchestrator, type Orchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import type { OrchestratorOptions } from '../../src/orchestrator/options/options.ts';
import { createService, post, readResponse } from './service.ts';

const HELLO = `name: hello
description: Says hello
flow:
  - { agent: say, operation: code, config: { script: echo }, input: { text: 'one' } }
outputs: { said: '\${say.output.text}' }
`;
const hello = (text: string) => HELLO.replace("'one'", `'${text}'`);
const yaml = (text: string, method = 'POST', headers: Record<string, string> = {}): RequestInit => ({
  method,
  headers: { 'content-type': 'application/yaml', ...headers },
  body: text,
});

async function open(more: OrchestratorOptions = {}) {
  const service = createService({}, more);
  const { authorization } = await service.bearer('admin');
  const ask = (path: string, init: RequestInit = {}) =>
    readResponse(
      service.handler.fetch(
        new Request(`http://localhost${path.startsWith('/ensembles') ? '' : '/api/v1'}${path}`, {
          ...init,
          headers: { authorization, ...(init.headers as Record<string, string>) },
        }),
        { ip: '192.0.2.1' },
      ),
    );
  return { ...service, ask };
}

describe('ensembles over HTTP', () => {
  it('a token that may not start ensembles stores none with a webhook, which anyone could start', async () => {
    const service = await open();
    const { authorization } = await service.bearer('write:ensembles', 'read:ensembles');
    const both = (await service.bearer('write:ensembles', 'execute:ensembles')).authorization;
    const hooked = `trigger: [{ type: webhook, path: /webhooks/hello, public: true }]\n${HELLO}`;
    const refused = await service.ask('/ensembles', yaml(hooked, 'POST', { authorization }));
    expect([refused.status, refused.body.error]).toMatchObject([
      403,
      {
        code: 'FORBIDDEN',
        requiredScope: 'execute:ensembles',
        message: expect.stringContaining('webhook'),
      },
    ]);
    expect((await service.ask('/ensembles', yaml(HELLO, 'POST', { authorization }))).status).toBe(201);
    expect((await service.ask('/ensembles/hello', yaml(hooked, 'PUT', { authorization }))).status).toBe(403);
    expect((await service.ask('/ensembles/hello', yaml(hooked, 'PUT', { authorization: both }))).status).toBe(200);
  });

  it('POST stores YAML or JSON, and the ensemble runs at once; GET, PUT and DELETE show, change and remove it', async () => {
    const { ask } = await open();
    const made = await ask('/ensembles', yaml(HELLO));
    const { version } = made.body;
    expect([made.status, made.headers.get('location'), made.headers.get('etag')]).toEqual([
      ...[201, '/api/v1/ensembles/hello', `"${version}"`],
    ]);
    expect(made.body).toMatchObject({ name: 'hello', description: 'Says hello', active: true, source: 'store' });
    expect((await ask('/execute/ensemble/hello', post({}))).body.output).toEqual({ said: 'one' });

    const shown = await ask('/api/v1/ensembles/hello'.slice(7));
    expect([shown.status, shown.body]).toEqual([200, made.body]);
    const changed = await ask('/ensembles/hello', yaml(hello('two'), 'PUT', { 'if-match': `"${version}"` }));
    expect([changed.status, changed.body.version === version]).toEqual([200, false]);
    expect((await ask('/execute/ensemble/hello', post({}))).body.output).toEqual({ said: 'two' });

    const late = await ask('/ensembles/hello', yaml(hello('three'), 'PUT', { 'if-match': `"${version}"` }));
    expect([late.status, late.body.error.code, late.body.error.version]).toEqual([
      409,
      'CONFLICT',
      changed.body.version,
    ]);
    expect((await ask('/ensembles/hello', { method: 'DELETE', headers: { 'if-match': `"${version}"` } })).status).toBe(
      409,
    );
    const gone = await ask('/ensembles/hello', { method: 'DELETE' });
    expect([gone.status, gone.body]).toEqual([200, { name: 'hello', deleted: true }]);
    for (const path of ['/ensembles/hello', '/execute/ensemble/hello']) {
      expect((await ask(path, path.startsWith('/ex') ? post({}) : {})).status).toBe(404);
    }
    const json = { name: 'hello', flow: [], outputs: { said: 'four' } };
    expect((await ask('/ensembles', post(json))).status).toBe(201);
    expect((await ask('/execute/ensemble/hello', post({}))).body.output).toEqual({ said: 'four' });
  });

  it('a definition of more than 256 KiB is 413', async () => {
    const { ask } = await open();
    const large = await ask('/ensembles', yaml(`${HELLO}# ${'x'.repeat(256 * 1024)}\n`));
    expect([large.status, large.body.error]).toMatchObject([413, { code: 'PAYLOAD_TOO_LARGE', maxBytes: 262_144 }]);
  });

  it('a definition is shown in the form in which PUT takes it', async () => {
    const { ask } = await open();
    const { body } = await ask('/ensembles', yaml(HELLO));
    const again = await ask('/ensembles/hello', { ...post(body.definition), method: 'PUT' });
    expect([again.status, again.body.version]).toEqual([200, body.version]);
  });

  it.each([
    ['a name that is taken in the storage', HELLO, 409, 'CONFLICT'],
    ['a name of an ensemble in code', 'name: greet\nflow: []\n', 409, 'CONFLICT'],
    ['an unknown key', 'name: a\nflow: []\nowner: me\n', 400, 'INVALID_DEFINITION'],
    [
      'a script that does not exist',
      'name: a\nflow: [{ agent: x, operation: code, config: { script: no } }]',
      400,
      'INVALID_DEFINITION',
    ],
    ['an ensemble that does not exist', 'name: a\nflow: [{ ensemble: nobody }]', 400, 'INVALID_DEFINITION'],
    ['a schedule', "name: a\nflow: []\ntrigger: [{ type: schedule, cron: '0 0 * * *' }]", 400, 'INVALID_DEFINITION'],
    ['text that is not YAML', 'name: [', 400, 'INVALID_DEFINITION'],
    ['no body', '', 400, 'INVALID_REQUEST'],
  ])('POST with %s is refused, and stores nothing', async (_, text, status, code) => {
    const { ask } = await open();
    await ask('/ensembles', yaml(HELLO));
    const before = (await ask('/ensembles')).body;
    const refused = await ask('/ensembles', yaml(text));
    expect([refused.status, refused.body.error.code]).toEqual([status, code]);
    expect((await ask('/ensembles')).body).toEqual(before);
  });

  it('the problems of YAML have lines and frames', async () => {
    const { ask } = await open();
    const { issues } = (await ask('/ensembles', yaml('name: a\nflow: []\nowner: me\n'))).body.error;
    expect(issues).toEqual([
      expect.objectContaining({ path: 'owner', line: 3, frame: expect.stringContaining('owner: me') }),
    ]);
  });

  it('the problems of JSON have lines too', async () => {
    const { ask } = await open();
    const body = '{\n  "name": "a",\n  "flow": [],\n  "owner": "me"\n}';
    const { issues } = (
      await ask('/ensembles', { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    ).body.error;
    expect(issues).toEqual([
      expect.objectContaining({ path: 'owner', line: 4, frame: expect.stringContaining('"owner"') }),
    ]);
  });

  it.each([
    ['text/plain', HELLO, 415],
    ['application/yaml; charset=utf-16', HELLO, 415],
    ['application/json', '[]', 400],
    ['application/json', '{"name":"a","flow":[],"plan":"pro","id":"x"}', 400],
    ['text/yaml; charset=utf-8', HELLO, 201],
  ])('a body of type %s: %s', async (type, body, status) => {
    const { ask } = await open();
    expect((await ask('/ensembles', { method: 'POST', headers: { 'content-type': type }, body })).status).toBe(status);
  });

  it('definitions in code are read-only, and so are their names', async () => {
    const { ask } = await open();
    for (const [path, init] of [
      ['/ensembles/greet', yaml('name: greet\nflow: []\n', 'PUT')],
      ['/ensembles/greet', { method: 'DELETE' }],
      ['/ensembles/greet/deactivate', post({})],
      ['/agents/double', { method: 'DELETE' }],
    ] as const) {
      const refused = await ask(path, init);
      expect([path, refused.status, refused.body.error.code]).toEqual([path, 409, 'CONFLICT']);
    }
    await ask('/ensembles', yaml(HELLO));
    const renamed = await ask('/ensembles/hello', yaml('name: other\nflow: []\n', 'PUT'));
    expect([renamed.status, renamed.body.error.code]).toEqual([400, 'INVALID_REQUEST']);
  });

  it('deactivate refuses starts with 409 NOT_ACTIVE until activate; the list is filtered by `active`', async () => {
    const { ask } = await open();
    await ask('/ensembles', yaml(HELLO));
    expect((await ask('/execute/ensemble/hello', post({}))).status).toBe(200);
    const off = await ask('/ensembles/hello/deactivate', post({}));
    expect([off.status, off.body.active]).toEqual([200, false]);
    const refused = await ask('/execute/ensemble/hello', post({}));
    expect([refused.status, refused.body.error.code]).toEqual([409, 'NOT_ACTIVE']);
    const names = async (query: string) =>
      (await ask(`/workflows?${query}`)).body.data.map(({ name }: { name: string }) => name);
    expect(await names('active=false')).toEqual(['hello']);
    expect(await names('active=true')).not.toContain('hello');
    expect((await ask('/workflows?active=yes')).status).toBe(400);
    expect((await ask('/ensembles/hello/activate', post({}))).body.active).toBe(true);
    expect((await ask('/execute/ensemble/hello', post({}))).status).toBe(200);
    expect((await ask('/ensembles/nobody/activate', post({}))).status).toBe(404);
  });

  it.each(['activate', 'deactivate'])(
    '%s with the If-Match of an older version is 409, and changes nothing',
    async (action) => {
      const { ask } = await open();
      const old = (await ask('/ensembles', yaml(HELLO))).headers.get('etag') ?? '';
      const { headers } = await ask('/ensembles/hello', yaml(hello('two'), 'PUT'));
      if (action === 'activate') await ask('/ensembles/hello/deactivate', post({}));
      const send = (etag: string) => ask(`/ensembles/hello/${action}`, post({}, { 'if-match': etag }));
      expect((await send(old)).body.error.code).toBe('CONFLICT');
      expect((await ask('/ensembles/hello')).body.active).toBe(action === 'deactivate');
      expect((await send(headers.get('etag') ?? '')).body.active).toBe(action === 'activate');
    },
  );

  it('pages hold ensembles of code and storage by name; rows that come and go move no other row', async () => {
    const { ask, orchestrator } = await open();
    const names = Array.from({ length: 30 }, (_, i) => `s${String(i).padStart(2, '0')}`);
    for (const name of names) await orchestrator.ensembles.create({ name, flow: [] });
    const all = (await ask('/ensembles?limit=250')).body.ensembles.map(({ name }: { name: string }) => name);
    expect(all).toEqual([...all].sort());
    expect(all.length).toBe(36);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await ask(
        `/workflows?limit=7${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
      );
      seen.push(...page.body.data.map(({ id }: { id: string }) => id));
      cursor = page.body.nextCursor;
      if (seen.length === 14) await orchestrator.ensembles.delete(names[5] as string);
      if (seen.length === 14) await orchestrator.ensembles.create({ name: 'aaa', flow: [] });
    } while (cursor !== undefined);
    expect(seen).toEqual(all.filter((name: string) => seen.includes(name)));
    expect(all.filter((name: string) => !seen.includes(name) && name !== names[5])).toEqual([]);
    const first = await ask('/workflows?limit=1');
    expect((await ask(`/ensembles?cursor=${encodeURIComponent(first.body.nextCursor)}&active=true`)).status).toBe(400);
  });

  it('260 workflows are paged through while others are created and deleted: none is missed, none is listed twice', async () => {
    const { ask, orchestrator } = await open();
    const { ensembles } = orchestrator;
    const nameOf = (n: number) => `w-${String(n).padStart(3, '0')}`;
    for (let n = 0; n < 260; n++) await ensembles.create({ name: nameOf(n), flow: [] });
    const seen: string[] = [];
    let pages = 0;
    let cursor: string | undefined;
    do {
      pages += 1;
      const query = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const { body } = await ask(`/workflows?limit=20${query}`);
      const names: string[] = body.data.map(({ name }: { readonly name: string }) => name);
      seen.push(...names.filter((name) => /^w-\d{3}$/.test(name)));
      // Before, at and after the place of the cursor; and what was seen already is deleted.
      if (pages < 20)
        for (const name of ['a', 'w-100x', 'z']) await ensembles.create({ name: `${name}${pages}`, flow: [] });
      for (const name of names.slice(0, 3)) if (/^w-\d{3}$/.test(name)) await ensembles.delete(name);
      cursor = body.nextCursor;
    } while (cursor !== undefined);
    expect(seen).toEqual(Array.from({ length: 260 }, (_, n) => nameOf(n)));
  });

  it.each(['1e2', '0', '-1', '1.5', '0x10', ' 5'])('?limit=%s is no page size', async (limit) => {
    const { ask } = await open();
    const { status, body } = await ask(`/workflows?limit=${encodeURIComponent(limit)}`);
    expect([status, body.error.message]).toEqual([
      400,
      expect.stringContaining('must be a whole number of at least 1'),
    ]);
  });

  it('GET /workflows answers the form of the specification, and takes the token as X-SERVICE-API-KEY too', async () => {
    const { orchestrator, handler, ask } = await open();
    await ask('/ensembles', yaml(HELLO));
    const { token } = await orchestrator.tokens.create({ name: 'a', scopes: ['read:ensembles'] });
    const list = (headers: Record<string, string>, path = '/workflows?limit=1') =>
      readResponse(handler.fetch(new Request(`http://localhost/api/v1${path}`, { headers })));
    const { status, body } = await list({ 'X-SERVICE-API-KEY': token }, '/workflows?limit=250');
    expect(status).toBe(200);
    expect(body.data.find(({ id }: { id: string }) => id === 'hello')).toEqual({
      ...{ id: 'hello', name: 'hello', description: 'Says hello', active: true, triggers: [] },
      ...{
        version: expect.stringMatching(/^[0-9a-f]{32}$/),
        createdAt: expect.any(Number),
        updatedAt: expect.any(Number),
      },
    });
    expect((await list({ 'x-service-api-key': 'sk-service-wrong' })).status).toBe(401);
    expect((await list({ 'x-service-api-key': token, authorization: `Bearer ${token}` })).status).toBe(401);
    expect((await list({ 'x-service-api-key': token }, '/ensembles')).status).toBe(401);
  });
});

describe('agents over HTTP', () => {
  const agent = (text: string) => ({ name: 'say', operation: 'code', config: { script: 'echo' }, input: { text } });
  const CALLER = { name: 'caller', flow: [{ agent: 'say' }], outputs: { said: '${say.output.text}' } };

  it('a stored agent runs alone and in stored ensembles, and a change counts in both at once', async () => {
    const { ask } = await open();
    expect((await ask('/agents', post(agent('one')))).status).toBe(201);
    const before = await ask('/ensembles', post(CALLER));
    expect((await ask('/execute/agent/say', post({}))).body.output).toEqual({ text: 'one' });
    expect((await ask('/execute/ensemble/caller', post({}))).body.output).toEqual({ said: 'one' });
    const changed = await ask('/agents/say', { ...post(agent('two')), method: 'PUT' });
    expect([changed.status, changed.body.definition.input]).toEqual([200, { text: 'two' }]);
    expect((await ask('/execute/agent/say', post({}))).body.output).toEqual({ text: 'two' });
    expect((await ask('/execute/ensemble/caller', post({}))).body.output).toEqual({ said: 'two' });
    expect((await ask('/ensembles/caller')).body.version).not.toBe(before.body.version);
  });

  it('an agent in use is not deleted, and a change that breaks its users is refused', async () => {
    const { ask } = await open();
    await ask('/agents', post(agent('one')));
    await ask('/ensembles', post({ ...CALLER, flow: [{ agent: 'say', retry: { maxAttempts: 2 } }] }));
    const refused = await ask('/agents/say', { method: 'DELETE' });
    expect([refused.status, refused.body.error.message]).toEqual([
      ...[409, 'agent `say` is used by ensemble `caller`; change them first'],
    ]);
    await ask('/ensembles/caller', { method: 'DELETE' });
    expect((await ask('/agents/say', { method: 'DELETE' })).status).toBe(200);
    expect((await ask('/agents/say')).status).toBe(404);
  });

  it('the problems of an agent in YAML have lines; a deactivated agent does not run alone', async () => {
    const { ask } = await open();
    const wrong = await ask('/agents', yaml('name: say\noperation: code\nconfigs: {}\n'));
    expect([wrong.status, wrong.body.error.issues[0]]).toEqual([
      ...[400, expect.objectContaining({ path: 'configs', line: 3, suggestion: 'config' })],
    ]);
    await ask('/agents', post(agent('one')));
    expect((await ask('/agents')).body.agents.map(({ name }: { name: string }) => name)).toEqual(['double', 'say']);
    await ask('/agents/say/deactivate', post({}));
    expect((await ask('/execute/agent/say', post({}))).body.error.code).toBe('NOT_ACTIVE');
  });
});

describe('definitions in several processes', () => {
  /** Processes on one storage, with counts of their reads of documents. */
  function processes(count: number) {
    const shared = memoryStorage({ shared: true });
    const clock = manualClock();
    return Array.from({ length: count }, () => {
      const reads: string[] = [];
      const parts = createParts((part, method) => (...args) => {
        if (part === 'documents') reads.push(method);
        return callPart(shared, part, method, args);
      });
      const storage: Storage = { ...shared, ...parts, close() {} };
      const orchestrator = createOrchestrator({ storage, clock, scripts: { echo: ({ input }) => input } });
      return { orchestrator: orchestrator as unknown as Orchestrator, reads };
    });
  }
  const said = async ({ orchestrator }: { orchestrator: Orchestrator }) =>
    ((await orchestrator.execute('hello')).output as { said: string }).said;

  it('a change counts in every process from the next start on, and a start reads no document when nothing has changed', async () => {
    const [one, two, three] = processes(3) as [Awaited<ReturnType<typeof processes>>[0], never, never];
    await one.orchestrator.ensembles.create(hello('a'));
    expect([await said(one), await said(two), await said(three)]).toEqual(['a', 'a', 'a']);
    for (const text of ['b', 'c']) {
      await (two as typeof one).orchestrator.ensembles.update('hello', hello(text));
      expect([await said(one), await said(two), await said(three)]).toEqual([text, text, text]);
    }
    const before = one.reads.length;
    for (let i = 0; i < 20; i++) await said(one);
    expect(one.reads.length).toBe(before);
  });

  it('a deletion and a deactivation count in every process at once', async () => {
    const [one, two] = processes(2) as [Awaited<ReturnType<typeof processes>>[0], never];
    const other = two as typeof one;
    await one.orchestrator.ensembles.create(hello('a'));
    await said(other);
    await one.orchestrator.ensembles.deactivate('hello');
    await expect(said(other)).rejects.toMatchObject({ code: 'NOT_ACTIVE' });
    await one.orchestrator.ensembles.activate('hello');
    expect(await said(other)).toBe('a');
    await one.orchestrator.ensembles.delete('hello');
    await expect(said(other)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('its state begins with the initial values as they are stored now, in every process, and is there while it is not active', async () => {
    const [one, two] = processes(2) as [Awaited<ReturnType<typeof processes>>[0], never];
    const other = two as typeof one;
    const counter = (n: number) => ({ name: 'counter', state: { initial: { n } }, flow: [] });
    await one.orchestrator.ensembles.create(counter(0));
    expect((await other.orchestrator.state.get('counter')).state).toEqual({ n: 0 });
    await one.orchestrator.ensembles.update('counter', counter(5));
    expect((await other.orchestrator.state.get('counter')).state).toEqual({ n: 5 });
    await one.orchestrator.ensembles.deactivate('counter');
    expect((await other.orchestrator.state.patch('counter', { x: 1 })).state).toEqual({ n: 5, x: 1 });
    expect((await one.orchestrator.state.clear('counter')).state).toEqual({ n: 5 });
    await one.orchestrator.ensembles.delete('counter');
    for (const { orchestrator } of [one, other])
      await expect(orchestrator.state.set('counter', {})).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('a change of an agent counts in the ensembles that use it, also if its process ends in the middle', async () => {
    const [one, two] = processes(2) as [Awaited<ReturnType<typeof processes>>[0], never];
    const other = two as typeof one;
    const agent = (text: string) => ({ name: 'say', operation: 'code', config: { script: 'echo' }, input: { text } });
    await one.orchestrator.agents.create(agent('a'));
    await one.orchestrator.ensembles.create({
      name: 'hello',
      flow: [{ agent: 'say' }],
      outputs: { said: '${say.output.text}' },
    });
    expect([await said(one), await said(other)]).toEqual(['a', 'a']);
    await other.orchestrator.agents.update('say', agent('b'));
    expect([await said(one), await said(other)]).toEqual(['b', 'b']);
  });

  it('a stored ensemble is a child of another one, and a change of the child counts in a parent that is not changed', async () => {
    const [one, two] = processes(2) as [Awaited<ReturnType<typeof processes>>[0], never];
    const other = two as typeof one;
    await one.orchestrator.ensembles.create(hello('a'));
    const parent = {
      name: 'parent',
      flow: [{ ensemble: 'hello', name: 'child' }],
      outputs: { said: '${child.output.said}' },
    };
    await one.orchestrator.ensembles.create(parent);
    const ofParent = async (at: typeof one) => (await at.orchestrator.execute('parent')).output;
    expect([await ofParent(one), await ofParent(other)]).toEqual([{ said: 'a' }, { said: 'a' }]);
    await one.orchestrator.ensembles.update('hello', hello('b'));
    expect([await ofParent(one), await ofParent(other)]).toEqual([{ said: 'b' }, { said: 'b' }]);
    await one.orchestrator.ensembles.delete('hello');
    expect((await other.orchestrator.execute('parent')).error).toMatchObject({
      message: expect.stringContaining('there is no ensemble `hello`'),
    });
  });

  it('of concurrent creations of one name, exactly one is stored', async () => {
    const all = processes(6);
    const made = await Promise.allSettled(
      all.map(({ orchestrator }, i) => orchestrator.ensembles.create(hello(String(i)))),
    );
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const winner = made.findIndex(({ status }) => status === 'fulfilled');
    for (const process of all) expect(await said(process)).toBe(String(winner));
  });

  it('the handler of another process serves what one process has stored', async () => {
    const [one, two] = processes(2) as [Awaited<ReturnType<typeof processes>>[0], never];
    await one.orchestrator.ensembles.create(hello('a'));
    const handler = createApiHandler((two as typeof one).orchestrator);
    const { token } = await one.orchestrator.tokens.create({ name: 'a', scopes: ['admin'] });
    const request = new Request('http://localhost/ensembles/hello', { headers: { authorization: `Bearer ${token}` } });
    expect((await handler.fetch(request)).status).toBe(200);
  });
});
