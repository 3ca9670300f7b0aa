/** The engine suite's cases of an ensemble's state: no change is lost, and decisions that were based on it stay. */

import { same } from '../storage-suite/context.ts';
import { code, echo, ensemble } from './steps.ts';
import { allEnded, atEachCall, type Declare, labels, watched } from './world/context.ts';

const add = { setState: { count: '${state.count + 1}' } };
const count = { state: { initial: { count: 0 } } };
const COUNTING = ensemble([echo('a', 1, add), echo('b', 2, add), echo('c', 3, add)], {}, count);
const RUNS = 3;

export function stateCases({ it, itWorlds }: Declare): void {
  itWorlds(
    'state: three executions at once and a crash at every commit: every change is applied exactly once',
    (inWorld) =>
      atEachCall('the process dies at a commit', (at, when) =>
        inWorld(async (world) => {
          const options = { ensembles: [COUNTING] };
          const first = await world.open({ ...options, fault: { method: 'commit', at, when, then: 'kill' } });
          await first.subject.ready();
          const starts = Array.from({ length: RUNS }, () => watched(first.subject.start('e')));
          await world.advance(1);
          const accepted = (await world.reader.executions.list({ limit: 10 })).length;
          if (!first.control.triggered) {
            same(
              starts.map(({ state }) => state),
              Array(RUNS).fill('fulfilled'),
              'the starts',
            );
            same((await world.reader.state.read('e'))?.value, { count: 3 * RUNS }, 'the state without a crash');
            return 'not reached';
          }
          const second = await world.open(options);
          await second.subject.ready();
          const ended = await allEnded(world, accepted);
          same(
            ended.map(({ status }) => status),
            Array(accepted).fill('completed'),
            'how they ended',
          );
          const changed = (await world.reader.state.read('e'))?.value ?? { count: 0 };
          same(changed, { count: 3 * accepted }, 'the state');
          return 'triggered';
        }),
      ),
  );

  it('state: the decision of a condition stays, even if another execution changes the state before recovery', async (world) => {
    const guarded = ensemble(
      [
        {
          if: '${input.sets}',
          then: [echo('set', 1, { setState: { count: '${10}' } })],
          else: [
            {
              if: '${state.count == 0}',
              then: [code('low', 'slow', { input: { ms: 1000 } })],
              else: [echo('high', 1)],
            },
            echo('seen', '${state.count}'),
          ],
        },
      ],
      { low: '${low.executed}', high: '${high.executed}', seen: '${seen.output}' },
      count,
    );
    const first = await world.open({ ensembles: [guarded] });
    const run = watched(first.subject.start('e', { sets: false }));
    await world.advance(500);
    watched(first.subject.execute('e', { sets: true }));
    await world.advance(100);
    first.kill();
    const second = await world.open({ ensembles: [guarded] });
    await second.subject.ready();
    const { output } = await world.ended(run.value?.id ?? '');
    same(output, { low: true, high: false, seen: 10 }, 'its output');
    same(labels(world, 2), ['low@1', 'seen@1'], 'what the second process ran');
  });
}
