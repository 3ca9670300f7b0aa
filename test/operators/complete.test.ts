/** `executions.complete`: a step gets its result by hand. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { boom, code, ok, scene } from '../engine/scene.ts';
import { newFile } from '../storage/sqlite-files.ts';

const HOUR = 3_600_000;
const retry = { maxAttempts: 9, backoff: 'fixed', delay: '1h' };

describe('executions.complete', () => {
  it('an agent between two attempts gets the result, the flow continues with it, and the record says who and why', async () => {
    const { orchestrator, start, clock, ran } = scene({
      flow: [boom('charge', { retry }), code('next', 'echo', { input: { paid: '${charge.output}' } })],
      outputs: { next: '${next.output}' },
    });
    const handle = await start();
    await clock.advance(1);
    const record = await orchestrator.executions.complete(
      handle.id,
      'charge',
      { id: 7 },
      { actor: 'Ada', reason: 'paid by hand' },
    );
    expect(record.id).toBe(handle.id);
    await clock.advance(1);
    const ended = await handle.result();
    expect(ended).toMatchObject({
      status: 'completed',
      output: { next: { paid: { id: 7 } } },
      completions: [{ key: 'flow[0]', by: 'Ada', reason: 'paid by hand' }],
    });
    expect(ran).toEqual(['charge', 'next']);
    expect(ended.agents[0]).toMatchObject({ key: 'flow[0]', status: 'completed', output: { id: 7 }, attempts: 1 });
  });

  it('of one that failed, a retry begins in which the step has the result', async () => {
    const { orchestrator, run, ran } = scene({ flow: [ok('a'), boom('b'), ok('c')], outputs: { b: '${b.output}' } });
    const failed = await run();
    ran.length = 0;
    const after = await orchestrator.executions.complete(failed.id, 'b', 'by hand', { reason: 'the bank was down' });
    expect(after).toMatchObject({
      retryOf: failed.id,
      trigger: { retry: { completed: 'flow[1]', reason: 'the bank was down' } },
    });
    const ended = await orchestrator.executions.get(after.id);
    expect([ended.status, ended.output, ran]).toEqual(['completed', { b: 'by hand' }, ['c']]);
    await expect(orchestrator.executions.complete(failed.id, 'b', 1)).rejects.toMatchObject({ code: 'CONFLICT' });
  });

  it('a step that a paused execution has not come to does not run', async () => {
    const { orchestrator, start, clock, ran } = scene([ok('a'), { wait: 'go' }, ok('b'), ok('c')]);
    const handle = await start();
    await clock.advance(1);
    await orchestrator.executions.pause(handle.id);
    const { status } = await orchestrator.executions.complete(handle.id, 'b', null);
    expect(status).toBe('paused');
    await orchestrator.executions.resume(handle.id);
    await orchestrator.executions.signal(handle.id, 'go');
    await clock.advance(1);
    expect([(await handle.result()).status, ran]).toEqual(['completed', ['a', 'c']]);
  });

  it.each([
    ['memory', () => memoryStorage()],
    ['SQLite', () => sqliteStorage({ path: newFile() })],
  ])('a step of one that has not begun does not run, on %s', async (_name, create) => {
    const { orchestrator, start, clock, ran } = scene([ok('a'), ok('b')], { storage: create() });
    await orchestrator.executions.pauseAll({ all: true });
    const handle = await start();
    await orchestrator.executions.complete(handle.id, 'a', 'by hand');
    await orchestrator.executions.resumeAll({ all: true });
    await clock.advance(1);
    const ended = await handle.result();
    expect([ended.agents.map(({ output }) => output), ran]).toEqual([['by hand', 'b'], ['b']]);
  });

  it('an output that is missing is refused, and so is one of an execution that was retried meanwhile', async () => {
    const { orchestrator, run } = scene([boom('a')]);
    const { id } = await run();
    await expect(orchestrator.executions.complete(id, 'a', undefined)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
    await expect(
      orchestrator.jobs.create({ action: 'complete', key: 'a', filter: { ensemble: 'e' } }),
    ).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
    const [retried, completed] = await Promise.allSettled([
      orchestrator.executions.retry(id),
      orchestrator.executions.complete(id, 'a', 1),
    ]);
    const isCompleted = completed.status === 'fulfilled';
    expect([retried.status, completed.status]).toContain('fulfilled');
    if (!isCompleted) expect(completed.reason).toMatchObject({ code: 'CONFLICT' });
    else expect((await orchestrator.executions.get(completed.value.id)).agents[0]?.output).toBe(1);
  });

  it('a child execution is cancelled, and its parent continues with the result', async () => {
    const { orchestrator, start, clock } = scene(
      { flow: [{ ensemble: 'child', name: 'sub' }], outputs: { sub: '${sub.output}' } },
      { ensembles: [{ name: 'child', flow: [{ sleep: '30d' }] }] as never },
    );
    const handle = await start();
    await clock.advance(1);
    const [wait] = (await orchestrator.executions.get(handle.id)).waitingFor;
    await orchestrator.executions.complete(handle.id, 'sub', { done: true });
    await clock.advance(1);
    expect((await handle.result()).output).toEqual({ sub: { done: true } });
    expect((await orchestrator.executions.get(wait?.executionId as string)).status).toBe('cancelled');
  });

  it('refuses a step with a result, a wait, an output that does not fit, and one that a process works on', async () => {
    let release = () => {};
    const { orchestrator, start, clock } = scene(
      [
        ok('a'),
        { wait: 'go' },
        code('slow', 'slow', { output: { type: 'object', required: ['id'], properties: { id: { type: 'integer' } } } }),
      ],
      { scripts: { slow: () => new Promise((resolve) => (release = () => resolve({ id: 1 }))) } },
    );
    const handle = await start();
    await clock.advance(1);
    const refused = (key: string, output: unknown) =>
      orchestrator.executions.complete(handle.id, key, output).then(
        () => 'done',
        (error) => `${error.code}: ${error.message}`,
      );
    expect(await refused('a', 1)).toBe(`CONFLICT: step flow[0] of execution ${handle.id} is completed already`);
    expect(await refused('go', 1)).toContain("executions.signal(id, 'go', payload)");
    expect(await refused('slow', { id: 'x' })).toMatch(
      /^INVALID_INPUT: the output does not fit the `output` of agent `slow`/,
    );
    expect(await refused('nothing', 1)).toContain('INVALID_REQUEST: `key`: there is no step `nothing`');
    await orchestrator.executions.signal(handle.id, 'go');
    await clock.advance(1);
    expect(await refused('slow', { id: 2 })).toContain('pause it');
    release();
    expect((await handle.result()).agents.at(-1)?.output).toEqual({ id: 1 });
    await expect(orchestrator.executions.complete(handle.id, 'slow', { id: 3 })).rejects.toMatchObject({
      code: 'CONFLICT',
    });
  });

  it('a job gives the step of each execution its result', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [{ name: 'e', flow: [boom('charge', { retry })] }] as never,
      scripts: {
        boom: () => {
          throw new Error('down');
        },
      },
    });
    const ids = await Promise.all([1, 2, 3].map(async () => (await orchestrator.start('e', {})).id));
    await orchestrator.clock.advance(1);
    const { id } = await orchestrator.jobs.create({
      action: 'complete',
      filter: { ensemble: 'e' },
      key: 'charge',
      output: 'ok',
    });
    await orchestrator.clock.advance(HOUR / 2);
    expect(await orchestrator.jobs.get(id)).toMatchObject({ status: 'completed', changed: 3, failed: 0 });
    for (const one of ids) expect((await orchestrator.executions.get(one)).status).toBe('completed');
  });
});
