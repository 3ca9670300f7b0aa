/** Storage suite: the state of ensembles with its version check. */

import type { Storage } from '../../engine/storage/storage.port.ts';
import {
  accept,
  change,
  commitOne,
  EVERY_KIND,
  end,
  entry,
  execution,
  executionId,
  frozen,
  OTHER,
  type StorageCase,
  same,
  step,
  stepKeys,
  T0,
  WORKER,
} from './context.ts';

export function stateCases(it: StorageCase): void {
  it('read: returns undefined if no state was set', async (storage) => {
    for (const ensemble of ['orders', 'constructor', '']) same(await storage.state.read(ensemble), undefined, ensemble);
  });

  it('commit: the first state change has version 1, and each change increments it', async (storage) => {
    await accept(storage, execution(1));
    for (const version of [0, 1, 2]) {
      same(await commitOne(storage, entry(1, { state: change(version, { count: version }) })), 'stored', 'answer');
      same(
        await storage.state.read('orders'),
        { value: { count: version }, version: version + 1, updatedAt: T0 + version },
        'state',
      );
    }
  });

  it('commit: a state change replaces the state and does not merge it', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { state: change(0, { a: 1, b: { c: 1 } }) }));
    await commitOne(storage, entry(1, { state: change(1, { b: {} }) }));
    same((await storage.state.read('orders'))?.value, { b: {} }, 'state');
  });

  for (const [what, expectedVersion] of [
    ['an earlier', 0],
    ['a later', 2],
  ] as const) {
    it(`commit: a state change that expects ${what} version is a state conflict, and nothing of the entry is stored`, async (storage) => {
      await accept(storage, execution(1));
      await commitOne(storage, entry(1, { state: change(0, { a: 1 }) }));
      const refused = entry(1, { steps: [step('flow[0]')], state: change(expectedVersion, { a: 2 }), end: end() });
      same(await commitOne(storage, refused), 'state-conflict', 'answer');
      same(await storage.state.read('orders'), { value: { a: 1 }, version: 1, updatedAt: T0 }, 'state');
      same(await stepKeys(storage, 1), [], 'steps');
      same((await storage.executions.get(executionId(1)))?.status, 'running', 'status');
    });
  }

  it('commit: a first state change that expects a version other than 0 is a state conflict', async (storage) => {
    await accept(storage, execution(1));
    same(await commitOne(storage, entry(1, { state: change(1, { a: 1 }) })), 'state-conflict', 'answer');
    same(await storage.state.read('orders'), undefined, 'state');
  });

  it('commit: the answer to an entry that is fenced and has a state conflict is `fenced`', async (storage) => {
    await accept(storage, execution(1));
    same(await commitOne(storage, entry(1, { epoch: 2, state: change(4, { a: 1 }) })), 'fenced', 'answer');
  });

  it('commit: after a state conflict, the same step with the right version is stored', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { state: change(0, { a: 1 }) }));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')], state: change(0, { a: 2 }) }));
    same(
      await commitOne(storage, entry(1, { steps: [step('flow[0]')], state: change(1, { a: 2 }) })),
      'stored',
      'answer',
    );
    same(await stepKeys(storage, 1), ['flow[0]'], 'steps');
  });

  it('commit: of two changes of one version in a batch, the first is stored, and the second is a state conflict', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    const answers = await storage.commit(WORKER, [
      entry(1, { state: change(0, { by: 1 }) }),
      entry(2, { state: change(0, { by: 2 }) }),
    ]);
    same(answers, ['stored', 'state-conflict'], 'answers');
    same((await storage.state.read('orders'))?.value, { by: 1 }, 'state');
  });

  it('commit: of many concurrent changes of one version, exactly one is stored', async (storage) => {
    const numbers = Array.from({ length: 20 }, (_, i) => i);
    await Promise.all(numbers.map(async (number) => accept(storage, execution(number))));
    const answers = await Promise.all(numbers.map((by) => commitOne(storage, entry(by, { state: change(0, { by }) }))));
    same(answers.filter((answer) => answer === 'stored').length, 1, 'stored changes');
    same((await storage.state.read('orders'))?.value, { by: answers.indexOf('stored') }, 'state');
  });

  it('commit: 100 concurrent increments of a state, each repeated after a conflict, are all counted', async (storage) => {
    const numbers = Array.from({ length: 100 }, (_, i) => i);
    await Promise.all(numbers.map(async (number) => accept(storage, execution(number))));
    const refused = (
      await Promise.all(numbers.map(async (number) => ((await increments(storage, number)) ? [] : number)))
    ).flat();
    // LANES at a time: each round of all of them would store one change only, which takes minutes on a slow store.
    const lane = async (of: readonly number[]) => {
      for (const number of of) await increment(storage, number);
    };
    await Promise.all([...Array(LANES).keys()].map((nr) => lane(refused.filter((_, i) => i % LANES === nr))));
    const { value, version } = (await storage.state.read('orders')) ?? {};
    same([value?.count, version], [100, 100], 'count and version');
  });

  it('read: each ensemble has its own state', async (storage) => {
    await accept(storage, execution(1));
    const of = async (ensemble: string) => (await storage.state.read(ensemble))?.value;
    for (const ensemble of ['a', 'A', 'constructor'])
      await commitOne(storage, entry(1, { state: change(0, { of: ensemble }, ensemble) }));
    for (const ensemble of ['a', 'A', 'constructor']) same(await of(ensemble), { of: ensemble }, ensemble);
    same(await of('orders'), undefined, "the execution's own ensemble");
  });

  it('read: a returned state does not change when the state is changed', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { state: change(0, { list: [1] }) }));
    const before = await storage.state.read('orders');
    await commitOne(storage, entry(1, { state: change(1, { list: [1, 2] }) }));
    same(before, { value: { list: [1] }, version: 1, updatedAt: T0 }, 'state');
  });

  it('write: replaces a state from its version, and runs notice the change', async (storage) => {
    const write = async (expectedVersion: number, value: Record<string, number>) =>
      storage.state.write('orders', frozen({ expectedVersion, value, updatedAt: T0 + 9 }));
    same(await write(1, { a: 1 }), false, 'a state that does not exist');
    same(await write(0, { a: 1 }), true, 'the first');
    same(await storage.state.read('orders'), { value: { a: 1 }, version: 1, updatedAt: T0 + 9 }, 'state');
    same(await write(0, { a: 2 }), false, 'an earlier version');
    await accept(storage, execution(1));
    same(await commitOne(storage, entry(1, { state: change(0, { b: 1 }) })), 'state-conflict', 'a run that read none');
    same(await commitOne(storage, entry(1, { state: change(1, { b: 1 }) })), 'stored', 'a run that read it');
    same(await write(1, { c: 1 }), false, 'after the change of the run');
    const made = [1, 2, 3, 4].map((by) => write(2, { by }));
    same((await Promise.all(made)).filter(Boolean).length, 1, 'stored of concurrent changes');
    same((await storage.state.read('orders'))?.version, 3, 'version');
  });

  it('read: a state outlives the executions that set it', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { state: change(0, { a: 1 }), end: end() }));
    same((await storage.state.read('orders'))?.value, { a: 1 }, 'state');
  });
}

const LANES = 10;

/** Makes one attempt. @returns false if another change came first */
async function increments(storage: Storage, number: number): Promise<boolean> {
  const before = await storage.state.read('orders');
  const count = Number(before?.value.count ?? 0) + 1;
  const answer = await commitOne(storage, entry(number, { state: change(before?.version ?? 0, { count }) }));
  if (answer !== 'stored') same(answer, 'state-conflict', 'answer');
  return answer === 'stored';
}

async function increment(storage: Storage, number: number): Promise<void> {
  for (let tries = 0; tries < 1000; tries++) if (await increments(storage, number)) return;
  throw new Error('1,000 attempts had a state conflict; of concurrent changes, one must be stored each time');
}

/** For stores that outlive their handle. */
export function reopenedStateCases(it: StorageCase): void {
  it('reopen: states keep their values and versions, and the next change expects the stored version', async (storage, reopen) => {
    await accept(storage, execution(1));
    const names = ['orders', 'Orders', 'constructor', 'ä漢👍'];
    for (const [i, name] of names.entries()) {
      await commitOne(storage, entry(1, { state: change(0, { i, ...EVERY_KIND }, name) }));
    }
    await commitOne(storage, entry(1, { state: change(1, EVERY_KIND) }));
    const before = await Promise.all(names.map((name) => storage.state.read(name)));
    same(before[0], { value: EVERY_KIND, version: 2, updatedAt: T0 + 1 }, 'state of orders');
    const next = await reopen();
    same(await Promise.all(names.map((name) => next.state.read(name))), before, 'states');
    await accept(next, execution(2), OTHER);
    same(await commitOne(next, entry(2, { state: change(1, {}) }), OTHER), 'state-conflict', 'an earlier version');
    same(await commitOne(next, entry(2, { state: change(2, {}) }), OTHER), 'stored', 'the stored version');
    same(await next.state.read('orders'), { value: {}, version: 3, updatedAt: T0 + 2 }, 'state after the change');
  });
}
