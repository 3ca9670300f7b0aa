/** The storage suite's cases of ensemble state under its version check, of definitions under their hash, and of closing. */

import type { Storage } from '../../../engine/ports/storage.ts';
import {
  accept,
  change,
  commitOne,
  end,
  entry,
  execution,
  executionId,
  OWNER,
  type StorageCase,
  same,
  step,
  stepKeys,
  T0,
} from './context.ts';

export function stateCases(it: StorageCase): void {
  it('readState: undefined when none was ever set', async (storage) => {
    for (const ensemble of ['orders', 'constructor', '']) same(await storage.readState(ensemble), undefined, ensemble);
  });

  it('commit: a state change is stored with version 1 the first time, and counts on', async (storage) => {
    await accept(storage, execution(1));
    for (const version of [0, 1, 2]) {
      same(await commitOne(storage, entry(1, { state: change(version, { count: version }) })), 'stored', 'answer');
      same(
        await storage.readState('orders'),
        { value: { count: version }, version: version + 1, updatedAt: T0 + version },
        'state',
      );
    }
  });

  it('commit: a state is replaced, not merged', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { state: change(0, { a: 1, b: { c: 1 } }) }));
    await commitOne(storage, entry(1, { state: change(1, { b: {} }) }));
    same((await storage.readState('orders'))?.value, { b: {} }, 'state');
  });

  for (const [what, expectedVersion] of [
    ['an earlier', 0],
    ['a later', 2],
  ] as const) {
    it(`commit: ${what} version than the state's is a state conflict, and nothing of the entry is stored`, async (storage) => {
      await accept(storage, execution(1));
      await commitOne(storage, entry(1, { state: change(0, { a: 1 }) }));
      const refused = entry(1, { steps: [step('flow[0]')], state: change(expectedVersion, { a: 2 }), end: end() });
      same(await commitOne(storage, refused), 'state-conflict', 'answer');
      same(await storage.readState('orders'), { value: { a: 1 }, version: 1, updatedAt: T0 }, 'state');
      same(await stepKeys(storage, 1), [], 'steps');
      same((await storage.getExecution(executionId(1)))?.status, 'running', 'status');
    });
  }

  it('commit: a first change that expects a version is a state conflict', async (storage) => {
    await accept(storage, execution(1));
    same(await commitOne(storage, entry(1, { state: change(1, { a: 1 }) })), 'state-conflict', 'answer');
    same(await storage.readState('orders'), undefined, 'state');
  });

  it('commit: an entry that is fenced and has a state conflict is fenced', async (storage) => {
    await accept(storage, execution(1));
    same(await commitOne(storage, entry(1, { epoch: 2, state: change(4, { a: 1 }) })), 'fenced', 'answer');
  });

  it('commit: after a state conflict the same step is stored with the right version', async (storage) => {
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

  it('commit: two changes of one state in one batch: the first is stored, the second is a state conflict', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    const answers = await storage.commit(OWNER, [
      entry(1, { state: change(0, { by: 1 }) }),
      entry(2, { state: change(0, { by: 2 }) }),
    ]);
    same(answers, ['stored', 'state-conflict'], 'answers');
    same((await storage.readState('orders'))?.value, { by: 1 }, 'state');
  });

  it('commit: of many changes at the same time from one version, one alone is stored', async (storage) => {
    const numbers = Array.from({ length: 20 }, (_, i) => i);
    await Promise.all(numbers.map(async (number) => accept(storage, execution(number))));
    const answers = await Promise.all(numbers.map((by) => commitOne(storage, entry(by, { state: change(0, { by }) }))));
    same(answers.filter((answer) => answer === 'stored').length, 1, 'changes that were stored');
    same((await storage.readState('orders'))?.value, { by: answers.indexOf('stored') }, 'state');
  });

  it('no update is lost: 100 increments at the same time, each again after its conflict', async (storage) => {
    const numbers = Array.from({ length: 100 }, (_, i) => i);
    await Promise.all(numbers.map(async (number) => accept(storage, execution(number))));
    const refused = (
      await Promise.all(numbers.map(async (number) => ((await increments(storage, number)) ? [] : number)))
    ).flat();
    // Some at a time: each round of all of them stores one change, which takes a slow store minutes.
    const lane = async (of: readonly number[]) => {
      for (const number of of) await increment(storage, number);
    };
    await Promise.all([...Array(LANES).keys()].map((nr) => lane(refused.filter((_, i) => i % LANES === nr))));
    const { value, version } = (await storage.readState('orders')) ?? {};
    same([value?.count, version], [100, 100], 'count and version');
  });

  it('readState: each ensemble has a state of its own', async (storage) => {
    await accept(storage, execution(1));
    const of = async (ensemble: string) => (await storage.readState(ensemble))?.value;
    for (const ensemble of ['a', 'A', 'constructor'])
      await commitOne(storage, entry(1, { state: change(0, { of: ensemble }, ensemble) }));
    for (const ensemble of ['a', 'A', 'constructor']) same(await of(ensemble), { of: ensemble }, ensemble);
    same(await of('orders'), undefined, "the execution's own ensemble");
  });

  it('readState: what was handed out stays as it was when the state is changed', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { state: change(0, { list: [1] }) }));
    const before = await storage.readState('orders');
    await commitOne(storage, entry(1, { state: change(1, { list: [1, 2] }) }));
    same(before, { value: { list: [1] }, version: 1, updatedAt: T0 }, 'state');
  });

  it('readState: a state outlives the executions that set it', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { state: change(0, { a: 1 }), end: end() }));
    same((await storage.readState('orders'))?.value, { a: 1 }, 'state');
  });
}

const LANES = 10;

/** @returns whether it was stored; another change was faster otherwise */
async function increments(storage: Storage, number: number): Promise<boolean> {
  const before = await storage.readState('orders');
  const count = Number(before?.value.count ?? 0) + 1;
  const answer = await commitOne(storage, entry(number, { state: change(before?.version ?? 0, { count }) }));
  if (answer !== 'stored') same(answer, 'state-conflict', 'answer');
  return answer === 'stored';
}

async function increment(storage: Storage, number: number): Promise<void> {
  for (let tries = 0; tries < 1000; tries++) if (await increments(storage, number)) return;
  throw new Error('1,000 tries were all refused: some change must win each time');
}

export function definitionCases(it: StorageCase): void {
  const version = '0123456789abcdef0123456789abcdef';

  it('getDefinition: an unknown hash gives undefined', async (storage) => {
    for (const hash of [version, 'constructor', '']) same(await storage.getDefinition(hash), undefined, hash);
  });

  it('putDefinition: the definition and its needs come back as they were handed in', async (storage) => {
    const definition = {
      version,
      definition: { name: 'orders', flow: [{ agent: 'ä', config: { '': [null, 1.5] } }] },
      needs: ['operation:code', 'script:ä'],
    };
    await storage.putDefinition(definition);
    same(await storage.getDefinition(version), definition, 'definition');
  });

  it('putDefinition: does nothing when the hash is there', async (storage) => {
    const first = { version, definition: { name: 'orders', flow: [] }, needs: [] };
    await storage.putDefinition(first);
    await storage.putDefinition({ version, definition: { name: 'others', flow: [] }, needs: ['x'] });
    same(await storage.getDefinition(version), first, 'definition');
  });

  it('putDefinition: the same one many times at once, and others beside it', async (storage) => {
    const make = (hash: string) => ({ version: hash, definition: { name: hash, flow: [] }, needs: [] });
    await Promise.all(Array.from({ length: 20 }, async (_, i) => storage.putDefinition(make(`hash-${i % 4}`))));
    for (const hash of ['hash-0', 'hash-3']) same(await storage.getDefinition(hash), make(hash), hash);
  });

  it('capabilities: says whether commits may be shared', async (storage) => {
    same(typeof storage.capabilities.sharedCommits, 'boolean', 'type of sharedCommits');
  });

  it('close: a second time does nothing', async (storage) => {
    await accept(storage, execution(1));
    await storage.close();
    await storage.close();
  });

  it('close: a store that was never used', async (storage) => {
    await storage.close();
  });
}
