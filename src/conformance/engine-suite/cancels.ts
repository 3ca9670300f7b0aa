/** The engine suite's cases of cancellation: of executions that run, wait, are queued, or have lost their process. */

import { isFinal } from '../../engine/execution/execution.ts';
import type { Fault } from '../../testing-kit/processes/process-control.ts';
import { same } from '../storage-suite/context.ts';
import { code, echo, ensemble, flaky } from './steps.ts';
import { atEachCall, becomes, check, type Declare, labels, refused, resultOf, watched } from './world/context.ts';
import type { ProcessOptions } from './world/process.ts';
import type { World } from './world/world.ts';

const SLOW = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 10_000 } }), echo('c', 3)], { a: '${a.output}' });
const WAITS = ensemble(
  [echo('a', 1), flaky('b', 2, { maxAttempts: 2, backoff: 'fixed', delay: 600_000 }), echo('c', 3)],
  { a: '${a.output}' },
);
const CANCELLED = ['cancelled', 'EXECUTION_CANCELLED', { a: 1 }];

export function cancelCases({ it, itWorlds }: Declare): void {
  it('cancel: a running execution stops at once, and its outputs use the stored results', async (world) => {
    const { subject } = await world.open({ ensembles: [SLOW] });
    const handle = await resultOf(world, 'start', subject.start('e'));
    await world.advance(1000);
    await resultOf(world, 'cancel', subject.executions.cancel(handle.id));
    const { status, error, partialOutput } = await resultOf(world, 'the end', handle.result(), 1000);
    same([status, error?.code, partialOutput], CANCELLED, 'its end');
    same(labels(world), ['a@1', 'b@1'], 'what ran');
    same((await resultOf(world, 'cancel again', subject.executions.cancel(handle.id))).status, 'cancelled', 'again');
  });

  it('cancel: a waiting execution ends without another step', async (world) => {
    const { subject } = await world.open({ ensembles: [WAITS] });
    const handle = await resultOf(world, 'start', subject.start('e'));
    await becomes(world, handle.id, 'waiting', 5000);
    await resultOf(world, 'cancel', subject.executions.cancel(handle.id));
    const { status, error, partialOutput } = await resultOf(world, 'the end', handle.result(), 2000);
    same([status, error?.code, partialOutput], CANCELLED, 'its end');
    same(labels(world), ['a@1', 'b@1'], 'what ran');
  });

  it('cancel: the abort signal of the caller also cancels a waiting execution', async (world) => {
    const { subject } = await world.open({ ensembles: [WAITS] });
    const controller = new AbortController();
    const run = watched(subject.execute('e', {}, { signal: controller.signal }));
    await world.advance(10_000);
    controller.abort();
    await world.until('the end', () => run.state !== 'pending', 2000);
    same([run.value?.status, run.value?.error?.code, run.value?.partialOutput], CANCELLED, 'its end');
  });

  it('cancel: a queued execution ends at once, and never begins', async (world) => {
    const { subject } = await world.open({ ensembles: [SLOW], engine: { concurrency: 1 } });
    await resultOf(world, 'start', subject.start('e'));
    const queued = await resultOf(world, 'start', subject.start('e'));
    same((await resultOf(world, 'cancel', subject.executions.cancel(queued.id))).status, 'cancelled', 'at once');
    const { status, error, partialOutput } = await resultOf(world, 'its result', queued.result(), 1000);
    same([status, error?.code, partialOutput], ['cancelled', 'EXECUTION_CANCELLED', undefined], 'its end');
    await world.advance(60_000);
    same(labels(world), ['a@1', 'b@1', 'c@1'], 'what ran');
  });

  for (const [what, definition] of [
    ['running', SLOW],
    ['waiting', WAITS],
  ] as const) {
    it(`cancel: an execution that was ${what} when its process died is cancelled by another process, which runs no step of it`, async (world) => {
      const first = await world.open({ ensembles: [definition] });
      const { id } = await resultOf(world, 'start', first.subject.start('e'));
      await world.advance(5000);
      first.kill();
      const second = await world.open({ ensembles: [definition] });
      await resultOf(world, 'cancel', second.subject.executions.cancel(id));
      await second.subject.ready();
      const { status, error, partialOutput } = await world.ended(id, 60_000);
      same([status, error?.code, partialOutput], CANCELLED, 'its end');
      same(labels(world, 2), [], 'what the second process ran');
    });
  }

  it('cancel: an execution that has ended keeps its status', async (world) => {
    const { subject } = await world.open({ ensembles: [ensemble([echo('a', 1)])] });
    const { id } = await resultOf(world, 'the run', subject.execute('e'));
    await refused(world, 'CONFLICT', subject.executions.cancel(id));
    same((await world.reader.executions.get(id))?.status, 'completed', 'its status');
  });

  itWorlds('cancel: a crash at every storage call: a cancellation that was answered is never lost', (inWorld) =>
    atEachCall('the process that is asked to cancel dies', (at, when) =>
      inWorld(async (world) => {
        const short = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 2000 } }), echo('c', 3)]);
        const options: ProcessOptions = { ensembles: [short] };
        const first = await world.open({ ...options, fault: { method: 'any', at, when, then: 'kill' } });
        const start = watched(first.subject.start('e'));
        await world.advance(1000);
        const cancel = start.value && watched(first.subject.executions.cancel(start.value.id));
        await world.advance(1000);
        if (!first.control.triggered) {
          same(await statuses(), ['cancelled'], 'without a crash');
          return 'not reached';
        }
        const second = await world.open(options);
        await second.subject.ready();
        const isOver = async () => (await statuses()).every((status) => isFinal(status));
        await world.until('the end', isOver, 60_000);
        const found = await statuses();
        // A cancellation that was never answered may be lost with its process. An answered one must not be lost.
        const wanted = cancel?.state === 'fulfilled' ? ['cancelled'] : ['cancelled', 'completed'];
        check(
          found.every((status) => wanted.includes(status)),
          `it ended as ${found.join(', ')}`,
        );
        return 'triggered';

        async function statuses() {
          return (await world.reader.executions.list({ limit: 5 })).map(({ status }) => status);
        }
      }),
    ),
  );

  itWorlds(
    'cancel: a crash at every commit of a cleanup: a step that was cancelled never begins after the cleanup',
    async (inWorld) => {
      const crash = (fault: Omit<Fault, 'then'>) =>
        inWorld((world) => crashInCleanup(world, { ...fault, then: 'kill' }));
      await atEachCall('the process that cleans up dies', (at, when) => crash({ method: 'commit', at, when }));
      await crash({ method: 'executions.requestCancel', at: 1, when: 'before' });
    },
  );
}

const CLEANS = ensemble([
  {
    parallel: [
      code('a', 'slow', { input: { ms: 2000 } }),
      {
        try: [echo('b', 1), code('c', 'slow', { input: { ms: 2000 } })],
        finally: [code('d', 'slow', { input: { ms: 300 } }), echo('e', 1)],
      },
    ],
  },
]);

async function crashInCleanup(world: World, fault: Fault): Promise<'triggered' | 'not reached'> {
  const options: ProcessOptions = { ensembles: [CLEANS] };
  const first = await world.open({ ...options, fault });
  const start = watched(first.subject.start('e'));
  await world.advance(1000);
  if (start.value) watched(first.subject.executions.cancel(start.value.id));
  await world.advance(1000);
  const isSurvivor = !first.control.triggered;
  if (!isSurvivor) await (await world.open(options)).subject.ready();
  const all = async () => world.reader.executions.list({ limit: 5 });
  await world.until('the end', async () => (await all()).every(({ status }) => isFinal(status)), 60_000);
  const names = labels(world).map((label) => label.replace(/@.*/, ''));
  const cleanup = names.indexOf('d');
  const late = names.slice(cleanup < 0 ? names.length : cleanup).filter((name) => name === 'b' || name === 'c');
  same(late, [], 'steps that began after the cleanup');
  check(!names.includes('b') || names.includes('e'), 'the block began, but its finally did not run');
  return isSurvivor ? 'not reached' : 'triggered';
}
