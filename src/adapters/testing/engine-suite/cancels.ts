/** The engine suite's cases of stopping: what runs, what waits, what is queued, and what nobody has in hand. */

import { isFinal } from '../../../engine/model/execution.ts';
import { same } from '../storage-suite/context.ts';
import { atEachCall, becomes, check, type Declare, given, labels, refused, watched } from './context.ts';
import type { Fate } from './life.ts';
import type { ProcessOptions } from './process.ts';
import { code, echo, ensemble, flaky } from './steps.ts';
import type { World } from './world.ts';

const SLOW = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 10_000 } }), echo('c', 3)], { a: '${a.output}' });
const WAITS = ensemble(
  [echo('a', 1), flaky('b', 2, { maxAttempts: 2, backoff: 'fixed', delay: 600_000 }), echo('c', 3)],
  { a: '${a.output}' },
);
const CANCELLED = ['cancelled', 'EXECUTION_CANCELLED', { a: 1 }];

export function cancelCases({ it, itWorlds }: Declare): void {
  it('cancel: a run at work stops at once, and its outputs are what was stored', async (world) => {
    const { subject } = await world.open({ ensembles: [SLOW] });
    const handle = await given(world, 'start', subject.start('e'));
    await world.advance(1000);
    await given(world, 'cancel', subject.executions.cancel(handle.id));
    const { status, error, output } = await given(world, 'the end', handle.result(), 1000);
    same([status, error?.code, output], CANCELLED, 'its end');
    same(labels(world), ['a@1', 'b@1'], 'what ran');
    same((await given(world, 'cancel again', subject.executions.cancel(handle.id))).status, 'cancelled', 'again');
  });

  it('cancel: a run that waits ends without another step', async (world) => {
    const { subject } = await world.open({ ensembles: [WAITS] });
    const handle = await given(world, 'start', subject.start('e'));
    await becomes(world, handle.id, 'waiting', 5000);
    await given(world, 'cancel', subject.executions.cancel(handle.id));
    const { status, error, output } = await given(world, 'the end', handle.result(), 2000);
    same([status, error?.code, output], CANCELLED, 'its end');
    same(labels(world), ['a@1', 'b@1'], 'what ran');
  });

  it('cancel: by the signal of the caller, also of a run that waits', async (world) => {
    const { subject } = await world.open({ ensembles: [WAITS] });
    const controller = new AbortController();
    const run = watched(subject.execute('e', {}, { signal: controller.signal }));
    await world.advance(10_000);
    controller.abort();
    await world.until('the end', () => run.state !== 'open', 2000);
    same([run.value?.status, run.value?.error?.code, run.value?.output], CANCELLED, 'its end');
  });

  it('cancel: what is queued ends at once, and never begins', async (world) => {
    const { subject } = await world.open({ ensembles: [SLOW], engine: { concurrency: 1 } });
    await given(world, 'start', subject.start('e'));
    const queued = await given(world, 'start', subject.start('e'));
    same((await given(world, 'cancel', subject.executions.cancel(queued.id))).status, 'cancelled', 'at once');
    const { status, error, output } = await given(world, 'its result', queued.result(), 1000);
    same([status, error?.code, output], ['cancelled', 'EXECUTION_CANCELLED', null], 'its end');
    await world.advance(60_000);
    same(labels(world), ['a@1', 'b@1', 'c@1'], 'what ran');
  });

  for (const [what, definition] of [
    ['at work', SLOW],
    ['waiting', WAITS],
  ] as const) {
    it(`cancel: a run that was ${what} when its process died is stopped by another, which runs no step of it`, async (world) => {
      const first = await world.open({ ensembles: [definition] });
      const { id } = await given(world, 'start', first.subject.start('e'));
      await world.advance(5000);
      first.kill();
      const second = await world.open({ ensembles: [definition] });
      await given(world, 'cancel', second.subject.executions.cancel(id));
      await second.subject.ready();
      const { status, error, output } = await world.ended(id, 60_000);
      same([status, error?.code, output], CANCELLED, 'its end');
      same(labels(world, 2), [], 'what the second process ran');
    });
  }

  it('cancel: what has ended stays as it ended', async (world) => {
    const { subject } = await world.open({ ensembles: [ensemble([echo('a', 1)])] });
    const { id } = await given(world, 'the run', subject.execute('e'));
    await refused(world, 'CONFLICT', subject.executions.cancel(id));
    same((await world.reader.getExecution(id))?.status, 'completed', 'its status');
  });

  itWorlds('cancel: a crash at every call of a run that is stopped: once asked for, it is never forgotten', (inWorld) =>
    atEachCall('the process that is asked to cancel dies', (at, when) =>
      inWorld(async (world) => {
        const short = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 2000 } }), echo('c', 3)]);
        const options: ProcessOptions = { ensembles: [short] };
        const first = await world.open({ ...options, fate: { method: 'any', at, when, then: 'dies' } });
        const start = watched(first.subject.start('e'));
        await world.advance(1000);
        const cancel = start.value && watched(first.subject.executions.cancel(start.value.id));
        await world.advance(1000);
        if (!first.life.struck) {
          same(await statuses(), ['cancelled'], 'without a crash');
          return 'survives';
        }
        const second = await world.open(options);
        await second.subject.ready();
        const isOver = async () => (await statuses()).every((status) => isFinal(status));
        await world.until('the end', isOver, 60_000);
        const found = await statuses();
        // A cancel that was never answered may be lost with its process; one that was must not be.
        const wanted = cancel?.state === 'given' ? ['cancelled'] : ['cancelled', 'completed'];
        check(
          found.every((status) => wanted.includes(status)),
          `it ended as ${found.join(', ')}`,
        );
        return 'struck';

        async function statuses() {
          return (await world.reader.listExecutions({ limit: 5 })).map(({ status }) => status);
        }
      }),
    ),
  );

  itWorlds(
    'cancel: a crash at every commit of a run that cleans up: what was stopped never begins behind that',
    async (inWorld) => {
      const die = (fate: Omit<Fate, 'then'>) => inWorld((world) => dieInCleanup(world, { ...fate, then: 'dies' }));
      await atEachCall('the process that cleans up dies', (at, when) => die({ method: 'commit', at, when }));
      await die({ method: 'requestCancel', at: 1, when: 'before' });
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

async function dieInCleanup(world: World, fate: Fate): Promise<'struck' | 'survives'> {
  const options: ProcessOptions = { ensembles: [CLEANS] };
  const first = await world.open({ ...options, fate });
  const start = watched(first.subject.start('e'));
  await world.advance(1000);
  if (start.value) watched(first.subject.executions.cancel(start.value.id));
  await world.advance(1000);
  const isSurvivor = !first.life.struck;
  if (!isSurvivor) await (await world.open(options)).subject.ready();
  const all = async () => world.reader.listExecutions({ limit: 5 });
  await world.until('the end', async () => (await all()).every(({ status }) => isFinal(status)), 60_000);
  const names = labels(world).map((label) => label.replace(/@.*/, ''));
  const cleanup = names.indexOf('d');
  const late = names.slice(cleanup < 0 ? names.length : cleanup).filter((name) => name === 'b' || name === 'c');
  same(late, [], 'what began behind the cleanup');
  check(!names.includes('b') || names.includes('e'), 'what began was not cleaned up');
  return isSurvivor ? 'survives' : 'struck';
}
