/** The engine suite's cases of several processes at work on one store: they share, and one that stood still spoils nothing. */

import { same } from '../storage-suite/context.ts';
import { allEnded, atEachCall, check, type Declare, given, labels, watched } from './context.ts';
import { LEASE_MS } from './process.ts';
import { code, echo, ensemble } from './steps.ts';

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

export function sharedCases({ it, itWorlds }: Declare): void {
  itWorlds('T11: an owner that stands still past its lease, at every commit: its late writes are refused', (inWorld) =>
    atEachCall('the owner stands still at a commit', (at, when) =>
      inWorld(async (world) => {
        const options = { ensembles: [FLOW] };
        const first = await world.open({ ...options, fate: { method: 'commit', at, when, then: 'stands still' } });
        const run = watched(first.subject.execute('e'));
        await world.until('the standstill', () => first.life.struck || run.state !== 'open');
        if (!first.life.struck) return 'survives';
        const second = await world.open(options);
        await second.subject.ready();
        const [left] = await world.reader.listExecutions({ limit: 2 });
        if (left) await world.ended(left.id, 3 * LEASE_MS);
        else await world.advance(3 * LEASE_MS);
        const stored = world.ledger.entries.length;
        first.life.goOn();
        await world.until('the answer to the caller', () => run.state !== 'open', 2 * LEASE_MS);
        await world.advance(2 * LEASE_MS);
        const late = world.ledger.entries.slice(stored).filter(({ executionId }) => executionId === left?.id);
        same(late, [], 'what the owner that stood still stored of it');
        if (left) {
          same(
            [run.value?.id, run.value?.status, run.value?.output],
            [left.id, 'completed', { d: 4 }],
            'what its caller heard',
          );
          same((await world.reader.readState('e'))?.value, { count: 1 }, 'the state');
        }
        // A start that was refused may be made anew, under another owner; it must not be lost in silence.
        else if (run.state === 'given') {
          same([run.value?.status, world.ledger.counts().get('a@1')], ['completed', 1], 'a start that was made anew');
        }
        const again = await given(world, 'a new run where it stood still', first.subject.execute('e'));
        same(again.status, 'completed', 'a new run where it stood still');
        return 'struck';
      }),
    ),
  );

  itWorlds(
    'T11: an owner that goes on while another is at work on its run: the other one is not disturbed',
    (inWorld) =>
      atEachCall('the owner stands still at a commit', (at, when) =>
        inWorld(async (world) => {
          const options = { ensembles: [FLOW] };
          const first = await world.open({ ...options, fate: { method: 'commit', at, when, then: 'stands still' } });
          const run = watched(first.subject.execute('e'));
          await world.until('the standstill', () => first.life.struck || run.state !== 'open');
          if (!first.life.struck) return 'survives';
          const [left] = await world.reader.listExecutions({ limit: 2 });
          const second = await world.open(options);
          await second.subject.ready();
          const isTaken = () => world.ledger.effects.some(({ process }) => process === 2);
          if (left?.status === 'running') await world.until('the takeover', isTaken, 3 * LEASE_MS);
          first.life.goOn();
          await world.until('the answer to the caller', () => run.state !== 'open', 10 * LEASE_MS);
          if (!left) return 'struck';
          same([run.value?.status, run.value?.output], ['completed', { d: 4 }], 'what its caller heard');
          same((await world.reader.readState('e'))?.value, { count: 1 }, 'the state');
          const late = labels(world, 1).length + labels(world, 2).length;
          check(late <= 5, `${late} effects of four steps, one of which was at hand`);
          return 'struck';
        }),
      ),
  );

  it('events of a handle come to their end, also when another process takes the run to its own', async (world) => {
    const first = await world.open({ ensembles: [FLOW] });
    const handle = await given(world, 'start', first.subject.start('e'));
    const read = watched(kinds(handle.events()));
    await world.advance(100);
    first.life.standStill();
    const second = await world.open({ ensembles: [FLOW] });
    await second.subject.ready();
    same((await world.ended(handle.id)).status, 'completed', 'the run');
    first.life.goOn();
    await world.until('the end of the events', () => read.state !== 'open', 10 * LEASE_MS);
    same(read.value?.at(-1), 'execution.completed', 'the last event');
  });

  it('T12: an owner whose event loop stood still past its lease reports it', async (world) => {
    const first = await world.open({ ensembles: [FLOW] });
    await first.subject.ready();
    await world.advance(LEASE_MS);
    first.life.standStill();
    await world.advance(2 * LEASE_MS);
    same(first.warnings, [], 'warnings before');
    first.life.goOn();
    await world.advance(LEASE_MS);
    check(
      first.warnings.some((text) => /lease|stood still|blocked/.test(text)),
      'it reported nothing',
    );
  });

  it('T10: three processes, two hundred executions: each is run once, and all have their share', async (world) => {
    const one = ensemble([code('a', 'slow', { input: { ms: 50, i: '${input.i}' } }), echo('b', { i: '${input.i}' })]);
    const options = { ensembles: [one], engine: { concurrency: 10 } };
    const guest = await world.open({ ...options, engine: { concurrency: 0 } });
    for (let i = 0; i < 200; i++) await given(world, 'start', guest.subject.start('e', { i }));
    for (let i = 0; i < 3; i++) await (await world.open(options)).subject.ready();
    await allEnded(world, 200, 600_000);
    for (const [label, count] of world.ledger.counts()) same(count, 1, `how often ${label} had its effect`);
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
    await given(world, 'the runs', Promise.all(runs));
    same((await world.reader.readState('e'))?.value, { count: 60 }, 'the state');
  });

  it('cancel: another process stops what this one runs', async (world) => {
    const slow = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 60_000 } }), echo('c', 3)], {
      a: '${a.output}',
    });
    const first = await world.open({ ensembles: [slow] });
    const handle = await given(world, 'start', first.subject.start('e'));
    const result = watched(handle.result());
    await world.advance(1000);
    const second = await world.open({ ensembles: [slow] });
    await given(world, 'cancel', second.subject.executions.cancel(handle.id));
    await world.until('its end', () => result.state !== 'open', LEASE_MS);
    same([result.value?.status, result.value?.output], ['cancelled', { a: 1 }], 'its end');
    same(labels(world), ['a@1', 'b@1'], 'what ran');
  });

  it('one that closes gives its runs to those who are there: they go on within a second', async (world) => {
    const slow = ensemble([code('a', 'slow', { input: { ms: 10_000 } }), echo('b', 1)], { b: '${b.output}' });
    const first = await world.open({ ensembles: [slow] });
    const second = await world.open({ ensembles: [slow] });
    await second.subject.ready();
    const { id } = await given(world, 'start', first.subject.start('e'));
    await world.advance(100);
    await given(world, 'closing', first.subject.close({ grace: 500 }));
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
