/** The engine suite's cases of signals: which execution receives them, and what a cancellation and a retry do with them. */

import { same } from '../storage-suite/context.ts';
import { code, echo, ensemble } from './steps.ts';
import { atEachCall, becomes, type Declare, labels, refused, resultOf, watched } from './world/context.ts';
import type { World } from './world/world.ts';

const ASKS = ensemble([echo('a', 1), { wait: 'approved', name: 'approval' }, echo('b', '${approval.output}')], {
  b: '${b.output}',
});

async function waits(world: World, number = 1): Promise<{ readonly id: string; readonly result: Promise<unknown> }> {
  const { subject } = await world.open({ ensembles: [ASKS] });
  const handle = await resultOf(world, `start ${number}`, subject.start('e'));
  await becomes(world, handle.id, 'waiting', 5000);
  return { id: handle.id, result: handle.result() };
}

export function signalCases({ it, itWorlds }: Declare): void {
  it('signal: a waiting execution uses no process, and resumes when the signal arrives', async (world) => {
    const { subject } = await world.open({ ensembles: [ASKS] });
    const { id, ...handle } = await resultOf(world, 'start', subject.start('e'));
    await becomes(world, id, 'waiting', 5000);
    const { nextDueAt } = await resultOf(world, 'what is due', subject.runDue());
    same(nextDueAt, undefined, 'the instant at which something is due');
    await world.advance(60_000);
    const answer = await resultOf(world, 'the signal', subject.executions.signal(id, 'approved', { by: 'Ada' }));
    same(answer.id, id, 'the record that is answered');
    // On a store with several connections, the execution may resume before the record is read.
    same(
      ['waiting', 'running', 'completed'].includes(answer.status),
      true,
      `its status, ${answer.status}, is one of them`,
    );
    const { status, output } = await resultOf(world, 'the end', handle.result(), 1000);
    same([status, output], ['completed', { b: { by: 'Ada' } }], 'its end');
    same(labels(world), ['a@1', 'b@1'], 'what ran');
  });

  it('signal: sent through another process, even one that runs nothing', async (world) => {
    const { id } = await waits(world);
    const client = await world.open({ ensembles: [ASKS], engine: { concurrency: 0 } });
    await resultOf(world, 'the signal', client.subject.executions.signal(id, 'approved', 7));
    same((await world.ended(id, 2000)).output, { b: 7 }, 'its end');
  });

  it('signal: a running execution receives it, too', async (world) => {
    const definition = ensemble(
      [
        {
          parallel: [code('a', 'slow', { input: { ms: 60_000 } }), { wait: 'go', name: 'go' }],
          waitFor: 'first',
          name: 'race',
        },
      ],
      { race: '${race.output}' },
    );
    const { subject } = await world.open({ ensembles: [definition] });
    const handle = await resultOf(world, 'start', subject.start('e'));
    await world.advance(3000);
    same((await world.reader.executions.get(handle.id))?.status, 'running', 'status');
    await resultOf(world, 'the signal', subject.executions.signal(handle.id, 'go', 'now'));
    const { output } = await resultOf(world, 'the end', handle.result(), 2000);
    same(output, { race: { winner: 'go', output: 'now' } }, 'its end');
  });

  it('signal: a queued execution receives a signal that came before it began', async (world) => {
    const { subject } = await world.open({ ensembles: [ASKS], engine: { concurrency: 0 } });
    const { id } = await resultOf(world, 'start', subject.start('e'));
    await resultOf(world, 'the signal', subject.executions.signal(id, 'approved', 'early'));
    same((await world.reader.executions.get(id))?.status, 'queued', 'status');
    const second = await world.open({ ensembles: [ASKS] });
    await second.subject.ready();
    same((await world.ended(id, 5000)).output, { b: 'early' }, 'its end');
  });

  it('signal: one that comes after the timeout, while no process runs the execution, is left to the next wait', async (world) => {
    const definition = ensemble(
      [
        { wait: 'go', timeout: '5s', onTimeout: 'continue', name: 'first' },
        { wait: 'go', name: 'second' },
      ],
      { both: ['${first.output}', '${second.output}'] },
    );
    const first = await world.open({ ensembles: [definition] });
    const { id } = await resultOf(world, 'start', first.subject.start('e'));
    await becomes(world, id, 'waiting', 2000);
    first.kill();
    await world.advance(10_000);
    const late = { id: 'sig_1', executionId: id, name: 'go', payload: 'late', createdAt: world.clock.now() };
    same(await world.reader.signals.put(late), 'stored', 'the signal');
    const second = await world.open({ ensembles: [definition] });
    await second.subject.ready();
    same((await world.ended(id, 5000)).output, { both: [null, 'late'] }, 'its end');
  });

  it('signal: refused if the execution cannot receive it', async (world) => {
    const { id } = await waits(world);
    const { subject } = await world.open({ ensembles: [ASKS] });
    await refused(world, 'NOT_FOUND', subject.executions.signal('exec_0', 'approved'));
    await refused(world, 'INVALID_INPUT', subject.executions.signal(id, 'not a name'));
    await refused(world, 'INVALID_INPUT', subject.executions.signal(id, 'approved', { at: new Map() }));
    await resultOf(world, 'cancel', subject.executions.cancel(id));
    same((await world.ended(id, 2000)).status, 'cancelled', 'its end');
    await refused(world, 'CONFLICT', subject.executions.signal(id, 'approved'));
    same(labels(world), ['a@1'], 'what ran');
  });

  it('retry: the new execution receives the signals that were taken, and not the others', async (world) => {
    let isBroken = true;
    const script = () => {
      if (isBroken) throw new Error('broken');
      return 'mended';
    };
    const definition = ensemble(
      [
        { wait: 'go', name: 'first' },
        code('s', 'slow', { input: { ms: 2000 } }),
        code('a', 'breaks'),
        { wait: 'go', name: 'second' },
      ],
      {
        all: ['${first.output}', '${a.output}', '${second.output}'],
      },
    );
    const { subject } = await world.open({ ensembles: [definition], scripts: { breaks: script } });
    const { id } = await resultOf(world, 'start', subject.start('e'));
    for (const payload of ['one', 'two']) {
      await resultOf(world, payload, subject.executions.signal(id, 'go', payload));
    }
    same((await world.ended(id, 5000)).status, 'failed', 'the first run');
    isBroken = false;
    const again = await resultOf(world, 'retry', subject.executions.retry(id));
    await becomes(world, again.id, 'waiting', 5000);
    await resultOf(world, 'three', subject.executions.signal(again.id, 'go', 'three'));
    const { output } = await resultOf(world, 'the end', again.result(), 2000);
    same(output, { all: ['one', 'mended', 'three'] }, 'its output');
  });

  // Whichever call it coincides with, the signal is neither lost nor taken twice.
  itWorlds('signal: sent at every call of the execution that receives it', async (inWorld) => {
    await atEachCall('a signal', (at, when) =>
      inWorld(async (world) => {
        const send = async () => {
          const [found] = await world.reader.executions.list({ limit: 1 });
          if (!found) return;
          const about = { executionId: found.id, name: 'approved', createdAt: world.clock.now() };
          await world.reader.signals.put({ ...about, id: 'sig_1', payload: 'crossed' });
        };
        const fault = { method: 'any', at, when, then: send };
        const { subject, control } = await world.open({ ensembles: [ASKS], fault });
        const run = watched(subject.start('e'));
        await world.until('the start', () => run.state === 'fulfilled');
        await world.advance(3000);
        if (!control.triggered) return 'not reached';
        const { id = '' } = run.value ?? {};
        const sent = await world.reader.signals.list(id, { name: 'approved', after: 0, limit: 1 });
        if (sent.length === 0) return 'triggered';
        same((await world.ended(id, 3000)).output, { b: 'crossed' }, 'its end');
        same(labels(world), ['a@1', 'b@1'], 'what ran');
        return 'triggered';
      }),
    );
  });
}
