/** The engine suite's cases of definitions: a run goes on with the one it began with, where its scripts are. */

import { executionId, same } from '../storage-suite/context.ts';
import { allEnded, type Declare, given, labels } from './context.ts';
import { LEASE_MS } from './process.ts';
import { code, echo, ensemble } from './steps.ts';

const OLD = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 1000 } }), echo('c', 3)], { old: '${c.output}' });
const NEW = ensemble([echo('x', 1), echo('y', 2)], { new: '${y.output}' });
const OWN = ensemble([echo('a', 1), code('b', 'own'), echo('c', 3)], { c: '${c.output}' });

export function definitionCases({ it }: Declare): void {
  it('a definition that changed between crash and takeover: the run goes on with the old one, new runs take the new one', async (world) => {
    const first = await world.open({ ensembles: [OLD] });
    const { id } = await given(world, 'start', first.subject.start('e'));
    await world.advance(100);
    const { version } = (await world.reader.getExecution(id)) ?? {};
    first.kill();
    const second = await world.open({ ensembles: [NEW] });
    await second.subject.ready();
    const fresh = await given(world, 'a new run', second.subject.execute('e'));
    same(fresh.output, { new: 2 }, 'a new run');
    const record = await world.ended(id);
    same([record.status, record.output, record.version], ['completed', { old: 3 }, version], 'the old run');
    same([...labels(world, 2)].sort(), ['b@1', 'c@1', 'x@1', 'y@1'], 'what the second process ran');
  });

  it('an ensemble that is gone: what runs of it goes on', async (world) => {
    const first = await world.open({ ensembles: [OLD] });
    const { id } = await given(world, 'start', first.subject.start('e'));
    await world.advance(100);
    first.kill();
    const second = await world.open({ ensembles: [] });
    await second.subject.ready();
    same((await world.ended(id)).output, { old: 3 }, 'the run');
  });

  it('a process that lacks a script leaves the runs to others, warns once, and does its own work meanwhile', async (world) => {
    const own = { own: () => 'own' };
    const first = await world.open({ ensembles: [OWN], scripts: own, engine: { concurrency: 0 } });
    for (let i = 0; i < 5; i++) await given(world, 'start', first.subject.start('e'));
    first.kill();
    const other = { ...NEW, name: 'other' };
    const second = await world.open({ ensembles: [other] });
    await second.subject.ready();
    await world.advance(5 * LEASE_MS);
    same((await given(world, 'its own run', second.subject.execute('other'))).status, 'completed', 'its own run');
    same(labels(world, 2), ['x@1', 'y@1'], 'what it ran');
    const warnings = second.warnings.filter((text) => text.includes('`own`') || text.includes('script'));
    if (warnings.length !== 1) throw new Error(`it warned ${warnings.length} times: ${warnings.join(' | ')}`);
    await given(world, 'closing', second.subject.close());
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

  it('a run whose definition is not stored is ended, and harms no other', async (world) => {
    const lost = { id: executionId(1), ensemble: 'e', version: 'f'.repeat(32), seed: '0'.repeat(32), input: {} };
    const createdAt = world.clock.now();
    const start = { ...lost, trigger: { type: 'call' } as const, createdAt };
    const release = { status: 'queued' as const, dueAt: createdAt };
    await world.reader.commit('', [{ executionId: lost.id, epoch: 0, steps: [], start, release }]);
    const { subject } = await world.open({ ensembles: [NEW] });
    await subject.ready();
    const { status, error } = await world.ended(lost.id);
    same([status, error?.code], ['failed', 'INTERNAL'], 'its end');
    same((await given(world, 'another run', subject.execute('e'))).status, 'completed', 'another run');
  });
}
