/** The engine suite's cases of a worker that is paused beyond its lease: it continues nothing that another worker has claimed. */

import { same } from '../storage-suite/context.ts';
import { code, echo, ensemble } from './steps.ts';
import { atEachCall, type Declare, labels, pauseAtCommit, resultOf, watched } from './world/context.ts';
import { LEASE_MS, type StorageWorld } from './world/storage-world.ts';
import type { World } from './world/world.ts';

const FLOW = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 100 } }), echo('c', 3), echo('d', 4)]);
const CLIENT = { ensembles: [FLOW], engine: { concurrency: 0 } };

export function pausedProcessCases({ it, itWorlds }: Declare<StorageWorld>): void {
  it('a worker paused during a claim beyond its lease begins nothing of what it claimed', async (world) => {
    const client = await world.open(CLIENT);
    const { id } = await resultOf(world, 'start', client.subject.start('e'));
    await pauseAt(world, 'executions.claim', id);
  });

  it('a worker paused beyond its lease while it reads an execution begins nothing of it', async (world) => {
    const first = await world.open({ ensembles: [FLOW] });
    watched(first.subject.execute('e'));
    await world.until('b to begin', () => labels(world).includes('b@1'));
    const [{ id } = { id: '' }] = await world.reader.executions.list({ limit: 1 });
    first.kill();
    await pauseAt(world, 'executions.listSteps', id);
  });

  itWorlds('a worker paused beyond its lease at any commit begins no further step', (inWorld) =>
    atEachCall('the worker is paused at a commit', (at, when) =>
      inWorld(async (world) => {
        const first = await pauseAtCommit(world, FLOW, at, when);
        if (!first) return 'not reached';
        const [left] = await world.reader.executions.list({ limit: 2 });
        if (left) await resumeLate(world, 1, left.id, first.paused.control);
        return 'triggered';
      }),
    ),
  );
}

/** A second process is paused after a storage call; a third process completes the execution. */
async function pauseAt(world: World, method: 'executions.claim' | 'executions.listSteps', id: string): Promise<void> {
  const fault = { method, at: 1, when: 'after', then: 'pause' } as const;
  const second = await world.open({ ensembles: [FLOW], fault });
  // It may wait for a call that the pause holds.
  watched(second.subject.ready());
  await world.until('the pause', () => second.control.triggered, 4 * LEASE_MS);
  await resumeLate(world, 2, id, second.control);
}

async function resumeLate(world: World, process: number, id: string, control: { resume(): void }): Promise<void> {
  const other = await world.open({ ensembles: [FLOW] });
  await other.subject.ready();
  await world.ended(id, 4 * LEASE_MS);
  const before = labels(world, process);
  control.resume();
  await world.advance(2 * LEASE_MS);
  same(labels(world, process), before, 'what it began after the pause');
}
