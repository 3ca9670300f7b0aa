/** The engine suite's cases of recovery: another process resumes what a dead or closing process ran. */

import type { Execution } from '../../engine/execution/execution.ts';
import { same } from '../storage-suite/context.ts';
import { code, echo, ensemble, flaky } from './steps.ts';
import { allEnded, atEachCall, becomes, type Declare, labels, resultOf, watched } from './world/context.ts';
import type { World } from './world/world.ts';

export function recoveryCases({ it, itWorlds }: Declare): void {
  it('a waiting execution survives its process, and resumes when it is due, not earlier', async (world) => {
    const waits = ensemble([echo('a', 1), flaky('b', 2, { maxAttempts: 2, backoff: 'fixed', delay: 3_600_000 })]);
    const options = { ensembles: [waits], engine: { longIntervals: true } };
    const first = await world.open(options);
    const { id } = await resultOf(world, 'start', first.subject.start('e'));
    await becomes(world, id, 'waiting', 10_000);
    const began = world.clock.now();
    first.kill();
    await world.advance(60_000);
    const second = await world.open(options);
    await second.subject.ready();
    await world.advance(3_500_000);
    same((await world.reader.executions.get(id))?.status, 'waiting', 'a moment before it is due');
    const { status, finishedAt } = await world.ended(id);
    same([status, labels(world)], ['completed', ['a@1', 'b@1', 'b@2']], 'the run');
    const late = (finishedAt as number) - began - 3_600_000;
    if (late < 0 || late > 1000) throw new Error(`it resumed ${late} ms after it was due`);
  });

  it('a record counts recoveries, and keeps how long the execution waited before its process died', async (world) => {
    const options = { ensembles: [ensemble([{ wait: 'go' }, code('a', 'slow', { input: { ms: 5000 } })])] };
    const first = await world.open(options);
    const { id } = await resultOf(world, 'start', first.subject.start('e'));
    await becomes(world, id, 'waiting', 10_000);
    await world.advance(60_000);
    await world.reader.signals.put({
      ...{ id: '1', executionId: id, name: 'go', payload: null },
      createdAt: world.clock.now(),
    });
    await world.until('the step', async () => world.history.effects.length > 0, 10_000);
    same((await world.reader.executions.get(id))?.recoveries, 0, 'recoveries before');
    first.kill();
    const second = await world.open(options);
    await second.subject.ready();
    const { recoveries, metrics, waitingFor, agents } = await world.ended(id);
    same(agents[0]?.attempts, 2, 'attempts: one was cut off');
    same([recoveries, waitingFor], [1, []], 'recoveries and waits of the record');
    if (metrics.waited < 60_000 || metrics.waited > 70_000) throw new Error(`it waited ${metrics.waited} ms`);
  });

  it('an attempt that a crash cut off counts in the record, and not for `maxAttempts`', async (world) => {
    const retry = { maxAttempts: 2, backoff: 'fixed', delay: 100 };
    const crashing = ensemble([flaky('b', 2, retry), echo('c', 1)]);
    const { status, agents } = await endAfterCrash(world, crashing, 'before');
    same([status, labels(world)], ['completed', ['b@1', 'b@1', 'b@2', 'c@1']], 'the run');
    same(
      agents.map(({ attempts }) => attempts),
      [3, 1],
      'attempts in the record',
    );
  });

  it('a crash in the pause before a retry counts no attempt', async (world) => {
    const retry = { maxAttempts: 3, backoff: 'fixed', delay: 100 };
    const crashing = ensemble([flaky('b', 3, retry), echo('c', 1)]);
    const { status, agents } = await endAfterCrash(world, crashing, 'after');
    same([status, labels(world)], ['completed', ['b@1', 'b@2', 'b@3', 'c@1']], 'the run');
    const attempts = agents.map((run) => `${run.name} ${run.attempts}`);
    same(attempts, ['b 3', 'c 1'], 'attempts in the record');
  });

  it('a crash counts no attempt that can only have begun after it', async (world) => {
    const branch = { if: true, then: [{ sleep: '40s' }, echo('late', 1)] };
    const slow = code('slow', 'slow', { input: { ms: 60_000 } });
    const options = { ensembles: [ensemble([{ parallel: [branch, slow] }, echo('last', 1)])] };
    const first = await world.open(options);
    const { id } = await resultOf(world, 'start', first.subject.start('e'));
    await world.until('the step', async () => world.history.effects.length > 0, 10_000);
    first.kill();
    const second = await world.open(options);
    await second.subject.ready();
    const { agents } = await world.ended(id);
    const attempts = agents.map((run) => `${run.name} ${run.attempts}`);
    same(attempts.sort(), ['last 1', 'late 1', 'slow 2'], 'attempts in the record');
  });

  it('queued executions survive their process', async (world) => {
    const options = {
      ensembles: [ensemble([code('a', 'slow', { input: { ms: 5000 } })])],
      engine: { concurrency: 1 },
    };
    const first = await world.open(options);
    for (let i = 0; i < 4; i++) await resultOf(world, 'start', first.subject.start('e'));
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

  it('sixty executions at once, each at a different point when the process dies, all complete', async (world) => {
    const slow = ensemble(
      [
        code('a', 'slow', { input: { ms: '${input.i * 7}', i: '${input.i}' } }),
        code('b', 'slow', { input: { ms: '${input.i * 11}', i: '${input.i}' } }),
        echo('c', { i: '${input.i}' }),
      ],
      { i: '${c.output.i}' },
    );
    const first = await world.open({ ensembles: [slow] });
    for (let i = 0; i < 60; i++) await resultOf(world, 'start', first.subject.start('e', { i }));
    await world.advance(300);
    first.kill();
    const second = await world.open({ ensembles: [slow] });
    await second.subject.ready();
    const ended = await allEnded(world, 60, world.takeoverMs + 5000);
    same(
      ended.map(({ output }) => (output as { i: number }).i).sort((a, b) => a - b),
      Array.from({ length: 60 }, (_, i) => i),
      'what they gave',
    );
    for (const [label, count] of world.history.counts()) {
      if (count > 2) throw new Error(`${label} had its effect ${count} times`);
    }
    const effects = world.history.effects.length;
    if (effects > 180 + 60) throw new Error(`${effects} effects of 180 steps, 60 of which were in progress`);
  });

  it('close: executions that do not end within the grace period are released, and another process resumes them at once', async (world) => {
    const slow = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 10_000 } }), echo('c', 3)]);
    const first = await world.open({ ensembles: [slow] });
    const { id } = await resultOf(world, 'start', first.subject.start('e'));
    await world.advance(100);
    const closing = first.subject.close({ grace: 1000 });
    await resultOf(world, 'closing', closing, 1500);
    await resultOf(world, 'closing again', first.subject.close());
    const closed = world.clock.monotonic();
    const second = await world.open({ ensembles: [slow] });
    await second.subject.ready();
    await world.until('b in the second process', () => labels(world, 2).includes('b@1'), 1000);
    const waited = world.clock.monotonic() - closed;
    if (waited > 1000) throw new Error(`it resumed after ${waited} ms`);
    same((await world.ended(id)).status, 'completed', 'its end');
    same(labels(world, 2), ['b@1', 'c@1'], 'what the second process ran');
  });

  it('close: nothing new is accepted, and running executions complete', async (world) => {
    const slow = ensemble([code('a', 'slow', { input: { ms: 2000 } }), echo('b', 1)], { b: '${b.output}' });
    const first = await world.open({ ensembles: [slow] });
    const handle = await resultOf(world, 'start', first.subject.start('e'));
    const result = watched(handle.result());
    const closing = first.subject.close();
    const late = watched(first.subject.execute('e'));
    await resultOf(world, 'closing', closing, 3000);
    same([result.state, result.value?.status], ['fulfilled', 'completed'], 'the run');
    same([late.state, (late.error as { code?: string } | undefined)?.code], ['rejected', 'OVERLOADED'], 'a late call');
    const second = await world.open({ ensembles: [slow] });
    await second.subject.ready();
    await world.advance(world.takeoverMs);
    same(labels(world), ['a@1', 'b@1'], 'effects');
  });

  itWorlds('a crash during recovery, at every storage call: a third process resumes the execution', (inWorld) =>
    atEachCall('the second process dies', (at, when) => inWorld((world) => crashInRecovery(world, at, when))),
  );
}

/** Starts an ensemble in a process that dies at its second commit. @returns the record of its end in another process */
async function endAfterCrash(world: World, crashing: object, when: 'before' | 'after'): Promise<Execution> {
  const options = { ensembles: [crashing] };
  const first = await world.open({ ...options, fault: { method: 'commit', at: 2, when, then: 'kill' } });
  void first.subject.start('e').catch(() => undefined);
  await world.until('the crash', async () => first.control.triggered);
  const second = await world.open(options);
  await second.subject.ready();
  const [started] = await world.reader.executions.list({ limit: 1 });
  return world.ended(started?.id as string);
}

async function crashInRecovery(
  world: World,
  at: number,
  when: 'before' | 'after',
): Promise<'triggered' | 'not reached'> {
  const flow = [echo('a', 1), echo('b', 2), echo('c', 3), echo('d', 4)];
  const options = { ensembles: [ensemble(flow, { d: '${d.output}' })] };
  const first = await world.open({ ...options, fault: { method: 'commit', at: 3, when: 'before', then: 'kill' } });
  watched(first.subject.execute('e'));
  await world.until('the first crash', () => first.control.triggered);
  const [{ id } = { id: '' }] = await world.reader.executions.list({ limit: 2 });
  const second = await world.open({ ...options, fault: { method: 'any', at, when, then: 'kill' } });
  watched(second.subject.ready());
  const isOver = async () =>
    second.control.triggered || (await world.reader.executions.get(id))?.status === 'completed';
  await world.until('the second crash', isOver);
  if (!second.control.triggered) return 'not reached';
  const third = await world.open(options);
  await third.subject.ready();
  const { status, output, agents } = await world.ended(id);
  const found = [status, output, agents.map(({ name }) => name)];
  same(found, ['completed', { d: 4 }, ['a', 'b', 'c', 'd']], 'the run');
  for (const [label, count] of world.history.counts()) {
    if (count > 3) throw new Error(`${label} had its effect ${count} times after two crashes`);
  }
  return 'triggered';
}
