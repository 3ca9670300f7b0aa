/** The engine suite's cases of what a process leaves behind: another one goes on with it. */

import { same } from '../storage-suite/context.ts';
import { allEnded, atEachCall, becomes, type Declare, given, labels, watched } from './context.ts';
import { LEASE_MS, SWEEP_MS } from './process.ts';
import { code, echo, ensemble, flaky } from './steps.ts';
import type { World } from './world.ts';

const THREE = ensemble([echo('a', 1), echo('b', 2), echo('c', 3)], { c: '${c.output}' });
/** The takeover, and a beat on either side. */
const TAKEOVER_MS = LEASE_MS + 2 * SWEEP_MS;

export function takeoverCases({ it, itWorlds }: Declare): void {
  it('a run that waits outlives its process, and goes on at its instant, not before', async (world) => {
    const waits = ensemble([echo('a', 1), flaky('b', 2, { maxAttempts: 2, backoff: 'fixed', delay: 3_600_000 })]);
    const options = { ensembles: [waits], engine: { leaseMs: 120_000, sweepMs: 30_000 } };
    const first = await world.open(options);
    const { id } = await given(world, 'start', first.subject.start('e'));
    await becomes(world, id, 'waiting', 10_000);
    const began = world.clock.now();
    first.kill();
    await world.advance(60_000);
    const second = await world.open(options);
    await second.subject.ready();
    await world.advance(3_500_000);
    same((await world.reader.getExecution(id))?.status, 'waiting', 'a moment before it is due');
    const { status, finishedAt } = await world.ended(id);
    same([status, labels(world)], ['completed', ['a@1', 'b@1', 'b@2']], 'the run');
    const late = (finishedAt as number) - began - 3_600_000;
    if (late < 0 || late > 1000) throw new Error(`it went on ${late} ms behind its instant`);
  });

  it('what is queued outlives its process', async (world) => {
    const options = {
      ensembles: [ensemble([code('a', 'slow', { input: { ms: 5000 } })])],
      engine: { concurrency: 1 },
    };
    const first = await world.open(options);
    for (let i = 0; i < 4; i++) await given(world, 'start', first.subject.start('e'));
    await world.advance(100);
    same(labels(world), ['a@1'], 'what ran');
    first.kill();
    const second = await world.open(options);
    await second.subject.ready();
    const ended = await allEnded(world, 4);
    same(
      ended.map(({ status }) => status),
      Array(4).fill('completed'),
      'how they ended',
    );
    same(labels(world, 2), Array(4).fill('a@1'), 'what ran in the second process');
  });

  it('sixty runs at once, each at another place when the process dies, all come to their ends', async (world) => {
    const slow = ensemble(
      [
        code('a', 'slow', { input: { ms: '${input.i * 7}', i: '${input.i}' } }),
        code('b', 'slow', { input: { ms: '${input.i * 11}', i: '${input.i}' } }),
        echo('c', { i: '${input.i}' }),
      ],
      { i: '${c.output.i}' },
    );
    const first = await world.open({ ensembles: [slow] });
    for (let i = 0; i < 60; i++) await given(world, 'start', first.subject.start('e', { i }));
    await world.advance(300);
    first.kill();
    const second = await world.open({ ensembles: [slow] });
    await second.subject.ready();
    const ended = await allEnded(world, 60, TAKEOVER_MS + 5000);
    same(
      ended.map(({ output }) => (output as { i: number }).i).sort((a, b) => a - b),
      Array.from({ length: 60 }, (_, i) => i),
      'what they gave',
    );
    for (const [label, count] of world.ledger.counts()) {
      if (count > 2) throw new Error(`${label} had its effect ${count} times`);
    }
    const effects = world.ledger.effects.length;
    if (effects > 180 + 60) throw new Error(`${effects} effects of 180 steps, 60 of which were at hand`);
  });

  it('T33: one that closes gives back what does not end in its grace, and another goes on at once', async (world) => {
    const slow = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 10_000 } }), echo('c', 3)]);
    const first = await world.open({ ensembles: [slow] });
    const { id } = await given(world, 'start', first.subject.start('e'));
    await world.advance(100);
    const closing = first.subject.close({ grace: 1000 });
    await given(world, 'closing', closing, 1500);
    await given(world, 'closing again', first.subject.close());
    const closed = world.clock.monotonic();
    const second = await world.open({ ensembles: [slow] });
    await second.subject.ready();
    await world.until('b in the second process', () => labels(world, 2).includes('b@1'), 1000);
    const waited = world.clock.monotonic() - closed;
    if (waited > 1000) throw new Error(`it went on after ${waited} ms`);
    same((await world.ended(id)).status, 'completed', 'its end');
    same(labels(world, 2), ['b@1', 'c@1'], 'what the second process ran');
  });

  it('T33: one that closes takes nothing new, and lets what runs come to its end', async (world) => {
    const slow = ensemble([code('a', 'slow', { input: { ms: 2000 } }), echo('b', 1)], { b: '${b.output}' });
    const first = await world.open({ ensembles: [slow] });
    const handle = await given(world, 'start', first.subject.start('e'));
    const result = watched(handle.result());
    const closing = first.subject.close();
    const late = watched(first.subject.execute('e'));
    await given(world, 'closing', closing, 3000);
    same([result.state, result.value?.status], ['given', 'completed'], 'the run');
    same([late.state, (late.error as { code?: string } | undefined)?.code], ['thrown', 'OVERLOADED'], 'a late call');
    const second = await world.open({ ensembles: [slow] });
    await second.subject.ready();
    await world.advance(TAKEOVER_MS);
    same(labels(world), ['a@1', 'b@1'], 'effects');
  });

  it('T5: a run that brings down every process that takes it up is ended after three deaths that nothing else can be blamed for', async (world) => {
    let current: { kill(): void } | undefined;
    const deadly = ensemble([echo('a', 1), code('b', 'deadly'), echo('c', 3)], { a: '${a.output}' });
    const options = { ensembles: [deadly, { ...THREE, name: 'other' }], scripts: { deadly: () => current?.kill() } };
    let process = await world.open(options);
    current = process;
    process.subject.start('e').catch(() => undefined);
    await world.until('the first death', () => !process.life.alive);
    const [{ id } = { id: '' }] = await world.reader.listExecutions({ limit: 1 });
    for (let deaths = 1; deaths <= 2; deaths++) {
      process = await world.open(options);
      current = process;
      await process.subject.ready();
      const died = process;
      await world.until(`death ${deaths + 1}`, () => !died.life.alive, 10 * TAKEOVER_MS);
    }
    process = await world.open(options);
    await process.subject.ready();
    const { status, error, agents } = await world.ended(id, 10 * TAKEOVER_MS);
    same([status, error?.code, agents.map(({ name }) => name)], ['failed', 'INTERNAL', ['a']], 'its end');
    same(world.ledger.counts().get('b@1'), 3, 'how often it was run');
    const other = await given(world, 'another run', process.subject.execute('other'));
    same(other.status, 'completed', 'another run in the process that ended it');
  });

  itWorlds('a crash in a takeover, at every call of the storage: a third process goes on', (inWorld) =>
    atEachCall('the second process dies', (at, when) => inWorld((world) => dieInTakeover(world, at, when))),
  );
}

async function dieInTakeover(world: World, at: number, when: 'before' | 'after'): Promise<'struck' | 'survives'> {
  const flow = [echo('a', 1), echo('b', 2), echo('c', 3), echo('d', 4)];
  const options = { ensembles: [ensemble(flow, { d: '${d.output}' })] };
  const first = await world.open({ ...options, fate: { method: 'commit', at: 3, when: 'before', then: 'dies' } });
  watched(first.subject.execute('e'));
  await world.until('the first crash', () => first.life.struck);
  const [{ id } = { id: '' }] = await world.reader.listExecutions({ limit: 2 });
  const second = await world.open({ ...options, fate: { method: 'any', at, when, then: 'dies' } });
  watched(second.subject.ready());
  const isOver = async () => second.life.struck || (await world.reader.getExecution(id))?.status === 'completed';
  await world.until('the second crash', isOver);
  if (!second.life.struck) return 'survives';
  const third = await world.open(options);
  await third.subject.ready();
  const { status, output, agents } = await world.ended(id);
  const found = [status, output, agents.map(({ name }) => name)];
  same(found, ['completed', { d: 4 }, ['a', 'b', 'c', 'd']], 'the run');
  for (const [label, count] of world.ledger.counts()) {
    if (count > 3) throw new Error(`${label} had its effect ${count} times behind two crashes`);
  }
  return 'struck';
}
