/** The engine suite's cases of deadlines: time counts while no process runs the execution. */

import { same } from '../storage-suite/context.ts';
import { code, echo, ensemble, flaky } from './steps.ts';
import { allEnded, becomes, type Declare, labels, resultOf } from './world/context.ts';

const timeout = { timeout: 20_000 };

export function deadlineCases({ it }: Declare): void {
  it('a deadline that passes while the process is dead: the outputs contain what was stored before', async (world) => {
    const flow = [echo('a', 7), code('b', 'slow', { input: { ms: 10_000 } }), echo('c', 3)];
    const late = ensemble(flow, { a: '${a.output}', b: '${b.executed}' }, timeout);
    const first = await world.open({ ensembles: [late] });
    const { id } = await resultOf(world, 'start', first.subject.start('e'));
    await world.advance(5000);
    first.kill();
    await world.advance(60_000);
    const second = await world.open({ ensembles: [late] });
    await second.subject.ready();
    const { status, partialOutput: output, error, agents } = await world.ended(id);
    same([status, error?.code, output], ['timed_out', 'TIMEOUT', { a: 7, b: false }], 'its end');
    same(
      agents.map(({ name }) => name),
      ['a'],
      'its agents',
    );
    same(labels(world, 2), [], 'what the second process ran');
  });

  it('a deadline that passes while the execution waits and no process runs', async (world) => {
    const flow = [echo('a', 7), flaky('b', 2, { maxAttempts: 2, backoff: 'fixed', delay: 600_000 })];
    const waits = ensemble(flow, { a: '${a.output}' }, timeout);
    const first = await world.open({ ensembles: [waits] });
    const { id } = await resultOf(world, 'start', first.subject.start('e'));
    await becomes(world, id, 'waiting', 5000);
    first.kill();
    await world.advance(700_000);
    const second = await world.open({ ensembles: [waits] });
    await second.subject.ready();
    const { status, partialOutput: output } = await world.ended(id);
    same([status, output], ['timed_out', { a: 7 }], 'its end');
    same(labels(world, 2), [], 'what the second process ran');
  });

  it('a waiting execution times out at its deadline, not when its wait ends', async (world) => {
    const flow = [flaky('b', 2, { maxAttempts: 2, backoff: 'fixed', delay: 600_000 })];
    const { subject } = await world.open({ ensembles: [ensemble(flow, {}, timeout)] });
    const { status, duration } = await resultOf(world, 'the run', subject.execute('e'));
    same([status, duration], ['timed_out', 20_000], 'its end');
  });

  it('an execution whose deadline passes in the queue runs no step', async (world) => {
    const slow = { ...ensemble([code('long', 'slow', { input: { ms: 30_000 } })]), name: 'slow' };
    const options = { ensembles: [slow, ensemble([echo('a', 1)], {}, timeout)], engine: { concurrency: 1 } };
    const { subject } = await world.open(options);
    await resultOf(world, 'start', subject.start('slow'));
    const { id } = await resultOf(world, 'start', subject.start('e'));
    await allEnded(world, 2);
    same((await world.reader.executions.get(id))?.status, 'timed_out', 'its end');
    same(labels(world), ['long@1'], 'what ran');
  });
}
