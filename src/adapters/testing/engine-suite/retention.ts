/** The engine suite's cases of what is kept, and for how long. */

import { same } from '../storage-suite/context.ts';
import { becomes, type Declare, given } from './context.ts';
import { echo, ensemble, flaky } from './steps.ts';

const DAY_MS = 86_400_000;

export function retentionCases({ it }: Declare): void {
  it('retention: what ended longer ago is deleted with all of its records; what has not ended is kept', async (world) => {
    const waits = {
      ...ensemble([flaky('w', 9, { maxAttempts: 9, backoff: 'fixed', delay: DAY_MS })]),
      name: 'waits',
    };
    const done = ensemble([echo('a', 1)]);
    const { subject } = await world.open({ ensembles: [waits, done], retention: 2 * DAY_MS, engine: LONG });
    const waiting = await given(world, 'start', subject.start('waits'));
    await becomes(world, waiting.id, 'waiting', 5000);
    const old = await given(world, 'the run', subject.execute('e'));
    await world.advance(1.5 * DAY_MS);
    const young = await given(world, 'the run', subject.execute('e'));
    same((await world.reader.getExecution(old.id))?.status, 'completed', 'before its time is over');
    await world.advance(0.6 * DAY_MS);
    await given(world, 'a later run', subject.execute('e'));
    await world.advance(DAY_MS / 12);
    const kept = async (id: string) => (await world.reader.getExecution(id)) !== undefined;
    same([await kept(old.id), await kept(young.id), await kept(waiting.id)], [false, true, true], 'what is kept');
    same(await world.reader.listSteps(old.id, { limit: 10 }), [], 'records of what was deleted');
  });
}

/** Beats far apart: days pass in this test. */
const LONG = { leaseMs: 3_600_000, renewMs: 1_200_000, sweepMs: 600_000 };
