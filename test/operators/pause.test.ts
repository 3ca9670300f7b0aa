/** Pause and resume: what an operator stops, and lets continue. */

import { describe, expect, it } from 'vitest';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createTestOrchestrator, manualClock } from '../../src/entries/testing.ts';
import { createHandler } from '../../src/http-handlers/create-handler.ts';
import { createOrchestrator } from '../../src/index.ts';
import { newFile } from '../storage/sqlite-files.ts';

const HOUR = 3_600_000;

/** Three steps, of which each ends when it is told to. */
function world(flow: readonly object[] = ['a', 'b', 'c'].map(step), more: object = {}) {
  const open = new Map<string, () => void>();
  const ran: string[] = [];
  const orchestrator = createTestOrchestrator({
    ensembles: [{ name: 'work', flow, ...more }] as never,
    scripts: Object.fromEntries(
      ['a', 'b', 'c', 'd'].map((name) => [
        name,
        () =>
          new Promise<string>((resolve) => {
            ran.push(name);
            open.set(name, () => resolve(name));
          }),
      ]),
    ),
  });
  const settle = async () => {
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    orchestrator,
    settle,
    ran,
    async finish(name: string) {
      open.get(name)?.();
      await settle();
    },
    status: async (id: string) => (await orchestrator.executions.get(id)).status,
  };
}

function step(name: string) {
  return { agent: name, operation: 'code', config: { script: name } };
}

describe('executions.pause', () => {
  it('one that runs is paused after its current step, with its result, and continues after it when it is resumed', async () => {
    const { orchestrator, settle, finish, ran, status } = world();
    const handle = await orchestrator.start('work', {});
    await settle();
    expect((await orchestrator.executions.pause(handle.id)).status).toBe('running');
    await finish('a');
    expect([await status(handle.id), ran]).toEqual(['paused', ['a']]);
    await orchestrator.clock.advance(HOUR);
    expect([await status(handle.id), ran]).toEqual(['paused', ['a']]);
    expect((await orchestrator.executions.resume(handle.id)).status).not.toBe('paused');
    await settle();
    expect(ran).toEqual(['a', 'b']);
    await finish('b');
    await finish('c');
    expect((await handle.result()).status).toBe('completed');
    expect(ran).toEqual(['a', 'b', 'c']);
  });

  it('branches that run end their current steps first', async () => {
    const { orchestrator, settle, finish, ran, status } = world([
      {
        parallel: [
          { if: true, then: [step('a'), step('b')] },
          { if: true, then: [step('c'), step('d')] },
        ],
      },
    ]);
    const handle = await orchestrator.start('work', {});
    await settle();
    await orchestrator.executions.pause(handle.id);
    await finish('a');
    expect([await status(handle.id), ran]).toEqual(['running', ['a', 'c']]);
    await finish('c');
    expect([await status(handle.id), ran]).toEqual(['paused', ['a', 'c']]);
    await orchestrator.executions.resume(handle.id);
    await settle();
    expect(ran.toSorted()).toEqual(['a', 'b', 'c', 'd']);
  });

  it('a sleep keeps its instant: it is over when the execution is resumed after it', async () => {
    const { orchestrator, settle, ran, status } = world([{ sleep: '1h' }, step('a')]);
    const handle = await orchestrator.start('work', {});
    await settle();
    expect((await orchestrator.executions.pause(handle.id)).status).toBe('paused');
    expect((await orchestrator.executions.get(handle.id)).waitingFor[0]?.kind).toBe('sleep');
    await orchestrator.clock.advance(2 * HOUR);
    expect([await status(handle.id), ran]).toEqual(['paused', []]);
    await orchestrator.executions.resume(handle.id);
    await settle();
    expect(ran).toEqual(['a']);
  });

  it('a signal to a paused execution is taken when it is resumed', async () => {
    const { orchestrator, settle, ran, status } = world([{ wait: 'go' }, step('a')]);
    const handle = await orchestrator.start('work', {});
    await orchestrator.clock.advance(2000);
    await orchestrator.executions.pause(handle.id);
    await orchestrator.executions.signal(handle.id, 'go');
    await settle();
    expect([await status(handle.id), ran]).toEqual(['paused', []]);
    await orchestrator.executions.resume(handle.id);
    await settle();
    expect(ran).toEqual(['a']);
  });

  it('a paused execution can be cancelled, and its timeout goes on', async () => {
    const { orchestrator, settle, status } = world([{ sleep: '5h' }], { timeout: '1h' });
    const [first, second] = [await orchestrator.start('work', {}), await orchestrator.start('work', {})];
    await settle();
    for (const { id } of [first, second]) await orchestrator.executions.pause(id);
    await orchestrator.executions.cancel(first.id);
    expect((await first.result()).status).toBe('cancelled');
    await orchestrator.clock.advance(2 * HOUR);
    expect(await status(second.id)).toBe('paused');
    await orchestrator.executions.resume(second.id);
    expect((await second.result()).status).toBe('timed_out');
  });

  it('while it pauses, a cancel ends it, and a resume lets it continue', async () => {
    const { orchestrator, settle, finish, ran } = world();
    const handles = [await orchestrator.start('work', {}), await orchestrator.start('work', {})];
    await settle();
    const [first, second] = handles.map(({ id }) => id) as [string, string];
    await orchestrator.executions.pause(first);
    await orchestrator.executions.resume(first);
    await orchestrator.executions.pause(second);
    await orchestrator.executions.cancel(second);
    await finish('a');
    await orchestrator.clock.advance(30_000);
    expect((await handles[1]?.result())?.status).toBe('cancelled');
    expect(ran).toEqual(['a', 'a']);
  });

  it('what has ended, and what is unknown, is refused', async () => {
    const { orchestrator, settle } = world([]);
    const { id } = await orchestrator.execute('work', {});
    await settle();
    await expect(orchestrator.executions.pause(id)).rejects.toMatchObject({ code: 'CONFLICT' });
    await expect(orchestrator.executions.resume(id)).rejects.toMatchObject({ code: 'CONFLICT' });
    await expect(orchestrator.executions.pause('exec_01K00000000000000000000000')).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
  });

  it('over HTTP: POST /executions/:id/pause and /resume, and the list of those that are paused', async () => {
    const { orchestrator, settle } = world([{ sleep: '1h' }]);
    const { token } = await orchestrator.tokens.create({
      name: 'all',
      scopes: ['execute:ensembles', 'read:executions'],
    });
    const handler = createHandler(orchestrator);
    const call = async (method: string, path: string, body?: object) =>
      (await handler
        .fetch(
          new Request(`http://localhost/api/v1${path}`, {
            method,
            headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
            ...(body && { body: JSON.stringify(body) }),
          }),
        )
        .then((answer) => answer.json())) as Record<string, never>;
    const { id } = await orchestrator.start('work', {});
    await settle();
    expect((await call('POST', `/executions/${id}/pause`)).status).toBe('paused');
    expect((await call('GET', '/executions?status=paused')).executions).toHaveLength(1);
    expect((await call('GET', '/open')).paused).toMatchObject({ count: 1 });
    expect((await call('POST', `/executions/${id}/resume`)).status).toBe('waiting');
    expect(await call('POST', '/pause', { ensemble: 'work' })).toEqual({ changed: 1 });
    expect((await call('GET', '/pauses')).pauses).toEqual([{ ensemble: 'work', since: expect.any(Number) }]);
    expect(await call('POST', '/resume', { ensemble: 'work' })).toEqual({ changed: 1 });
    expect(await call('POST', '/pause', { all: true })).toEqual({ changed: 1 });
    expect(await call('POST', '/resume', { all: true })).toEqual({ changed: 1 });
    for (const body of [{}, { all: false }, { ensemble: 'work', all: true }])
      expect((await call('POST', '/pause', body)).error).toMatchObject({ code: 'INVALID_REQUEST' });
  });
});

describe('jobs', () => {
  it('pause and resume all that match a filter, and say how many', async () => {
    const { orchestrator, settle } = world([{ sleep: '1h' }]);
    for (let i = 0; i < 5; i++) await orchestrator.start('work', {}, { tags: [i < 3 ? 'eu' : 'us'] });
    const ended = await orchestrator.start('work', {}, { tags: ['eu'] });
    await orchestrator.executions.cancel(ended.id);
    await settle();
    const run = async (action: 'pause' | 'resume', filter: object) => {
      const { id } = await orchestrator.jobs.create({ action, filter });
      for (let i = 0; i < 20; i++) await orchestrator.clock.advance(1000);
      const { changed, unchanged, failed, status } = await orchestrator.jobs.get(id);
      return { changed, unchanged, failed, status };
    };
    expect(await run('pause', { tag: 'eu' })).toEqual({ changed: 3, unchanged: 1, failed: 0, status: 'completed' });
    expect((await orchestrator.executions.list({ status: 'paused' })).executions).toHaveLength(3);
    expect(await run('resume', { ensemble: 'work' })).toMatchObject({ changed: 3, failed: 0 });
    expect((await orchestrator.executions.list({ status: 'waiting' })).executions).toHaveLength(5);
    await expect(orchestrator.jobs.create({ action: 'resume', filter: { status: 'waiting' } })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: '`resume` is for executions that are paused, and `waiting` is not',
    });
  });
});

describe('between processes', () => {
  it('a pause and a resume from another process than the one that works', async () => {
    const path = newFile();
    const clock = manualClock();
    const ran: string[] = [];
    let finish = (): void => {};
    const options = () => ({
      ...{ storage: sqliteStorage({ path }), clock, logger: false as const },
      ensembles: [
        {
          name: 'work',
          flow: [
            { agent: 'go', operation: 'code', config: { script: 'hold' } },
            { agent: 'on', operation: 'code', config: { script: 'on' } },
          ],
        },
      ] as never,
      scripts: {
        hold: () => {
          ran.push('hold');
          return new Promise<void>((resolve) => {
            finish = resolve;
          });
        },
        on: () => void ran.push('on'),
      },
    });
    const worker = createOrchestrator(options());
    await worker.ready();
    const handle = await worker.start('work', {});
    await clock.advance(1000);
    expect(ran).toEqual(['hold']);
    await worker.executions.pause(handle.id);
    finish();
    await clock.advance(1000);
    expect((await worker.executions.get(handle.id)).status).toBe('paused');
    await worker.close();
    const other = createOrchestrator(options());
    await other.ready();
    await clock.advance(60_000);
    expect(ran).toEqual(['hold']);
    await other.executions.resume(handle.id);
    await clock.advance(10_000);
    expect(ran).toEqual(['hold', 'on']);
    await other.close();
  });
});

describe('pauseAll', () => {
  it('an ensemble: what waits, is queued or runs is paused, and what is started later; other ensembles run', async () => {
    const { orchestrator, settle, finish, ran, status } = world([step('a'), step('b')]);
    await orchestrator.ensembles.create({ name: 'other', flow: [step('c')] } as never);
    const running = await orchestrator.start('work', {});
    await settle();
    const { changed } = await orchestrator.executions.pauseAll({ ensemble: 'work' });
    expect(changed).toBe(1);
    await settle();
    await finish('a');
    expect(await status(running.id)).toBe('paused');
    const later = await orchestrator.start('work', {});
    await orchestrator.start('other', {});
    await settle();
    expect([await status(later.id), ran]).toEqual(['paused', ['a', 'c']]);
    expect(await orchestrator.executions.pauses()).toEqual([{ ensemble: 'work', since: expect.any(Number) }]);
    expect(await orchestrator.executions.resumeAll({ ensemble: 'work' })).toEqual({ changed: 2 });
    await settle();
    expect([ran.toSorted(), await orchestrator.executions.pauses()]).toEqual([['a', 'a', 'b', 'c'], []]);
  });

  it('everything; what is paused by itself stays so after it', async () => {
    const { orchestrator, settle, ran, status } = world([step('a')]);
    await orchestrator.ensembles.create({ name: 'other', flow: [{ sleep: '1h' }] } as never);
    const own = await orchestrator.start('other', {});
    await settle();
    await orchestrator.executions.pause(own.id);
    await orchestrator.executions.pauseAll({ all: true });
    const started = await orchestrator.start('work', {});
    await settle();
    expect([await status(started.id), ran]).toEqual(['paused', []]);
    await orchestrator.executions.cancel(started.id);
    expect((await started.result()).status).toBe('cancelled');
    await orchestrator.executions.resumeAll({ all: true });
    await orchestrator.start('work', {});
    await settle();
    expect([await status(own.id), ran]).toEqual(['paused', ['a']]);
  });

  it('an unknown ensemble and an unclear target are refused', async () => {
    const { orchestrator } = world();
    await expect(orchestrator.executions.pauseAll({ ensemble: 'wrok' })).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining('work'),
    });
    await expect(orchestrator.executions.pauseAll({} as never)).rejects.toThrow('{ all: true }');
  });

  it('holds for another process within seconds, and after a restart', async () => {
    const path = newFile();
    const ran: string[] = [];
    const create = () =>
      createOrchestrator({
        storage: sqliteStorage({ path }),
        logger: false,
        ensembles: ['name: work\nflow:\n  - { agent: go, operation: code, config: { script: go } }'],
        scripts: { go: () => void ran.push('go') },
      });
    const first = create();
    await first.ready();
    await first.executions.pauseAll({ ensemble: 'work' });
    await first.close();
    const second = create();
    await second.ready();
    const handle = await second.start('work', {});
    await expect.poll(async () => (await second.executions.get(handle.id)).status, { timeout: 5000 }).toBe('paused');
    await second.executions.resumeAll({ ensemble: 'work' });
    expect((await handle.result()).status).toBe('completed');
    await second.close();
  });
});
