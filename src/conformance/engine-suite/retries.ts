/** The engine suite's cases of `retry`: the new execution receives the results of the steps that succeeded. */

import { same } from '../storage-suite/context.ts';
import { code, echo, ensemble } from './steps.ts';
import { atEachCall, type Declare, labels, resultOf, watched } from './world/context.ts';
import type { ProcessOptions } from './world/process.ts';
import type { World } from './world/world.ts';

const FLOW = ensemble(
  [
    echo('a', { r: '${random()}' }),
    { foreach: '${[0, 1]}', steps: [echo('b', { i: '${item}' })], name: 'each' },
    code('c', 'mended'),
    echo('d', { r: '${a.output.r}', c: '${c.output}' }),
  ],
  { c: '${c.output}', each: '${length(each.output)}', same: '${d.output.r == a.output.r}' },
);

/** The script `mended` fails until `mend()` is called. */
function breaking(): { readonly options: ProcessOptions; mend(): void } {
  let mended = false;
  const script = () => {
    if (mended) return 'mended';
    throw new Error('broken');
  };
  return {
    options: { ensembles: [FLOW], scripts: { mended: script } },
    mend() {
      mended = true;
    },
  };
}

async function fail(world: World, options: ProcessOptions): Promise<string> {
  const { subject } = await world.open(options);
  const { id, status } = await resultOf(world, 'the run', subject.execute('e'));
  same(status, 'failed', 'the run');
  await resultOf(world, 'closing', subject.close());
  return id;
}

export function retryCases({ it, itWorlds }: Declare): void {
  it('retry: a new execution with the results of the steps that succeeded', async (world) => {
    const { options, mend } = breaking();
    const failed = await fail(world, options);
    mend();
    const { subject } = await world.open(options);
    const handle = await resultOf(world, 'retry', subject.executions.retry(failed));
    const record = await resultOf(world, 'its result', handle.result());
    same(
      [record.status, record.retryOf, record.output],
      ['completed', failed, { c: 'mended', each: 2, same: true }],
      'the record',
    );
    same(
      record.agents.map(({ name }) => name),
      ['a', 'b', 'b', 'c', 'd'],
      'its agents',
    );
    same(labels(world, 2), ['c@1', 'd@1'], 'what it ran');
    same((await world.reader.executions.get(failed))?.status, 'failed', 'the execution that failed');
    for (const id of [failed, record.id])
      same(
        (await resultOf(world, 'retry again', subject.executions.retry(id))).id,
        record.id,
        'the retry of what completed',
      );
    same((await world.reader.executions.get(failed))?.retriedBy, record.id, 'the link to the retry');
  });

  it('retry: a queued retry keeps the results that it received', async (world) => {
    const { options, mend } = breaking();
    const failed = await fail(world, options);
    mend();
    const client = await world.open({ ...options, engine: { concurrency: 0 } });
    const { id } = await resultOf(world, 'retry', client.subject.executions.retry(failed));
    same((await world.reader.executions.get(id))?.status, 'queued', 'its status');
    const { subject } = await world.open(options);
    await resultOf(world, 'ready', subject.ready());
    same((await world.ended(id)).status, 'completed', 'its end');
    same(labels(world, 3), ['c@1', 'd@1'], 'what it ran');
  });

  itWorlds('retry: a crash at every commit: steps whose results it received do not run again', (inWorld) =>
    atEachCall('the process that retries dies at a commit', (at, when) =>
      inWorld(async (world) => {
        const { options, mend } = breaking();
        const failed = await fail(world, options);
        mend();
        const second = await world.open({ ...options, fault: { method: 'commit', at, when, then: 'kill' } });
        const retry = watched(second.subject.executions.retry(failed));
        await world.until('the crash', () => second.control.triggered || retry.state !== 'pending');
        const result = retry.value && watched(retry.value.result());
        await world.until('the crash', () => second.control.triggered || result?.state === 'fulfilled');
        if (!second.control.triggered) return 'not reached';
        const third = await world.open(options);
        await third.subject.ready();
        const [again] = (await world.reader.executions.list({ limit: 2 })).filter(({ id }) => id !== failed);
        if (!again) {
          same(labels(world, 2), [], 'effects of a retry that was not accepted');
          return 'triggered';
        }
        const { status, retryOf, output } = await world.ended(again.id);
        const wanted = ['completed', failed, { c: 'mended', each: 2, same: true }];
        same([status, retryOf, output], wanted, 'the record');
        for (const [label, count] of world.history.counts(({ process }) => process > 1)) {
          if (/^[ab]/.test(label) || count > 2) throw new Error(`${label} had its effect ${count} times`);
        }
        return 'triggered';
      }),
    ),
  );
}
