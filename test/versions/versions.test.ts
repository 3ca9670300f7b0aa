/** The versions of definitions that a store keeps: labels, what is kept, rollback, and moves to a label. */

import { describe, expect, it } from 'vitest';
import { manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { Orchestrator } from '../../src/index.ts';
import { createService, readResponse } from '../http-api/service.ts';
import { world } from './world.ts';

const order = (text: string, more = '') => `# ${text}
name: order
flow:
  - { agent: say, operation: code, config: { script: echo }, input: { text: '${text}' } }
${more}outputs: { said: '\${say.output.text}' }
`;

const said = async (orchestrator: Orchestrator) => (await orchestrator.execute('order')).output;

describe('versions', () => {
  it('keeps what was stored, when, by whom and why, the newest first, with its text', async () => {
    const { deploy, clock } = world();
    const { ensembles } = deploy();
    const first = await ensembles.create(order('one'), { label: 'v1', actor: 'Ada', commit: '4f1c' });
    await clock.advance(60_000);
    const second = await ensembles.update('order', order('two'), { label: 'v2', message: 'says two' });
    const at = clock.now();
    expect(await ensembles.versions('order')).toEqual([
      { version: second.version, label: 'v2', message: 'says two', createdAt: at },
      { version: first.version, label: 'v1', by: 'Ada', commit: '4f1c', createdAt: at - 60_000 },
    ]);
    expect(second).toMatchObject({ label: 'v2' });
    expect((await ensembles.get('order')).label).toBe('v2');
    for (const ref of ['v1', first.version]) {
      const found = await ensembles.version('order', ref);
      expect(found).toMatchObject({ version: first.version, label: 'v1', definition: { name: 'order' } });
      expect(found.text).toBe(order('one'));
    }
    expect(await ensembles.version('order', 'latest')).toMatchObject({ label: 'v2', text: order('two') });
    await expect(ensembles.version('order', 'v3')).rejects.toMatchObject({
      code: 'VERSION_NOT_FOUND',
      message: expect.stringContaining('it has v2, v1'),
    });
  });

  it('rolls back: new executions begin with the earlier definition, which is the newest version again', async () => {
    const { deploy } = world();
    const orchestrator = deploy();
    const { ensembles } = orchestrator;
    const { version } = await ensembles.create(order('one'), { label: 'v1' });
    await ensembles.update('order', order('two'), { label: 'v2' });
    expect(await said(orchestrator)).toEqual({ said: 'two' });
    const other = deploy();
    expect(await said(other)).toEqual({ said: 'two' });
    const back = await ensembles.rollback('order', { to: 'v1', actor: 'Eve', message: 'two is wrong' });
    expect(back).toMatchObject({ version, label: 'v1' });
    expect([await said(orchestrator), await said(other)]).toEqual([{ said: 'one' }, { said: 'one' }]);
    expect(await ensembles.versions('order')).toMatchObject([
      { label: 'v1', by: 'Eve', message: 'two is wrong' },
      { label: 'v2' },
      { label: 'v1' },
    ]);
    // And forward again.
    await ensembles.rollback('order', { to: 'v2' });
    expect(await said(other)).toEqual({ said: 'two' });
    await expect(ensembles.rollback('order', { to: 'v9' })).rejects.toMatchObject({ code: 'VERSION_NOT_FOUND' });
    await expect(ensembles.rollback('order', { to: 'v1', ifMatch: version })).rejects.toMatchObject({
      code: 'CONFLICT',
    });
  });

  it('keeps the newest 100 versions, and what is not kept is gone from the store', async () => {
    const storage = memoryStorage({ shared: true });
    const { ensembles } = world(storage).deploy();
    const first = await ensembles.create(order('0'), { label: 'v0' });
    for (let i = 1; i <= 100; i++) await ensembles.update('order', order(String(i)), { label: `v${i}` });
    const versions = await ensembles.versions('order');
    expect([versions.length, versions[0]?.label, versions.at(-1)?.label]).toEqual([100, 'v100', 'v1']);
    expect((await ensembles.version('order', 'v1')).text).toBe(order('1'));
    await expect(ensembles.version('order', first.version)).rejects.toMatchObject({ code: 'VERSION_NOT_FOUND' });
    const kept = await storage.documents.list('ensemble-version', { limit: 500, now: 0 });
    expect(kept).toHaveLength(99);
    await ensembles.delete('order');
    expect(await storage.documents.list('ensemble-version', { limit: 500, now: 0 })).toEqual([]);
    // Its label is free again.
    await ensembles.create(order('again'), { label: 'v1' });
    expect(await ensembles.versions('order')).toHaveLength(1);
  });

  it('a label names one version; the same definition may get another label, and a change without one has none', async () => {
    const { ensembles } = world().deploy();
    const one = await ensembles.create(order('one'), { label: 'v1' });
    await expect(ensembles.update('order', order('two'), { label: 'v1' })).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining(`label \`v1\` is that of version ${one.version}`),
    });
    expect((await ensembles.get('order')).version).toBe(one.version);
    // Nothing has changed.
    await ensembles.update('order', order('one'), { label: 'v1' });
    await ensembles.update('order', order('one'));
    expect(await ensembles.versions('order')).toHaveLength(1);
    // A release of many ensembles names all of them, also those that did not change.
    expect(await ensembles.update('order', order('one'), { label: 'release-7' })).toMatchObject({ label: 'release-7' });
    expect((await ensembles.version('order', 'v1')).version).toBe(one.version);
    expect((await ensembles.update('order', order('two'))).label).toBeUndefined();
    for (const label of ['', 'a b', 'latest', one.version, 7 as never])
      await expect(ensembles.update('order', order('two'), { label })).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        message: expect.stringContaining('`label`'),
      });
  });

  it('a change of a shared agent makes a version of each definition that uses it', async () => {
    const { deploy } = world();
    const orchestrator = deploy();
    const { ensembles, agents } = orchestrator;
    const agent = (text: string) =>
      `{ name: say, operation: code, config: { script: echo }, input: { text: ${text} } }`;
    await agents.create(agent('one'), { label: 'a1' });
    const use = `name: order\nflow: [{ agent: say }]\noutputs: { said: "\${say.output.text}" }`;
    const first = await ensembles.create(use, { label: 'v1' });
    await agents.update('say', agent('two'), { label: 'a2' });
    const versions = await ensembles.versions('order');
    expect(versions).toMatchObject([{ message: 'a shared agent that it uses was changed' }, { label: 'v1' }]);
    expect(versions[0]?.label).toBeUndefined();
    expect((await ensembles.version('order', 'v1')).version).toBe(first.version);
    // The definition of v1 again, with the agent of today.
    const again = await ensembles.rollback('order', { to: 'v1' });
    expect([again.version, again.label]).toEqual([versions[0]?.version, undefined]);
    await agents.rollback('say', { to: 'a1' });
    expect(await said(orchestrator)).toEqual({ said: 'one' });
    expect((await ensembles.get('order')).version).toBe(first.version);
  });

  it('a definition that was stored before versions were kept has one, and keeps it when it changes', async () => {
    const storage = memoryStorage({ shared: true });
    const { ensembles } = world(storage).deploy();
    const { version, updatedAt } = await ensembles.create(order('one'));
    const stored = await storage.documents.read('ensemble', 'order', 0);
    const { versions: _versions, text: _text, ...older } = (stored?.value ?? {}) as Record<string, never>;
    const document = { tag: stored?.tag as string, value: older, updatedAt };
    await storage.documents.write('ensemble', 'order', { expectedVersion: 1, document, now: 0 });
    expect(await ensembles.versions('order')).toEqual([{ version, createdAt: updatedAt }]);
    await ensembles.update('order', order('two'), { label: 'v2' });
    expect(await ensembles.versions('order')).toMatchObject([{ label: 'v2' }, { version }]);
    expect((await ensembles.version('order', version)).definition).toMatchObject({ name: 'order' });
  });

  it('of two changes at the same time, each is one version', async () => {
    const { deploy } = world();
    const [one, other] = [deploy(), deploy()];
    await one.ensembles.create(order('0'));
    await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        (i % 2 ? one : other).ensembles.update('order', order(`n${i}`), { label: `n${i}` }),
      ),
    );
    const labels = (await one.ensembles.versions('order')).map(({ label }) => label);
    expect(labels).toHaveLength(11);
    expect(new Set(labels).size).toBe(11);
    for (const label of labels.slice(0, 10))
      expect((await other.ensembles.version('order', label as string)).text).toBe(order(label as string));
  });

  it('a definition in code has one version, and is not rolled back', async () => {
    const { ensembles } = world(undefined, { ensembles: [order('one')] }).deploy();
    const { version } = await ensembles.get('order');
    expect(await ensembles.versions('order')).toMatchObject([{ version }]);
    expect(await ensembles.version('order', 'latest')).toMatchObject({ version, definition: { name: 'order' } });
    await expect(ensembles.rollback('order', { to: version })).rejects.toMatchObject({ code: 'CONFLICT' });
  });

  it('an execution that waits moves to a label, also of a version that no execution has run', async () => {
    const { deploy, settle } = world();
    const orchestrator = deploy();
    const { ensembles, executions } = orchestrator;
    const waits = (text: string) => order(text, '  - { wait: go }\n');
    const v1 = await ensembles.create(waits('one'), { label: 'v1' });
    const { id } = await orchestrator.start('order');
    await settle();
    const later = order(
      'one',
      '  - { wait: go }\n  - { agent: more, operation: code, config: { script: echo }, input: 1 }\n',
    );
    const v2 = await ensembles.update('order', later, { label: 'v2' });
    await ensembles.update('order', order('three'), { label: 'v3' });
    await expect(executions.move({ id, to: 'v9' })).rejects.toMatchObject({ code: 'VERSION_NOT_FOUND' });
    expect(await executions.move({ id, to: 'v2' })).toMatchObject({ moved: 1 });
    expect((await executions.get(id)).version).toBe(v2.version);
    expect(await executions.move({ ensemble: 'order', to: 'v1' })).toMatchObject({ moved: 1 });
    expect((await executions.get(id)).version).toBe(v1.version);
    expect(await executions.move({ id, to: 'v3' })).toMatchObject({ moved: 0, refused: 1 });
  });
});

describe('a map of versions', () => {
  it('moves the executions of each version to another one, and leaves those of the others', async () => {
    const { deploy, settle } = world();
    const orchestrator = deploy();
    const { ensembles, executions } = orchestrator;
    const flow = (...more: string[]) =>
      order(
        'one',
        [
          '  - { wait: go }',
          ...more.map((name) => `  - { agent: ${name}, operation: code, config: { script: echo }, input: 1 }`),
          '',
        ].join('\n'),
      );
    const hashes: Record<string, string> = {};
    const ids: Record<string, string> = {};
    for (const [i, definition] of [flow(), flow('a'), flow('a', 'b'), flow('c')].entries()) {
      const label = `v${i + 1}`;
      const stored =
        i === 0 ? ensembles.create(definition, { label }) : ensembles.update('order', definition, { label });
      hashes[label] = (await stored).version;
      ids[label] = (await orchestrator.start('order')).id;
    }
    await settle();
    const versionOf = async (label: string) => (await executions.get(ids[label] as string)).version;
    const map = { v1: 'v2', [hashes.v3 as string]: 'latest' };
    expect(await executions.move({ ensemble: 'order', map, dryRun: true })).toMatchObject({ moved: 2, unchanged: 2 });
    expect(await executions.move({ ensemble: 'order', map })).toMatchObject({ matched: 4, moved: 2, unchanged: 2 });
    expect([await versionOf('v1'), await versionOf('v2'), await versionOf('v3'), await versionOf('v4')]).toEqual([
      ...[hashes.v2, hashes.v2, hashes.v4, hashes.v4],
    ]);
    // As a job, too: it needs no `to`.
    await executions.move({ ensemble: 'order', map: { v2: 'v1', v4: 'v3' } });
    const { id: job } = await orchestrator.jobs.create({
      action: 'move',
      filter: { ensemble: 'order' },
      map: { v1: 'v2' },
    });
    for (let i = 0; i < 5; i++) await settle();
    expect(await orchestrator.jobs.get(job)).toMatchObject({
      status: 'completed',
      changed: 2,
      unchanged: 2,
      failed: 0,
    });
    await executions.move({ ensemble: 'order', map });
    // With `to`, those that the map does not name go there; names of steps may stand beside versions.
    expect(await executions.move({ ensemble: 'order', to: 'v1', map: { v2: 'v3', say: 'say' } })).toMatchObject({
      ...{ moved: 4, refused: 0 },
    });
    expect([await versionOf('v1'), await versionOf('v3')]).toEqual([hashes.v3, hashes.v1]);
    await expect(executions.move({ ensemble: 'order', map: {}, to: 'v9' })).rejects.toMatchObject({
      code: 'VERSION_NOT_FOUND',
    });
  });
});

describe('versions over HTTP', () => {
  it('lists versions by pages, shows one, and rolls back; the name of the token says who', async () => {
    const service = createService({}, { scripts: { echo: ({ input }) => input } });
    const { authorization } = await service.bearer('admin');
    const ask = (path: string, method = 'GET', body?: string, headers: Record<string, string> = {}) =>
      readResponse(
        service.handler.fetch(
          new Request(`http://localhost/api/v1${path}`, {
            method,
            headers: {
              authorization,
              'content-type': body?.startsWith('{') ? 'application/json' : 'application/yaml',
              ...headers,
            },
            ...(body !== undefined && { body }),
          }),
          { ip: '192.0.2.1' },
        ),
      );
    expect((await ask('/ensembles?label=v1', 'POST', order('one'))).body.label).toBe('v1');
    const put = await ask('/ensembles/order?label=v2&commit=4f1c&message=two', 'PUT', order('two'));
    expect([put.status, put.body.label]).toEqual([200, 'v2']);
    const list = await ask('/ensembles/order/versions?limit=1');
    expect(list.body).toMatchObject({
      versions: [{ label: 'v2', commit: '4f1c', message: 'two', by: expect.any(String), version: put.body.version }],
      nextCursor: expect.any(String),
    });
    const rest = await ask(`/ensembles/order/versions?limit=1&cursor=${list.body.nextCursor}`);
    expect(rest.body).toMatchObject({ versions: [{ label: 'v1' }] });
    expect(rest.body.nextCursor).toBeUndefined();
    expect((await ask('/ensembles/order/versions/v1')).body).toMatchObject({ label: 'v1', text: order('one') });
    expect((await ask('/ensembles/order/versions/v7')).body.error).toMatchObject({ code: 'VERSION_NOT_FOUND' });
    const back = await ask('/ensembles/order/rollback', 'POST', '{"to":"v1","message":"wrong"}');
    expect([back.status, back.body.label, back.headers.get('etag')]).toEqual([200, 'v1', `"${back.body.version}"`]);
    const stale = { 'if-match': `"${put.body.version}"` };
    expect((await ask('/ensembles/order/rollback', 'POST', '{"to":"v2"}', stale)).status).toBe(409);
    expect((await ask('/ensembles/order/rollback', 'POST', '{}')).body.error).toMatchObject({
      code: 'INVALID_REQUEST',
    });
  });
});

describe('traffic over HTTP', () => {
  it('sets and shows it; what executions gave is for those who may read executions', async () => {
    const clock = manualClock();
    const service = createService({}, { scripts: { echo: ({ input }) => input }, clock });
    const ask = (authorization: string, path: string, method = 'GET', body?: object) =>
      readResponse(
        service.handler.fetch(
          new Request(`http://localhost/api/v1${path}`, {
            ...{ method, headers: { authorization, 'content-type': 'application/json' } },
            ...(body && { body: JSON.stringify(body) }),
          }),
          { ip: '192.0.2.1' },
        ),
      );
    const admin = (await service.bearer('admin')).authorization;
    const writer = (await service.bearer('read:ensembles', 'write:ensembles')).authorization;
    const { ensembles } = service.orchestrator;
    await ensembles.create(order('one'), { label: 'v1' });
    await ensembles.traffic('order', { version: 'v1' });
    await ensembles.update('order', order('one').replace("'${say.output.text}'", "'${say.output.text + 1}'"), {
      label: 'v2',
    });
    const set = await ask(writer, '/ensembles/order/traffic', 'PUT', { version: 'v1', shadow: 'v2', message: 'look' });
    expect([set.status, set.body]).toMatchObject([
      200,
      { version: 'v1', shadow: 'v2', message: 'look', by: expect.any(String) },
    ]);
    const { id } = await service.orchestrator.execute('order');
    await service.orchestrator.runDue();
    const [own, others] = [await ask(admin, '/ensembles/order/traffic'), await ask(writer, '/ensembles/order/traffic')];
    expect(own.body).toMatchObject({ shadowed: { runs: 1, different: 1, differences: [{ executionId: id }] } });
    expect(others.body).toMatchObject({ shadowed: { runs: 1, different: 1, differences: [] } });
    const wrong = await ask(writer, '/ensembles/order/traffic', 'PUT', { split: { v1: 1 } });
    expect([wrong.status, wrong.body.error]).toMatchObject([400, { code: 'INVALID_REQUEST' }]);
    expect((await ask(writer, '/ensembles/order/traffic', 'PUT', { shares: {} })).status).toBe(400);
  });
});
