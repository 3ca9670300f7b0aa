/** The engine suite's cases of several processes on one store: they share the work, and a paused process does no damage. */

import { same } from '../storage-suite/context.ts';
import { code, echo, ensemble } from './steps.ts';
import {
  allEnded,
  atEachCall,
  check,
  type Declare,
  labels,
  pauseAtCommit,
  resultOf,
  watched,
} from './world/context.ts';
import { LEASE_MS, type StorageWorld } from './world/storage-world.ts';

const FLOW = ensemble(
  [
    echo('a', 1),
    code('b', 'slow', { input: { ms: 500 } }),
    echo('c', 3, { setState: { count: '${state.count + 1}' } }),
    echo('d', 4),
  ],
  { d: '${d.output}' },
  { state: { initial: { count: 0 } } },
);

export function sharedStorageCases({ it, itWorlds }: Declare<StorageWorld>): void {
  itWorlds('a worker paused beyond its lease, at every commit: its late writes are refused', (inWorld) =>
    atEachCall('the worker is paused at a commit', (at, when) =>
      inWorld(async (world) => {
        const first = await pauseAtCommit(world, FLOW, at, when);
        if (!first) return 'not reached';
        const { paused, run } = first;
        const second = await world.open({ ensembles: [FLOW] });
        await second.subject.ready();
        const [left] = await world.reader.executions.list({ limit: 2 });
        if (left) await world.ended(left.id, 3 * LEASE_MS);
        else await world.advance(3 * LEASE_MS);
        const stored = world.history.entries.length;
        paused.control.resume();
        await world.until('the answer to the caller', () => run.state !== 'pending', 2 * LEASE_MS);
        await world.advance(2 * LEASE_MS);
        const late = world.history.entries.slice(stored).filter(({ executionId }) => executionId === left?.id);
        same(late, [], 'what the paused worker stored of it');
        if (left) {
          same(
            [run.value?.id, run.value?.status, run.value?.output],
            [left.id, 'completed', { d: 4 }],
            'the result of its caller',
          );
          same((await world.reader.state.read('e'))?.value, { count: 1 }, 'the state');
        }
        // A refused start may be repeated under another worker. It must not be lost silently.
        else if (run.state === 'fulfilled') {
          same([run.value?.status, world.history.counts().get('a@1')], ['completed', 1], 'a start that was repeated');
        }
        const again = await resultOf(world, 'a new execution in the paused process', paused.subject.execute('e'));
        same(again.status, 'completed', 'a new execution in the paused process');
        return 'triggered';
      }),
    ),
  );

  itWorlds(
    'a worker that is resumed while another worker runs its execution: the other worker is not disturbed',
    (inWorld) =>
      atEachCall('the worker is paused at a commit', (at, when) =>
        inWorld(async (world) => {
          const first = await pauseAtCommit(world, FLOW, at, when);
          if (!first) return 'not reached';
          const { paused, run } = first;
          const [left] = await world.reader.executions.list({ limit: 2 });
          const second = await world.open({ ensembles: [FLOW] });
          await second.subject.ready();
          const isResumed = () => world.history.effects.some(({ process }) => process === 2);
          if (left?.status === 'running') await world.until('another process to resume it', isResumed, 3 * LEASE_MS);
          paused.control.resume();
          await world.until('the answer to the caller', () => run.state !== 'pending', 10 * LEASE_MS);
          if (!left) return 'triggered';
          same([run.value?.status, run.value?.output], ['completed', { d: 4 }], 'the result of its caller');
          same((await world.reader.state.read('e'))?.value, { count: 1 }, 'the state');
          const late = labels(world, 1).length + labels(world, 2).length;
          check(late <= 5, `${late} effects of four steps, one of which was in progress`);
          return 'triggered';
        }),
      ),
  );

  it('the events of a handle end, even if another process completes the execution', async (world) => {
    const first = await world.open({ ensembles: [FLOW] });
    const handle = await resultOf(world, 'start', first.subject.start('e'));
    const read = watched(kinds(handle.events()));
    await world.advance(100);
    first.control.pause();
    const second = await world.open({ ensembles: [FLOW] });
    await second.subject.ready();
    same((await world.ended(handle.id)).status, 'completed', 'the run');
    first.control.resume();
    await world.until('the end of the events', () => read.state !== 'pending', 10 * LEASE_MS);
    same(read.value?.at(-1), 'execution.completed', 'the last event');
  });

  it('a worker whose event loop was blocked beyond its lease logs a warning', async (world) => {
    const first = await world.open({ ensembles: [FLOW] });
    await first.subject.ready();
    await world.advance(LEASE_MS);
    first.control.pause();
    await world.advance(2 * LEASE_MS);
    same(first.warnings, [], 'warnings before');
    first.control.resume();
    await world.advance(LEASE_MS);
    check(
      first.warnings.some((text) => /lease|blocked/.test(text)),
      'it logged nothing',
    );
  });

  it('three processes, two hundred executions: each runs once, and every process runs a part', async (world) => {
    const one = ensemble([code('a', 'slow', { input: { ms: 50, i: '${input.i}' } }), echo('b', { i: '${input.i}' })]);
    const options = { ensembles: [one], engine: { concurrency: 10 } };
    const client = await world.open({ ...options, engine: { concurrency: 0 } });
    for (let i = 0; i < 200; i++) await resultOf(world, 'start', client.subject.start('e', { i }));
    for (let i = 0; i < 3; i++) await (await world.open(options)).subject.ready();
    await allEnded(world, 200, 600_000);
    for (const [label, count] of world.history.counts()) same(count, 1, `how often ${label} had its effect`);
    for (const process of [2, 3, 4]) {
      const share = labels(world, process).length;
      check(share >= 40, `process ${process} ran ${share} of 400 steps`);
    }
  });

  it('state: three processes change it at the same time, and no change is lost', async (world) => {
    const add = { setState: { count: '${state.count + 1}' } };
    const counting = ensemble(
      [echo('a', 1, add), { foreach: '${[0, 1, 2]}', concurrency: 3, steps: [echo('b', 1, add)] }],
      {},
      { state: { initial: { count: 0 } } },
    );
    const runs: Promise<unknown>[] = [];
    for (let i = 0; i < 3; i++) {
      const { subject } = await world.open({ ensembles: [counting] });
      for (let run = 0; run < 5; run++) runs.push(subject.execute('e'));
    }
    await resultOf(world, 'the runs', Promise.all(runs));
    same((await world.reader.state.read('e'))?.value, { count: 60 }, 'the state');
  });

  it('cancel: one process cancels what another process runs', async (world) => {
    const slow = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 60_000 } }), echo('c', 3)], {
      a: '${a.output}',
    });
    const first = await world.open({ ensembles: [slow] });
    const handle = await resultOf(world, 'start', first.subject.start('e'));
    const result = watched(handle.result());
    await world.advance(1000);
    const second = await world.open({ ensembles: [slow] });
    await resultOf(world, 'cancel', second.subject.executions.cancel(handle.id));
    await world.until('its end', () => result.state !== 'pending', LEASE_MS);
    same([result.value?.status, result.value?.partialOutput], ['cancelled', { a: 1 }], 'its end');
    same(labels(world), ['a@1', 'b@1'], 'what ran');
  });

  it('close: released executions resume in another process within a second', async (world) => {
    const slow = ensemble([code('a', 'slow', { input: { ms: 10_000 } }), echo('b', 1)], { b: '${b.output}' });
    const first = await world.open({ ensembles: [slow] });
    const second = await world.open({ ensembles: [slow] });
    await second.subject.ready();
    const { id } = await resultOf(world, 'start', first.subject.start('e'));
    await world.advance(100);
    await resultOf(world, 'closing', first.subject.close({ grace: 500 }));
    const closed = world.clock.monotonic();
    await world.until('a in the second process', () => labels(world, 2).length > 0, 1000);
    check(world.clock.monotonic() - closed <= 1000, 'it took too long');
    same((await world.ended(id)).status, 'completed', 'its end');
  });
}

async function kinds(events: AsyncIterable<{ readonly event: string }>): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { event } of events) found.push(event);
  return found;
}
