/** `Idempotency-Key` on the requests that start no execution: each runs once, and its twins get the answer of the first. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { createRequestKeys } from '../../src/engine/access/rules/request-keys.ts';
import { manualClock } from '../../src/entries/testing.ts';
import type { OrchestratorOptions } from '../../src/orchestrator/options/options.ts';
import { createService, post, readResponse } from './service.ts';

async function open(more: OrchestratorOptions = {}) {
  const storage = memoryStorage();
  const service = createService({}, { storage, ...more });
  const admin = async () => {
    const { token } = await service.orchestrator.tokens.create({ name: 'a', scopes: ['admin'], plan: 'enterprise' });
    return { authorization: `Bearer ${token}` };
  };
  const headers = await admin();
  const ask = (path: string, body: unknown, key?: string, as = headers) => {
    const request = post(body, key === undefined ? as : { ...as, 'idempotency-key': key });
    return readResponse(
      service.handler.fetch(new Request(`http://localhost/api/v1${path}`, request), { ip: '192.0.2.1' }),
    );
  };
  const tokens = async () => (await service.orchestrator.tokens.list()).filter(({ name }) => name === 'shop');
  return { ...service, storage, admin, ask, tokens };
}

const SHOP = { name: 'shop', scopes: ['read:state'] };

describe('Idempotency-Key of a request that starts no execution', () => {
  it('1,000 twins at once create one token, and all get its value', async () => {
    const { ask, tokens } = await open();
    const answers = await Promise.all(Array.from({ length: 1000 }, () => ask('/tokens', SHOP, 'k')));
    expect(new Set(answers.map(({ status, body }) => `${status} ${body.token}`)).size).toBe(1);
    expect(answers[0]?.status).toBe(201);
    expect(await tokens()).toHaveLength(1);
  });

  it('the storage holds no value of the new token', async () => {
    const { ask, storage, clock } = await open();
    const { body } = await ask('/tokens', SHOP, 'k');
    const kept = JSON.stringify(await storage.documents.list('request', { limit: 10, now: clock.now() }));
    expect(kept).toContain('"answer"');
    for (const secret of [body.token, body.token.slice(11, 30), 'shop']) expect(kept).not.toContain(secret);
  });

  it('another body or path under the key is 422; another caller and another key are other requests', async () => {
    const { ask, admin, tokens } = await open();
    await ask('/tokens', SHOP, 'k');
    for (const [path, body] of [
      ['/tokens', { ...SHOP, name: 'other' }],
      ['/ensembles', SHOP],
    ] as const) {
      const reused = await ask(path, body, 'k');
      expect([reused.status, reused.body.error.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    }
    const other = await admin();
    for (const answer of [
      await ask('/tokens', SHOP, 'k', other),
      await ask('/tokens', SHOP, 'l'),
      await ask('/tokens', SHOP),
    ])
      expect(answer.status).toBe(201);
    expect(await tokens()).toHaveLength(4);
  });

  it('an answer from 400 on is not kept: the next request with the key runs', async () => {
    const { ask } = await open();
    expect((await ask('/tokens', { name: 'shop' }, 'k')).status).toBe(400);
    expect((await ask('/tokens', SHOP, 'k')).status).toBe(201);
  });

  it('the twin of a created ensemble is 201 as well, and that of a retry names the same execution', async () => {
    const { ask } = await open();
    const definition = { name: 'stored', flow: [] };
    const [one, two] = [await ask('/ensembles', definition, 'k'), await ask('/ensembles', definition, 'k')];
    expect([one.status, two.status, two.body]).toEqual([201, 201, one.body]);
    expect(two.headers.get('etag')).toBe(one.headers.get('etag'));
    expect((await ask('/ensembles', definition, 'l')).status).toBe(409);
    const failed = await ask('/execute/ensemble/failing', {});
    const path = `/executions/${failed.body.error.executionId}/retry`;
    const [first, again] = [await ask(path, {}, 'r'), await ask(path, {}, 'r')];
    expect([first.status, again.status, again.body]).toEqual([202, 202, first.body]);
  });

  it('after 24 hours the key is free again', async () => {
    const { ask, tokens, clock } = await open();
    await ask('/tokens', SHOP, 'k');
    await clock.advance(24 * 3_600_000 - 1);
    await ask('/tokens', SHOP, 'k');
    expect(await tokens()).toHaveLength(1);
    await clock.advance(1);
    await ask('/tokens', SHOP, 'k');
    expect(await tokens()).toHaveLength(2);
  });

  it('while the first request runs, a twin waits up to 30 s and is 409; the key of a process that died is free after a minute', async () => {
    const { documents } = memoryStorage();
    const clock = manualClock();
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const [dying, living] = [1, 2].map(() => createRequestKeys({ documents, clock, logger, sharesPromises: true }));
    const request = { caller: 'tok_1', key: 'k', asked: 'a', secret: 's' };
    void dying?.once(request, () => new Promise<never>(() => {}));
    const refused = [dying, living].map((process) =>
      expect(process?.once(request, async () => ({ status: 201 }))).rejects.toMatchObject({
        code: 'CONFLICT',
        retryable: true,
      }),
    );
    await clock.advance(30_100);
    await Promise.all(refused);
    await clock.advance(30_000);
    expect(await living?.once(request, async () => ({ status: 201 }))).toEqual({ status: 201 });
  });

  it('a key of a wrong form is 400', async () => {
    const { ask } = await open();
    const refused = await ask('/tokens', SHOP, 'x'.repeat(256));
    expect([refused.status, refused.body.error.code]).toEqual([400, 'INVALID_REQUEST']);
  });
});

it('every POST takes the key: a rollback that is sent twice goes back one version', async () => {
  const { ask, orchestrator } = await open();
  await ask('/components', { name: 'greet', kind: 'prompt' }, 'c');
  expect((await ask('/components', { name: 'greet', kind: 'prompt' }, 'c')).status).toBe(201);
  const { components } = orchestrator;
  for (const version of ['v1.0.0', 'v1.1.0', 'v1.2.0'])
    await components.createVersion('greet', { version, content: version });
  for (const version of ['v1.0.0', 'v1.1.0', 'v1.2.0']) await components.deploy('greet', { version, to: 'production' });
  const rollback = () => ask('/components/greet/deployments/production/rollback', {}, 'rb');
  const [one, two] = [await rollback(), await rollback()];
  expect([one.body.version, two.body.version]).toEqual(['v1.1.0', 'v1.1.0']);
  expect((await ask('/replays', {}, 'r')).body.id).toBe((await ask('/replays', {}, 'r')).body.id);
  expect((await ask('/ensembles/none/activate', {}, 'x'.repeat(300))).status).toBe(400);
});
