/** The engine suite's cases of retention: which executions are kept, and for how long. */

import { same } from '../storage-suite/context.ts';
import { echo, ensemble, flaky } from './steps.ts';
import { becomes, type Declare, resultOf } from './world/context.ts';

const DAY_MS = 86_400_000;

export function retentionCases({ it }: Declare): void {
  it('retention: executions that ended before the retention period are deleted with all of their records; unended ones are kept', async (world) => {
    const waits = {
      ...ensemble([flaky('w', 9, { maxAttempts: 9, backoff: 'fixed', delay: DAY_MS })]),
      name: 'waits',
    };
    const done = ensemble([echo('a', 1)]);
    const { subject } = await world.open({
      ensembles: [waits, done],
      retention: 2 * DAY_MS,
      engine: { longIntervals: true },
    });
    const waiting = await resultOf(world, 'start', subject.start('waits'));
    await becomes(world, waiting.id, 'waiting', 5000);
    const old = await resultOf(world, 'the run', subject.execute('e'));
    await world.advance(1.5 * DAY_MS);
    const young = await resultOf(world, 'the run', subject.execute('e'));
    same((await world.reader.executions.get(old.id))?.status, 'completed', 'before the retention period is over');
    await world.advance(0.6 * DAY_MS);
    await resultOf(world, 'a later run', subject.execute('e'));
    await world.advance(DAY_MS / 12);
    const kept = async (id: string) => (await world.reader.executions.get(id)) !== undefined;
    same([await kept(old.id), await kept(young.id), await kept(waiting.id)], [false, true, true], 'what is kept');
    same(await world.reader.executions.listSteps(old.id, { limit: 10 }), [], 'records of the deleted execution');
  });
}
