/** The engine suite's cases of damaged data and failing storage calls: one execution fails, the others are not affected. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { NewExecution } from '../../engine/execution/stored-execution.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import { callPart } from '../../engine/storage/storage-methods.port.ts';
import { changeStorage } from '../../testing-kit/processes/change-storage.ts';
import { same } from '../storage-suite/context.ts';
import { code, echo, ensemble } from './steps.ts';
import { allEnded, type Declare, labels, resultOf } from './world/context.ts';
import type { StorageWorld } from './world/storage-world.ts';
import type { World } from './world/world.ts';

const SLOW = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 2000 } }), echo('c', 3)], { c: '${c.output}' });
const RUNS = 5;

/** Starts five executions and kills their process. @returns the id of one of them */
async function killFiveRuns(world: World): Promise<string> {
  const first = await world.open({ ensembles: [SLOW] });
  const handles = [];
  for (let i = 0; i < RUNS; i++) handles.push(await resultOf(world, 'start', first.subject.start('e')));
  await world.advance(500);
  first.kill();
  return (handles[2] as { id: string }).id;
}

/** Checks that this execution fails and the other four complete. */
async function oneFails(world: World, id: string): Promise<void> {
  const ended = await allEnded(world, RUNS, 60_000);
  for (const { id: of, status, error } of ended) {
    const wanted = of === id ? ['failed', 'INTERNAL'] : ['completed', undefined];
    same([status, error?.code], wanted, of === id ? 'the damaged one' : 'another one');
  }
  same(labels(world, 2).filter((label) => label === 'c@1').length, RUNS - 1, 'how many reached their last step');
}

/** Changes a storage: some executions can't be read when they are claimed. */
function damageClaimed(isDamaged: (execution: NewExecution) => boolean): (storage: Storage) => Storage {
  const damage = new Error('bytes were flipped');
  return (storage) =>
    changeStorage(storage, {
      executions: {
        async claim(worker, query) {
          const claimed = await storage.executions.claim(worker, query);
          return claimed.map((one) => {
            if ('damage' in one || !isDamaged(one.execution)) return one;
            const { id: executionId, trigger } = one.execution;
            const { parentId } = trigger;
            return { executionId, epoch: one.epoch, damage, ...(parentId !== undefined && { parentId }) };
          });
        },
      },
    });
}

const CALLS_OF_RESUMING = [
  ['executions', 'listSteps'],
  ['definitions', 'get'],
  ['executions', 'claim'],
  ['workers', 'reclaimFromDead'],
  ['executions', 'poll'],
] as const;

export function damageCases({ it }: Declare<StorageWorld>): void {
  it('an execution that cannot be read fails; the others continue', async (world) => {
    const id = await killFiveRuns(world);
    const tamper = damageClaimed((one) => one.id === id);
    const second = await world.open({ ensembles: [SLOW], engine: { tamper } });
    await second.subject.ready();
    await oneFails(world, id);
  });

  for (const how of ['can not be read', 'is another one than was stored'] as const) {
    it(`executions whose definition ${how} fail with the reason; others run`, async (world) => {
      await killFiveRuns(world);
      const tamper = (storage: Storage) =>
        changeStorage(storage, {
          definitions: {
            async get(version) {
              const stored = await storage.definitions.get(version);
              if (!stored) return undefined;
              if (how !== 'can not be read') return { ...stored, definition: { name: 'e' } };
              throw new OrchestratorError('INTERNAL', 'the row is damaged', {
                details: { row: `definition ${version}` },
              });
            },
          },
        });
      const other = ensemble([echo('x', 1)], { x: '${x.output}' });
      const second = await world.open({ ensembles: [other], engine: { tamper } });
      await second.subject.ready();
      for (const { status, error } of await allEnded(world, RUNS, 60_000))
        same(
          [status, error?.code, error?.message.includes('definition')],
          ['failed', 'INTERNAL', true],
          'a damaged one',
        );
      same((await resultOf(world, 'another run', second.subject.execute('e'))).status, 'completed', 'another run');
    });
  }

  it('a child execution that cannot be read fails, and its parent receives the failure', async (world) => {
    const ensembles = [
      ensemble([{ ensemble: 'child' }, echo('c', '${child.error.code}', { condition: '${child.failed}' })], {
        c: '${c.output}',
      }),
      { name: 'child', flow: [code('b', 'slow', { input: { ms: 2000 } })] },
    ];
    const first = await world.open({ ensembles });
    const { id } = await resultOf(world, 'start', first.subject.start('e'));
    await world.advance(500);
    first.kill();
    const tamper = damageClaimed((one) => one.ensemble === 'child');
    const second = await world.open({ ensembles, engine: { tamper } });
    await second.subject.ready();
    const { status, output } = await world.ended(id, 60_000);
    same([status, output], ['completed', { c: 'EXECUTION_FAILED' }], 'its end');
    same(labels(world, 2), ['c@1'], 'what ran');
  });

  it('an execution whose records cannot be read fails; the others continue', async (world) => {
    const id = await killFiveRuns(world);
    const tamper = (storage: Storage): Storage =>
      changeStorage(storage, {
        executions: {
          listSteps(of, query) {
            if (of !== id) return storage.executions.listSteps(of, query);
            throw new OrchestratorError('INTERNAL', 'a stored record is not valid JSON');
          },
        },
      });
    const second = await world.open({ ensembles: [SLOW], engine: { tamper } });
    await second.subject.ready();
    await oneFails(world, id);
  });

  for (const [part, method] of CALLS_OF_RESUMING) {
    it(`a storage that fails once at ${part}.${method} while executions are resumed: all of them complete`, async (world) => {
      await killFiveRuns(world);
      let failures = 0;
      const tamper = (storage: Storage): Storage =>
        changeStorage(storage, {
          [part]: {
            [method]: (...args: unknown[]) => {
              if (failures-- > 0) throw new Error('the storage is not available at the moment');
              return callPart(storage, part, method, args);
            },
          },
        });
      const second = await world.open({ ensembles: [SLOW], engine: { tamper } });
      const ready = second.subject.ready();
      // `ready` itself reads a definition, so the failure is set for a later call.
      failures = part === 'definitions' ? 0 : 1;
      await ready;
      failures = 1;
      const ended = await allEnded(world, RUNS, 120_000);
      same(
        ended.map(({ status }) => status),
        Array(RUNS).fill('completed'),
        'how they ended',
      );
    });
  }
}
