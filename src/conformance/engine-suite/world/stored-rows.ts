/** The engine suite's cases of what an engine stores in the rows of a storage, and reads from them. */

import { NEVER } from '../../../engine/execution/stored-execution.ts';
import { executionId, same } from '../../storage-suite/context.ts';
import { code, echo, ensemble } from '../steps.ts';
import { becomes, type Declare, resultOf } from './context.ts';
import type { StorageWorld } from './storage-world.ts';

const THREE = ensemble([echo('a', 1), echo('b', 2), echo('c', 3)], { c: '${c.output}' });

export function storedRowCases({ it }: Declare<StorageWorld>): void {
  it('an execution that waits only for a signal is never due', async (world) => {
    const { subject } = await world.open({ ensembles: [ensemble([{ wait: 'approved' }])] });
    const { id } = await resultOf(world, 'start', subject.start('e'));
    await becomes(world, id, 'waiting', 5000);
    same((await world.reader.executions.poll('nobody', [])).nextDueAt, NEVER, 'the instant at which it is due');
  });

  it('an execution whose definition is not stored fails, and affects no other', async (world) => {
    const lost = { id: executionId(1), ensemble: 'e', version: 'f'.repeat(32), seed: '0'.repeat(32), input: {} };
    const createdAt = world.clock.now();
    const start = { ...lost, trigger: { type: 'call' } as const, createdAt };
    const release = { status: 'queued' as const, dueAt: createdAt };
    await world.reader.commit('', [{ executionId: lost.id, epoch: 0, steps: [], start, release }]);
    const { subject } = await world.open({ ensembles: [THREE] });
    await subject.ready();
    const { status, error } = await world.ended(lost.id);
    same([status, error?.code], ['failed', 'INTERNAL'], 'its end');
    same((await resultOf(world, 'another run', subject.execute('e'))).status, 'completed', 'another run');
  });

  it('an execution that kills every process that runs it fails after three deaths that no other execution can have caused', async (world) => {
    let current: { kill(): void } | undefined;
    const deadly = ensemble([echo('a', 1), code('b', 'deadly'), echo('c', 3)], { a: '${a.output}' });
    const options = { ensembles: [deadly, { ...THREE, name: 'other' }], scripts: { deadly: () => current?.kill() } };
    let process = await world.open(options);
    current = process;
    process.subject.start('e').catch(() => undefined);
    await world.until('the first death', () => !process.control.alive);
    const [{ id } = { id: '' }] = await world.reader.executions.list({ limit: 1 });
    for (let deaths = 1; deaths <= 2; deaths++) {
      process = await world.open(options);
      current = process;
      await process.subject.ready();
      const died = process;
      await world.until(`death ${deaths + 1}`, () => !died.control.alive, 10 * world.takeoverMs);
    }
    process = await world.open(options);
    await process.subject.ready();
    const { status, error, agents } = await world.ended(id, 10 * world.takeoverMs);
    same([status, error?.code, agents.map(({ name }) => name)], ['failed', 'INTERNAL', ['a']], 'its end');
    same(world.history.counts().get('b@1'), 3, 'how often it was run');
    const other = await resultOf(world, 'another run', process.subject.execute('other'));
    same(other.status, 'completed', 'another run in the process that ended it');
  });
}
