/** The engine suite's cases of an owner that stands still past its lease: it goes on with nothing that another has taken over. */

import { same } from '../storage-suite/context.ts';
import { atEachCall, type Declare, given, labels, watched } from './context.ts';
import { LEASE_MS } from './process.ts';
import { code, echo, ensemble } from './steps.ts';
import type { World } from './world.ts';

const FLOW = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 100 } }), echo('c', 3), echo('d', 4)]);
const GUEST = { ensembles: [FLOW], engine: { concurrency: 0 } };

export function standstillCases({ it, itWorlds }: Declare): void {
  it('T11: over the answer of a claim: it begins nothing of what it was given', async (world) => {
    const guest = await world.open(GUEST);
    const { id } = await given(world, 'start', guest.subject.start('e'));
    await standsStill(world, 'claim', id);
  });

  it('T11: over what it reads of an execution that it took up: it begins nothing of it', async (world) => {
    const dies = await world.open({ ensembles: [FLOW] });
    watched(dies.subject.execute('e'));
    await world.until('b at work', () => labels(world).includes('b@1'));
    const [{ id } = { id: '' }] = await world.reader.listExecutions({ limit: 1 });
    dies.kill();
    await standsStill(world, 'listSteps', id);
  });

  itWorlds('T11: at any commit: it begins no further step', (inWorld) =>
    atEachCall('the owner stands still at a commit', (at, when) =>
      inWorld(async (world) => {
        const fate = { method: 'commit', at, when, then: 'stands still' } as const;
        const first = await world.open({ ensembles: [FLOW], fate });
        const run = watched(first.subject.execute('e'));
        await world.until('the standstill', () => first.life.struck || run.state !== 'open');
        if (!first.life.struck) return 'survives';
        const [left] = await world.reader.listExecutions({ limit: 2 });
        if (left) await goesOn(world, 1, left.id, first.life);
        return 'struck';
      }),
    ),
  );
}

/** A second process stands still behind a call of its storage; a third one ends what it had. */
async function standsStill(world: World, method: 'claim' | 'listSteps', id: string): Promise<void> {
  const fate = { method, at: 1, when: 'after', then: 'stands still' } as const;
  const second = await world.open({ ensembles: [FLOW], fate });
  await second.subject.ready();
  await world.until('the standstill', () => second.life.struck, 4 * LEASE_MS);
  await goesOn(world, 2, id, second.life);
}

async function goesOn(world: World, process: number, id: string, life: { goOn(): void }): Promise<void> {
  const other = await world.open({ ensembles: [FLOW] });
  await other.subject.ready();
  await world.ended(id, 4 * LEASE_MS);
  const before = labels(world, process);
  life.goOn();
  await world.advance(2 * LEASE_MS);
  same(labels(world, process), before, 'what it began when it went on');
}
