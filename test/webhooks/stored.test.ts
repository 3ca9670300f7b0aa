/** Webhooks of ensembles that are created at run time: in every process at once, one ensemble for each method and path. */

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { echo, openWebhooks } from './world.ts';

async function openTwo(code: readonly object[] = []) {
  const path = join(mkdtempSync(join(tmpdir(), 'webhooks-')), 'store.db');
  const [one, two] = [1, 2].map(() => openWebhooks(code, { storage: sqliteStorage({ path }) }));
  if (!one || !two) throw new Error('two processes');
  return { one, two };
}

const stored = (name: string, trigger: object = {}) => echo({ public: true, ...trigger }, { name });

describe('a webhook of a stored ensemble', () => {
  it('is served in every process from its creation to its deletion', async () => {
    const { one, two } = await openTwo();
    expect((await two.post('/webhooks/echo', {})).status).toBe(404);
    await one.orchestrator.ensembles.create(stored('a'));
    expect((await two.post('/webhooks/echo', { n: 1 })).body.output).toEqual({ said: { n: 1 } });
    await one.orchestrator.ensembles.deactivate('a');
    expect((await two.post('/webhooks/echo', {})).status).toBe(404);
    // It stays a webhook, so the request does not go to the app.
    const request = new Request('http://localhost/webhooks/echo', { method: 'POST' });
    expect((await two.handler.handle(request)).matched).toBe(true);
    await one.orchestrator.ensembles.activate('a');
    expect((await two.post('/webhooks/echo', {})).status).toBe(200);
    await one.orchestrator.ensembles.update('a', stored('a', { path: '/webhooks/moved' }));
    expect((await two.post('/webhooks/echo', {})).status).toBe(404);
    expect((await two.post('/webhooks/moved', {})).status).toBe(200);
    await one.orchestrator.ensembles.delete('a');
    expect((await two.post('/webhooks/moved', {})).status).toBe(404);
  });

  it('takes a new secret at once, and the old one no longer', async () => {
    const { one, two } = await openTwo();
    const withSecret = (secret: string) => stored('a', { public: undefined, auth: { type: 'bearer', secret } });
    const status = async (secret: string) =>
      (await two.post('/webhooks/echo', {}, { authorization: `Bearer ${secret}` })).status;
    await one.orchestrator.ensembles.create(withSecret('old'));
    expect([await status('old'), await status('new')]).toEqual([200, 401]);
    await one.orchestrator.ensembles.update('a', withSecret('new'));
    expect([await status('old'), await status('new')]).toEqual([401, 200]);
  });

  it('is refused if another ensemble, stored or in code, has its method and path; and free after that one is changed', async () => {
    const { one, two } = await openTwo([echo({ public: true, path: '/webhooks/code' }, { name: 'code' })]);
    await one.orchestrator.ensembles.create(stored('a', { methods: ['POST', 'PUT'] }));
    const create = (definition: object) =>
      two.orchestrator.ensembles.create(definition).then(
        ({ name }) => name,
        (thrown) => thrown.message,
      );
    expect(await create(stored('b', { methods: ['PUT', 'GET'] }))).toBe(
      'ensemble `a` has a trigger for PUT /webhooks/echo; change one of them',
    );
    expect(await create(stored('b', { path: '/webhooks/code' }))).toContain('ensemble `code` has a trigger');
    // What was refused has claimed nothing.
    expect(await create(stored('c', { methods: ['GET'] }))).toBe('c');
    await one.orchestrator.ensembles.update('a', stored('a', { methods: ['POST'] }));
    expect(await create(stored('b', { methods: ['PUT'] }))).toBe('b');
    expect((await one.call('/webhooks/echo', { method: 'DELETE' })).headers.get('allow')?.split(', ').sort()).toEqual([
      ...['GET', 'POST', 'PUT'],
    ]);
  });

  it('of which two are created at once is given to one of them', async () => {
    const { one, two } = await openTwo();
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const made = await Promise.allSettled(
      names.map((name, i) => (i % 2 ? one : two).orchestrator.ensembles.create(stored(name))),
    );
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const { body } = await one.post('/webhooks/echo', {});
    const kept = (await one.orchestrator.ensembles.list()).ensembles.map(({ name }) => name);
    expect([(await one.orchestrator.executions.get(body.executionId)).ensemble]).toEqual(kept);
  });

  it('is below `/webhooks/`, so that it takes over no route of the app', async () => {
    const { one } = await openTwo();
    await expect(one.orchestrator.ensembles.create(stored('a', { path: '/login' }))).rejects.toThrow(
      'trigger[0].path: must begin with `/webhooks/` in a definition that is created at run time',
    );
  });
});

describe('`webhooks.list`', () => {
  it('names all webhooks in the order of their paths, without a secret', async () => {
    const auth = { type: 'signature', scheme: 'github', secret: 'hush' };
    const { orchestrator } = openWebhooks([echo({ path: '/z', auth })]);
    await orchestrator.ensembles.create(stored('a', { async: true }));
    expect(await orchestrator.webhooks.list()).toEqual([
      ...[
        {
          path: '/webhooks/echo',
          methods: ['POST'],
          ensemble: 'a',
          auth: 'public',
          async: true,
          source: 'store',
          active: true,
        },
      ],
      ...[
        {
          path: '/z',
          methods: ['POST'],
          ensemble: 'echo',
          auth: 'signature',
          scheme: 'github',
          async: false,
          source: 'code',
          active: true,
        },
      ],
    ]);
  });
});

it('a stored ensemble that does not load here is answered 500 without its problem, and the listing has the others', async () => {
  const path = join(mkdtempSync(join(tmpdir(), 'webhooks-')), 'store.db');
  const auth = { type: 'bearer', secret: '${env.HOOK}' };
  const one = openWebhooks([], { storage: sqliteStorage({ path }), env: { HOOK: 'a-secret' } });
  await one.orchestrator.ensembles.create(stored('a', { public: undefined, auth }));
  await one.orchestrator.ensembles.create(stored('b', { path: '/webhooks/b' }));
  const two = openWebhooks([], { storage: sqliteStorage({ path }) });
  const { status, body } = await two.post('/webhooks/echo', {});
  expect([status, body]).toEqual([500, { error: expect.not.stringContaining('HOOK') }]);
  expect((await two.orchestrator.webhooks.list()).map(({ ensemble }) => ensemble)).toEqual(['b']);
  expect(two.log).toContainEqual({ level: 'warn', message: 'the webhooks of a stored ensemble can not be served' });
});
