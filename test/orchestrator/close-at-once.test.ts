/** `close({ grace: 0 })`: it waits for no step, on a clock that nobody advances. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { code, deferred, ok, scene, turns } from '../engine/scene.ts';
import { laterStorage } from '../storage/later-storage.ts';

const hang = () => new Promise(() => {});

describe('close({ grace: 0 })', () => {
  it('in a memory storage, cancels an execution at once while its step hangs, and aborts the signal of the step', async () => {
    let signal: AbortSignal | undefined;
    const { orchestrator, start, clock } = scene(
      { flow: [ok('first'), code('slow', 'hang')], outputs: { first: '${first.output}', slow: '${slow.output}' } },
      {
        scripts: {
          hang(context) {
            signal = context.signal;
            return hang();
          },
        },
      },
    );
    const handle = await start();
    await turns(5);
    await orchestrator.close({ grace: 0 });
    expect([clock.monotonic(), clock.nextIn, signal?.aborted]).toEqual([0, undefined, true]);
    expect(await handle.result()).toMatchObject({
      status: 'cancelled',
      partialOutput: { first: 'first', slow: null },
      error: { code: 'EXECUTION_CANCELLED' },
      agents: [{ name: 'first' }],
    });
  });

  it('drops the later result of the step, and runs no `finally`', async () => {
    const gate = deferred();
    const { orchestrator, start, ran } = scene(
      [{ try: [code('slow', 'gate'), ok('after')], finally: [ok('cleanup')] }, ok('last')],
      { scripts: { gate: () => gate.promise } },
    );
    const handle = await start();
    await turns(5);
    await orchestrator.close({ grace: 0 });
    gate.resolve('late');
    await turns(20);
    expect((await handle.result()).agents).toEqual([]);
    expect(ran).toEqual(['slow']);
  });

  it('stops the branches of a block too', async () => {
    const { orchestrator, start } = scene(
      [{ parallel: [code('one', 'hang'), code('two', 'hang')] }, { foreach: [1, 2], steps: [ok('later')] }],
      { scripts: { hang } },
    );
    const handle = await start();
    await turns(5);
    await orchestrator.close({ grace: 0 });
    expect((await handle.result()).status).toBe('cancelled');
  });

  it('in a shared storage, releases the execution: another process continues at the step that was running', async () => {
    const storage = memoryStorage({ shared: true });
    const shared = { ...storage, close() {} };
    const flow = [ok('first'), code('slow', 'hang')];
    const first = scene(flow, { storage: shared, scripts: { hang } });
    const { id } = await first.start();
    await turns(5);
    await first.orchestrator.close({ grace: 0 });
    expect(await storage.executions.get(id)).toMatchObject({ status: 'running', agents: [{ name: 'first' }] });
    const second = scene(flow, { storage: shared, clock: first.clock, scripts: { hang: () => 'done' } });
    await second.orchestrator.ready();
    await first.clock.advance(1000);
    expect(await storage.executions.get(id)).toMatchObject({ status: 'completed' });
    expect(second.ran).toEqual(['slow']);
  });

  it('stops an execution that is being stored at that moment', async () => {
    const { orchestrator, start } = scene([code('slow', 'hang')], {
      storage: laterStorage(memoryStorage()),
      scripts: { hang },
    });
    const started = start();
    const closing = orchestrator.close({ grace: 0 });
    expect((await (await started).result()).status).toBe('cancelled');
    await closing;
  });
});
