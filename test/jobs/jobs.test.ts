/** Jobs: they cancel, retry or delete the executions of a filter, in steps that any process continues. */

import { afterEach, describe, expect, it } from 'vitest';
import { hostTurn, manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { createOrchestrator, type Job, type JobOptions, type OrchestratorOptions } from '../../src/index.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';

const SECOND = 1_000;
const ensembles = [
  { name: 'sleeper', flow: [{ sleep: '30d' }] },
  { name: 'pay', flow: [{ agent: 'charge', operation: 'code', config: { script: 'charge' } }] },
];

const open: { close(options: { grace: number }): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close({ grace: 0 });
});

/** @param about - `isDown`: whether `charge` fails */
function setUp(about: { isDown?: boolean } & Partial<OrchestratorOptions> = {}) {
  const { isDown = false, clock: given, ...options } = about;
  const peer = { isDown };
  const clock = (given as ReturnType<typeof manualClock>) ?? manualClock();
  const charge = () => {
    if (peer.isDown) throw new Error('the bank is down');
    return 'paid';
  };
  const orchestrator = createOrchestrator({ ensembles, scripts: { charge }, clock, logger: false, ...options });
  open.push(orchestrator);
  const ended = async (id: string, withinMs = 10 * SECOND): Promise<Job> => {
    for (let ms = 0; ms <= withinMs; ms += 100) {
      const job = await orchestrator.jobs.get(id);
      if (job.status !== 'running') return job;
      await clock.advance(100);
    }
    return orchestrator.jobs.get(id);
  };
  const run = async (options: JobOptions) => ended((await orchestrator.jobs.create(options)).id);
  return { orchestrator, clock, peer, ended, run };
}

describe('what a job does', () => {
  it('cancel: ends the active executions of its filter, and no others', async () => {
    const { orchestrator, run } = setUp();
    const start = (tag: string) => orchestrator.start('sleeper', {}, { tags: [tag] });
    const batch = [await start('batch=1'), await start('batch=1')];
    const other = await start('batch=2');
    await batch[0]?.cancel();
    await batch[0]?.result();
    const job = await run({ action: 'cancel', filter: { tag: 'batch=1' } });
    expect(job).toMatchObject({ status: 'completed', seen: 2, changed: 1, unchanged: 1, failed: 0, failures: [] });
    expect(job.finishedAt).toBeGreaterThanOrEqual(job.createdAt);
    for (const { id } of batch) expect((await orchestrator.executions.status(id)).status).toBe('cancelled');
    expect((await orchestrator.executions.status(other.id)).status).toBe('waiting');
  });

  it('retry: retries what ended badly, once for each chain, and nothing that it has started itself', async () => {
    const { orchestrator, peer, run } = setUp({ isDown: true });
    const ids: string[] = [];
    for (let nr = 0; nr < 5; nr++) ids.push((await orchestrator.execute('pay')).id);
    // The first one has a failed retry of its own: the retry is retried.
    await (await orchestrator.executions.retry(ids[0] as string)).result();
    peer.isDown = false;
    await orchestrator.execute('pay');
    expect(await run({ action: 'retry', filter: { ensemble: 'pay' } })).toMatchObject({
      ...{ status: 'completed', seen: 7, changed: 5, unchanged: 2, failed: 0 },
    });
    const { executions } = await orchestrator.executions.list({ ensemble: 'pay', status: 'completed' });
    expect(executions).toHaveLength(6);
    const again = await run({ action: 'retry', filter: { status: 'failed' } });
    expect(again).toMatchObject({ seen: 6, changed: 0, unchanged: 6 });
    expect(await run({ action: 'retry', filter: { errorCode: 'AGENT_FAILED' } })).toMatchObject({ seen: 6 });
    expect(await run({ action: 'retry', filter: { errorCode: 'TIMEOUT' } })).toMatchObject({ seen: 0 });
    expect(await run({ action: 'retry', filter: { unresolved: true } })).toMatchObject({ seen: 0 });
  });

  it('retry: charges who created the job, and ends at the end of the quota', async () => {
    const { orchestrator, peer, run } = setUp({ isDown: true });
    for (let nr = 0; nr < 3; nr++) await orchestrator.execute('pay');
    peer.isDown = false;
    const plan = { requests: 10, window: 60, executions: 2, concurrent: 5 };
    const token = await orchestrator.tokens.create({ name: 'ops', scopes: ['admin'], plan });
    const principal = await orchestrator.tokens.verify(token.token);
    const job = await run({ action: 'retry', filter: { status: 'failed' }, principal });
    expect(job).toMatchObject({ status: 'failed', changed: 2, by: { tokenId: token.id, name: 'ops' } });
    expect(job.error?.code).toBe('QUOTA_EXCEEDED');
    expect(JSON.stringify(job)).not.toContain('scopes');
  });

  it('delete: deletes the records that have ended', async () => {
    const { orchestrator, run } = setUp();
    const { id } = await orchestrator.execute('pay');
    const active = await orchestrator.start('sleeper');
    const until = new Date(Date.now() + 1e10);
    expect(await run({ action: 'delete', filter: { until } })).toMatchObject({ seen: 2, changed: 1, unchanged: 1 });
    await expect(orchestrator.executions.get(id)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect((await orchestrator.executions.status(active.id)).status).toBe('waiting');
  });

  it('executions that are accepted after the job was created are left alone', async () => {
    const { orchestrator, clock, ended } = setUp();
    for (let nr = 0; nr < 250; nr++) await orchestrator.start('sleeper');
    const { id } = await orchestrator.jobs.create({ action: 'cancel', filter: { ensemble: 'sleeper' } });
    await clock.advance(1);
    const late = await orchestrator.start('sleeper');
    expect(await ended(id)).toMatchObject({ status: 'completed', changed: 250 });
    expect((await orchestrator.executions.status(late.id)).status).toBe('waiting');
  });

  it('a retry that finds the queue full waits, and every execution is retried in the end', async () => {
    const { embeddedEngine } = await import('../../src/index.ts');
    const engine = embeddedEngine({ concurrency: 1, queueLimit: 2 });
    const { orchestrator, peer, run } = setUp({ isDown: true, engine });
    for (let nr = 0; nr < 20; nr++) await orchestrator.execute('pay');
    peer.isDown = false;
    expect(await run({ action: 'retry', filter: { status: 'failed' } })).toMatchObject({ changed: 20, failed: 0 });
  });
});

describe('the life of a job', () => {
  it('it ends when the token that created it is revoked', async () => {
    const { orchestrator, ended } = setUp();
    for (let nr = 0; nr < 3; nr++) await orchestrator.start('sleeper');
    const token = await orchestrator.tokens.create({ name: 'ops', scopes: ['admin'] });
    const principal = await orchestrator.tokens.verify(token.token);
    await orchestrator.tokens.revoke(token.id);
    const filter = { ensemble: 'sleeper' };
    const { id } = await orchestrator.jobs.create({ action: 'cancel', filter, principal });
    expect(await ended(id)).toMatchObject({ status: 'failed', seen: 0, error: { code: 'UNAUTHORIZED' } });
    expect((await orchestrator.executions.list({ status: 'waiting' })).executions).toHaveLength(3);
  });

  it('of many jobs, those that cancel are worked on first', async () => {
    const inner = memoryStorage();
    const ended: string[] = [];
    const storage = changeStorage(inner, {
      documents: {
        write: (kind, name, change) => {
          if (change.document?.value.status === 'completed' && !ended.includes(name)) ended.push(name);
          return inner.documents.write(kind, name, change);
        },
      },
    });
    const { orchestrator, clock } = setUp({ storage });
    const retries = Array.from({ length: 5 }, () => ({ action: 'retry', filter: { ensemble: 'pay' } }) as const);
    const jobs: JobOptions[] = [...retries, { action: 'cancel', filter: { ensemble: 'sleeper' } }];
    const created = await Promise.all(jobs.map((job) => orchestrator.jobs.create(job)));
    const { id } = created.at(-1) as Job;
    await clock.advance(SECOND);
    expect([ended.indexOf(id), ended.length]).toEqual([0, 6]);
  });

  it('a job can be stopped; what it has done stays', async () => {
    const { orchestrator, run, ended } = setUp();
    for (let nr = 0; nr < 5; nr++) await orchestrator.start('sleeper');
    const { id } = await orchestrator.jobs.create({ action: 'cancel', filter: { ensemble: 'sleeper' } });
    expect(await orchestrator.jobs.stop(id)).toMatchObject({ status: 'stopped' });
    expect(await ended(id)).toMatchObject({ status: 'stopped' });
    const done = await run({ action: 'cancel', filter: { ensemble: 'sleeper' } });
    expect(await orchestrator.jobs.stop(done.id)).toEqual(done);
    expect((await orchestrator.jobs.list()).map((one) => one.id)).toEqual([done.id, id]);
    await expect(orchestrator.jobs.stop('job_1')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('another process continues the job of one that died, and each execution is counted', async () => {
    const clock = manualClock();
    const inner = memoryStorage({ shared: true });
    let calls = 0;
    const hanging = changeStorage(inner, {
      executions: {
        requestCancel: (...given) => (++calls > 120 ? new Promise(() => {}) : inner.executions.requestCancel(...given)),
      },
    });
    const first = setUp({ storage: hanging, clock });
    for (let nr = 0; nr < 300; nr++) await first.orchestrator.start('sleeper');
    const { id } = await first.orchestrator.jobs.create({ action: 'cancel', filter: { ensemble: 'sleeper' } });
    for (let turn = 0; turn < 20; turn++) await hostTurn();
    expect((await first.orchestrator.jobs.get(id)).status).toBe('running');
    const second = setUp({ storage: inner, clock });
    await second.orchestrator.ready();
    const job = await second.ended(id, 60 * SECOND);
    expect(job).toMatchObject({ status: 'completed', seen: 300, failed: 0 });
    const { executions } = await second.orchestrator.executions.list({ status: 'cancelled', limit: 250 });
    expect(executions).toHaveLength(250);
    expect((await second.orchestrator.executions.list({ status: 'waiting' })).executions).toEqual([]);
  });

  it('a process that dies after a deletion has counted it', async () => {
    const clock = manualClock();
    const inner = memoryStorage({ shared: true });
    let calls = 0;
    const dying = changeStorage(inner, {
      executions: {
        delete(ids) {
          const deleted = inner.executions.delete(ids);
          return ++calls === 2 ? new Promise(() => {}) : deleted;
        },
      },
    });
    const first = setUp({ storage: dying, clock });
    for (let nr = 0; nr < 60; nr++) await first.orchestrator.execute('pay');
    const waiting = await first.orchestrator.start('sleeper');
    const { id } = await first.orchestrator.jobs.create({ action: 'delete', filter: { until: clock.now() + 1 } });
    for (let turn = 0; turn < 40; turn++) await hostTurn();
    expect(calls).toBe(2);
    const second = setUp({ storage: inner, clock });
    await second.orchestrator.ready();
    expect(await second.ended(id, 60 * SECOND)).toMatchObject({
      ...{ status: 'completed', seen: 61, changed: 60, unchanged: 1, failed: 0 },
    });
    const { executions } = await second.orchestrator.executions.list({});
    expect(executions.map((one) => one.id)).toEqual([waiting.id]);
  });

  it('a job on a storage that never waits gives the event loop a turn after at most ten cancellations', async () => {
    const clock = manualClock();
    const inner = memoryStorage();
    let [cancelled, most] = [0, 0];
    const turn = () => {
      most = Math.max(most, cancelled);
      cancelled = 0;
      return hostTurn();
    };
    const storage = changeStorage(inner, {
      executions: {
        requestCancel(...given) {
          cancelled += 1;
          return inner.executions.requestCancel(...given);
        },
      },
    });
    const { orchestrator, run } = setUp({ storage, clock: Object.assign(clock, { turn }) });
    for (let nr = 0; nr < 150; nr++) await orchestrator.start('sleeper');
    expect(await run({ action: 'cancel', filter: { ensemble: 'sleeper' } })).toMatchObject({ changed: 150 });
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(10);
  });

  it('a look at what is running reads no job that has ended', async () => {
    const inner = memoryStorage();
    const listed: string[] = [];
    const storage = changeStorage(inner, {
      documents: {
        list(kind, page) {
          if (kind.endsWith('job')) listed.push(kind);
          return inner.documents.list(kind, page);
        },
      },
    });
    const { run } = setUp({ storage });
    for (let nr = 0; nr < 3; nr++) await run({ action: 'cancel', filter: { ensemble: 'sleeper' } });
    expect(new Set(listed)).toEqual(new Set(['running-job']));
  });

  it('a job is forgotten a week after its last step', async () => {
    const { orchestrator, clock, run } = setUp();
    const { id } = await run({ action: 'cancel', filter: { ensemble: 'sleeper' } });
    await clock.advance(8 * 86_400 * SECOND);
    await expect(orchestrator.jobs.get(id)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});

describe('bad input', () => {
  it.each([
    [{ action: 'freeze', filter: { tag: 'a' } }, 'INVALID_REQUEST', '`complete` or `delete`'],
    [{ action: 'cancel', filter: {} }, 'INVALID_REQUEST', '`filter` must have at least one filter'],
    [{ action: 'cancel', filter: { status: 'paid' } }, 'INVALID_REQUEST', '`status` must be one of'],
    [{ action: 'cancel', filter: { status: 'failed' } }, 'INVALID_REQUEST', '`cancel` is for active executions'],
    [
      { action: 'retry', filter: { status: 'completed' } },
      'INVALID_REQUEST',
      '`retry` is for executions that ended badly',
    ],
    [{ action: 'delete', filter: { since: 2, until: 1 } }, 'INVALID_REQUEST', 'must be before'],
  ])('%j is refused with %s', async (options, code, message) => {
    const { orchestrator } = setUp();
    const refused = orchestrator.jobs.create(options as never);
    await expect(refused).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
    expect(await orchestrator.jobs.list()).toEqual([]);
  });

  it('an unknown filter is a TypeError with the nearest one', async () => {
    const { orchestrator } = setUp();
    const refused = orchestrator.jobs.create({ action: 'cancel', filter: { ensembel: 'a' } } as never);
    await expect(refused).rejects.toThrow('`ensembel` is not an option of this version; did you mean `ensemble`?');
  });
});
