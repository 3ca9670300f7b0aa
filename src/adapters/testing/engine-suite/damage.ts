/** The engine suite's cases of a store that gives back less than it took: one run suffers, the others do not. */

import { OrchestratorError } from '../../../engine/errors.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import { same } from '../storage-suite/context.ts';
import { allEnded, type Declare, given, labels } from './context.ts';
import { code, echo, ensemble } from './steps.ts';
import type { World } from './world.ts';

const SLOW = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 2000 } }), echo('c', 3)], { c: '${c.output}' });
const RUNS = 5;

/** Five runs whose process died. @returns the id of one of them */
async function fiveLeftBehind(world: World): Promise<string> {
  const first = await world.open({ ensembles: [SLOW] });
  const handles = [];
  for (let i = 0; i < RUNS; i++) handles.push(await given(world, 'start', first.subject.start('e')));
  await world.advance(500);
  first.kill();
  return (handles[2] as { id: string }).id;
}

/** The other four complete, and this one has ended as failed. */
async function oneFails(world: World, id: string): Promise<void> {
  const ended = await allEnded(world, RUNS, 60_000);
  for (const { id: of, status, error } of ended) {
    const wanted = of === id ? ['failed', 'INTERNAL'] : ['completed', undefined];
    same([status, error?.code], wanted, of === id ? 'the damaged one' : 'another one');
  }
  same(labels(world, 2).filter((label) => label === 'c@1').length, RUNS - 1, 'how many came to their last step');
}

export function damageCases({ it }: Declare): void {
  it('T7: an execution that can not be read is ended; the others go on', async (world) => {
    const id = await fiveLeftBehind(world);
    const tamper = (storage: Storage): Storage =>
      changed(storage, {
        async claim(owner, query) {
          const claimed = await storage.claim(owner, query);
          return claimed.map((one) =>
            'execution' in one && one.execution.id === id
              ? { executionId: id, epoch: one.epoch, damage: new Error('bytes were flipped') }
              : one,
          );
        },
      });
    const second = await world.open({ ensembles: [SLOW], tamper });
    await second.subject.ready();
    await oneFails(world, id);
  });

  it('T7: a child that can not be read is ended, and its parent hears of it', async (world) => {
    const ensembles = [
      ensemble([{ ensemble: 'child' }, echo('c', '${child.error.code}', { condition: '${child.failed}' })], {
        c: '${c.output}',
      }),
      { name: 'child', flow: [code('b', 'slow', { input: { ms: 2000 } })] },
    ];
    const first = await world.open({ ensembles });
    const { id } = await given(world, 'start', first.subject.start('e'));
    await world.advance(500);
    first.kill();
    const tamper = (storage: Storage): Storage =>
      changed(storage, {
        async claim(owner, query) {
          const claimed = await storage.claim(owner, query);
          return claimed.map((one) => {
            if (!('execution' in one) || one.execution.ensemble !== 'child') return one;
            const { execution, epoch } = one;
            return { executionId: execution.id, epoch, parentId: id, damage: new Error('bytes were flipped') };
          });
        },
      });
    const second = await world.open({ ensembles, tamper });
    await second.subject.ready();
    const { status, output } = await world.ended(id, 60_000);
    same([status, output], ['completed', { c: 'EXECUTION_FAILED' }], 'its end');
    same(labels(world, 2), ['c@1'], 'what ran');
  });

  it('T7: an execution whose records can not be read is ended; the others go on', async (world) => {
    const id = await fiveLeftBehind(world);
    const tamper = (storage: Storage): Storage =>
      changed(storage, {
        listSteps(of, query) {
          if (of !== id) return storage.listSteps(of, query);
          throw new OrchestratorError('INTERNAL', 'a stored record is no JSON');
        },
      });
    const second = await world.open({ ensembles: [SLOW], tamper });
    await second.subject.ready();
    await oneFails(world, id);
  });

  for (const method of ['listSteps', 'getDefinition', 'claim', 'recover', 'survey'] as const) {
    it(`T6: a storage that fails once at ${method} while runs are taken up: all of them come to their ends`, async (world) => {
      await fiveLeftBehind(world);
      let failures = 0;
      const tamper = (storage: Storage): Storage =>
        changed(storage, {
          [method]: (...args: never[]) => {
            if (failures-- > 0) throw new Error('the storage is not there at the moment');
            return (storage[method] as (...args: never[]) => unknown).apply(storage, args);
          },
        });
      const second = await world.open({ ensembles: [SLOW], tamper });
      const ready = second.subject.ready();
      // `ready` asks for a definition itself; what fails is a call behind it.
      failures = method === 'getDefinition' ? 0 : 1;
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

function changed(storage: Storage, methods: Partial<Storage>): Storage {
  return new Proxy({} as Storage, {
    get(_empty, key) {
      if (key in methods) return Reflect.get(methods, key);
      const value: unknown = Reflect.get(storage, key);
      return typeof value === 'function' ? value.bind(storage) : value;
    },
    has: (_empty, key) => key in storage,
  });
}
