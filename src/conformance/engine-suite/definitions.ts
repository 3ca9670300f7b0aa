/** The engine suite's cases of definitions: an execution continues with the definition it began with, in a process that has its scripts. */

import { same } from '../storage-suite/context.ts';
import { code, echo, ensemble } from './steps.ts';
import { allEnded, type Declare, labels, resultOf } from './world/context.ts';

const OLD = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 1000 } }), echo('c', 3)], { old: '${c.output}' });
const NEW = ensemble([echo('x', 1), echo('y', 2)], { new: '${y.output}' });
const OWN = ensemble([echo('a', 1), code('b', 'own'), echo('c', 3)], { c: '${c.output}' });

export function definitionCases({ it }: Declare): void {
  it('a definition that changes after a crash: the old execution continues with the old definition, new executions use the new one', async (world) => {
    const first = await world.open({ ensembles: [OLD] });
    const { id } = await resultOf(world, 'start', first.subject.start('e'));
    await world.advance(100);
    const { version } = (await world.reader.executions.get(id)) ?? {};
    first.kill();
    const second = await world.open({ ensembles: [NEW] });
    await second.subject.ready();
    const fresh = await resultOf(world, 'a new run', second.subject.execute('e'));
    same(fresh.output, { new: 2 }, 'a new run');
    const record = await world.ended(id);
    same([record.status, record.output, record.version], ['completed', { old: 3 }, version], 'the old run');
    same([...labels(world, 2)].sort(), ['b@1', 'c@1', 'x@1', 'y@1'], 'what the second process ran');
  });

  it('an ensemble that was removed: its executions continue', async (world) => {
    const first = await world.open({ ensembles: [OLD] });
    const { id } = await resultOf(world, 'start', first.subject.start('e'));
    await world.advance(100);
    first.kill();
    const second = await world.open({ ensembles: [] });
    await second.subject.ready();
    same((await world.ended(id)).output, { old: 3 }, 'the run');
  });

  it('a process that lacks a script leaves the executions to others, warns once, and runs its own', async (world) => {
    const own = { own: () => 'own' };
    const first = await world.open({ ensembles: [OWN], scripts: own, engine: { concurrency: 0 } });
    for (let i = 0; i < 5; i++) await resultOf(world, 'start', first.subject.start('e'));
    first.kill();
    const other = { ...NEW, name: 'other' };
    const second = await world.open({ ensembles: [other] });
    await second.subject.ready();
    await world.advance(3 * world.takeoverMs);
    same((await resultOf(world, 'its own run', second.subject.execute('other'))).status, 'completed', 'its own run');
    same(labels(world, 2), ['x@1', 'y@1'], 'what it ran');
    const warnings = second.warnings.filter((text) => text.includes('`own`') || text.includes('script'));
    if (warnings.length !== 1) throw new Error(`it warned ${warnings.length} times: ${warnings.join(' | ')}`);
    await resultOf(world, 'closing', second.subject.close());
    const third = await world.open({ ensembles: [OWN], scripts: own });
    await third.subject.ready();
    const ended = await allEnded(world, 6, 60_000);
    same(
      ended.map(({ status }) => status),
      Array(6).fill('completed'),
      'how they ended',
    );
    const ran = labels(world, 3);
    same([ran.length, ran.filter((label) => label === 'b@1').length], [15, 5], 'what the third process ran');
  });
}
