/** The engine suite's cases of the queue: its order, fairness and limit, and processes that only add to it. */

import { same } from '../storage-suite/context.ts';
import { code, echo, ensemble, flaky } from './steps.ts';
import { allEnded, check, type Declare, labels, refused, resultOf, watched } from './world/context.ts';

const slow = (name: string, ms = 1000) => ({
  ...ensemble([code(name, 'slow', { input: { ms, i: '${input.i}' } })], { i: '${input.i}' }),
  name,
});

export function queueCases({ it }: Declare): void {
  it('queue: with a concurrency of 1, one execution runs at a time, and the oldest is next', async (world) => {
    let active = 0;
    let maxActive = 0;
    const counted = ensemble([
      code('a', 'begin', { input: { i: '${input.i}' } }),
      code('b', 'slow', { input: { ms: 700 } }),
      code('c', 'end'),
    ]);
    const { subject } = await world.open({
      ensembles: [counted],
      engine: { concurrency: 1 },
      scripts: {
        begin: () => {
          active += 1;
          maxActive = Math.max(maxActive, active);
        },
        end: () => {
          active -= 1;
        },
      },
    });
    for (let i = 0; i < 6; i++) {
      await resultOf(world, 'start', subject.start('e', { i }));
      await world.advance(1);
    }
    const ended = await allEnded(world, 6, 60_000);
    same(
      ended.map(({ status }) => status),
      Array(6).fill('completed'),
      'how they ended',
    );
    same(maxActive, 1, 'how many ran at once');
    const order = labels(world).filter((label) => label.startsWith('a'));
    same(
      order,
      Array.from({ length: 6 }, (_, i) => `a#${i}@1`),
      'their order',
    );
  });

  it('queue: an ensemble with many queued executions does not delay another ensemble', async (world) => {
    const { subject } = await world.open({ ensembles: [slow('many'), slow('few')], engine: { concurrency: 2 } });
    for (let i = 0; i < 30; i++) {
      await resultOf(world, 'start', subject.start('many', { i }));
      await world.advance(1);
    }
    await resultOf(world, 'start', subject.start('few', { i: 0 }));
    await allEnded(world, 31, 60_000);
    const before = labels(world).indexOf('few#0@1');
    check(before >= 0 && before <= 5, `${before} executions of the other ensemble began first`);
  });

  it('queue: a start beyond the limit is refused with OVERLOADED and stores nothing', async (world) => {
    const { subject } = await world.open({ ensembles: [slow('many')], engine: { concurrency: 1, queueLimit: 3 } });
    const handles = [];
    for (let i = 0; i < 4; i++) handles.push(await resultOf(world, 'start', subject.start('many', { i })));
    await refused(world, 'OVERLOADED', subject.start('many', { i: 4 }));
    same((await world.reader.executions.list({ limit: 10 })).length, 4, 'what is stored');
    const direct = watched(subject.execute('many', { i: 5 }));
    await resultOf(world, 'the last of the queue', Promise.all(handles.map((handle) => handle.result())), 60_000);
    same(direct.value?.status, 'completed', 'execute() does not wait in the queue');
    const later = await resultOf(world, 'start', subject.start('many', { i: 6 }));
    same(
      (await resultOf(world, 'its result', later.result())).status,
      'completed',
      'a start when the queue is below its limit again',
    );
  });

  it('queue: a process with concurrency 0 adds to the queue, another runs the executions, and both receive the results', async (world) => {
    const options = { ensembles: [slow('many')] };
    const client = await world.open({ ...options, engine: { concurrency: 0 } });
    const handles = [];
    for (let i = 0; i < 5; i++) handles.push(await resultOf(world, 'start', client.subject.start('many', { i })));
    await world.advance(world.takeoverMs);
    same(labels(world), [], 'what the client ran');
    const worker = await world.open(options);
    await worker.subject.ready();
    for (const [i, handle] of handles.entries()) {
      const { status, output } = await resultOf(world, 'its result', handle.result(), 60_000);
      same([status, output], ['completed', { i }], 'the result that the client receives');
    }
    same(
      [...labels(world, 2)].sort(),
      Array.from({ length: 5 }, (_, i) => `many#${i}@1`),
      'what the worker ran',
    );
  });

  it('runDue: runs what is due, waits for its end, and returns when something is due next', async (world) => {
    const flow = [echo('a', 1), flaky('b', 2, { maxAttempts: 2, backoff: 'fixed', delay: 60_000 })];
    const options = { ensembles: [ensemble(flow, { b: '${b.output}' })] };
    const client = await world.open({ ...options, engine: { concurrency: 0 } });
    const { id } = await resultOf(world, 'start', client.subject.start('e'));
    client.kill();
    const worker = await world.open(options);
    const began = world.clock.now();
    const { nextDueAt } = await resultOf(world, 'runDue', worker.subject.runDue());
    same([labels(world), (nextDueAt as number) - began], [['a@1', 'b@1'], 60_000], 'what was done');
    await resultOf(world, 'closing', worker.subject.close());
    await world.advance(60_000);
    const next = await world.open(options);
    const done = await resultOf(world, 'runDue', next.subject.runDue());
    same([(await world.reader.executions.get(id))?.output, done], [{ b: 2 }, {}], 'what was done later');
  });
}
