/** Components over HTTP: registered, versioned, deployed and rolled back, with ETags, and by whom. */

import { describe, expect, it } from 'vitest';
import { createService, readResponse } from './service.ts';

async function open() {
  const service = createService();
  const { authorization } = await service.bearer('write:components', 'read:components');
  const ask = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    readResponse(
      service.handler.fetch(
        new Request(`http://localhost/api/v1/components${path}`, {
          method,
          headers: { authorization, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        }),
        { ip: '192.0.2.1' },
      ),
    );
  return { ...service, ask };
}

async function withVersions() {
  const world = await open();
  await world.ask('POST', '', { name: 'greet', kind: 'prompt', file: 'prompts/greet.md', metadata: { owner: 'ops' } });
  for (const version of ['v1.0.0', 'v1.1.0'])
    await world.ask('POST', '/greet/versions', { version, content: `Hello ${version}`, message: 'new' });
  return world;
}

describe('components over HTTP', () => {
  it('are registered once, listed, read with their ETag, and changed with If-Match', async () => {
    const { ask } = await open();
    const made = await ask('POST', '', { name: 'greet', kind: 'prompt', metadata: { owner: 'ops' } });
    expect([made.status, made.headers.get('location')]).toEqual([201, expect.stringMatching(/components\/greet$/)]);
    const etag = String(made.headers.get('etag'));
    expect((await ask('POST', '', { name: 'greet', kind: 'prompt' })).status).toBe(409);
    expect((await ask('GET', '/greet')).headers.get('etag')).toBe(etag);
    expect((await ask('PUT', '/greet', { metadata: {} }, { 'if-match': '"other"' })).status).toBe(409);
    const changed = await ask('PUT', '/greet', { metadata: { owner: 'dev' } }, { 'if-match': etag });
    expect([changed.status, changed.body.metadata]).toEqual([200, { owner: 'dev' }]);
    expect((await ask('GET', '?limit=1')).body.components).toMatchObject([{ name: 'greet', kind: 'prompt' }]);
  });

  it('have versions, with the name of the token as their author', async () => {
    const { ask } = await withVersions();
    expect((await ask('GET', '/greet/versions')).body.versions).toMatchObject([
      { version: 'v1.1.0', message: 'new', by: expect.any(String) },
      { version: 'v1.0.0' },
    ]);
    expect((await ask('POST', '/greet/versions', { version: 'v1.0.0', content: 'x' })).status).toBe(409);
    const shown = await ask('GET', '/greet/versions/latest');
    expect(shown.body).toMatchObject({ version: 'v1.1.0', content: 'Hello v1.1.0', metadata: { owner: 'ops' } });
    const missing = await ask('GET', '/greet/versions/v9.0.0');
    expect([missing.status, missing.body.error]).toEqual([
      404,
      expect.objectContaining({ code: 'VERSION_NOT_FOUND', versions: ['v1.1.0', 'v1.0.0'] }),
    ]);
  });

  it('are deployed with If-Match, rolled back and undeployed', async () => {
    const { ask } = await withVersions();
    const put = (version: string, headers = {}) => ask('PUT', '/greet/deployments/production', { version }, headers);
    expect((await put('v9.0.0')).body.error.code).toBe('VERSION_NOT_FOUND');
    const first = await put('v1.0.0');
    expect([first.status, first.headers.get('etag')]).toEqual([200, '"v1.0.0"']);
    expect((await put('v1.1.0', { 'if-match': '"v1.1.0"' })).body.error).toMatchObject({
      code: 'CONFLICT',
      version: 'v1.0.0',
    });
    expect((await put('v1.1.0', { 'if-match': '"v1.0.0"' })).status).toBe(200);
    expect((await ask('GET', '/greet/deployments')).body.deployments).toMatchObject([
      { environment: 'production', version: 'v1.1.0', previous: 'v1.0.0', by: expect.any(String) },
    ]);
    const rollback = (headers = {}) => ask('POST', '/greet/deployments/production/rollback', {}, headers);
    expect((await rollback({ 'if-match': '"v1.0.0"' })).body.error.code).toBe('CONFLICT');
    expect((await rollback({ 'if-match': '"v1.1.0"' })).body).toMatchObject({ version: 'v1.0.0' });
    expect((await ask('DELETE', '/greet/deployments/production')).body).toEqual({
      environment: 'production',
      undeployed: true,
    });
    expect((await ask('GET', '/greet/deployments')).body.deployments).toEqual([]);
  });

  it('are deployed as a split and as a rollout, each with an ETag of its own; a key decides between the versions', async () => {
    const { ask } = await withVersions();
    const put = (body: object, headers = {}) => ask('PUT', '/greet/deployments/production', body, headers);
    const split = await put({ split: { 'v1.0.0': 50, 'v1.1.0': 50 }, by: '${input.user}' });
    expect(split.body).toMatchObject({ split: { 'v1.0.0': 50, 'v1.1.0': 50 }, splitBy: '${input.user}' });
    expect((await put({ version: 'v1.0.0' }, { 'if-match': '"v1.0.0"' })).body.error.code).toBe('CONFLICT');
    expect((await put({ version: 'v1.0.0' }, { 'if-match': split.headers.get('etag') ?? '' })).status).toBe(200);
    const rollout = await put({ version: 'v1.1.0', guard: 'failureRate < 5%', steps: [20, 100], every: '1h' });
    expect(rollout.body.rollout).toEqual({
      ...{ version: 'v1.1.0', guard: 'failureRate < 5%', steps: [20, 100], step: 0, everyMs: 3_600_000 },
    });
    expect((await ask('GET', '/greet/versions/production')).status).toBe(400);
    const seen = new Set<string>();
    for (let n = 0; n < 40; n++) seen.add((await ask('GET', `/greet/versions/production?key=${n}`)).body.version);
    expect([...seen].sort()).toEqual(['v1.0.0', 'v1.1.0']);
  });

  it.each([
    ['POST', '', { name: 'a', kind: 'prompt', contnt: 1 }],
    ['PUT', '/greet/deployments/production', { split: { 'v1.0.0': 50, 'v1.1.0': 51 } }],
    ['PUT', '/greet/deployments/production', { version: 'v1.1.0', guard: 'errors < 5' }],
    ['POST', '', { name: '../a', kind: 'prompt' }],
    ['POST', '/greet/versions', { version: 'v1.2.0', content: '{{ a' }],
    ['POST', '/greet/versions', { version: 'v1.2.0', content: 'x', actor: 'somebody else' }],
    ['PUT', '/greet/deployments/v2.0.0', { version: 'v1.0.0' }],
    ['GET', '/greet/versions/%2e%2e%2fx', undefined],
  ])('%s %s with %j is refused with 400', async (method, path, body) => {
    const { ask } = await withVersions();
    expect((await ask(method, path, body)).status).toBe(400);
  });
});
