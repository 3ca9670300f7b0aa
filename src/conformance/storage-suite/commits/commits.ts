/** Storage suite: commits. Batches, their order, and the parts of one entry that are stored together. */

import {
  accept,
  change,
  claim,
  commitOne,
  end,
  entry,
  everything,
  execution,
  executionId,
  nextDueAt,
  numbers,
  register,
  retrying,
  type StorageCase,
  same,
  starting,
  step,
  stepKeys,
  T0,
  WORKER,
} from '../context.ts';

export function commitCases(it: StorageCase): void {
  it('commit: an entry with the answer `stored` is stored when `commit` returns', async (storage) => {
    await accept(storage, execution(1));
    same(await commitOne(storage, entry(1, { steps: [step('flow[0]')] })), 'stored', 'answer');
    same(await stepKeys(storage, 1), ['flow[0]'], 'steps');
  });

  it('commit: the answer to an empty batch is empty', async (storage) => {
    same(await storage.commit(WORKER, []), [], 'answers');
  });

  it('commit: the answer to an entry without content is `stored`', async (storage) => {
    await accept(storage, execution(1));
    same(await commitOne(storage, entry(1)), 'stored', 'answer');
    same((await storage.executions.get(executionId(1)))?.status, 'running', 'status');
  });

  it('commit: of concurrent ends, exactly one is stored', async (storage) => {
    await accept(storage, execution(1));
    const statuses = ['completed', 'failed', 'cancelled', 'timed_out'] as const;
    const answers = await Promise.all(statuses.map((status) => commitOne(storage, entry(1, { end: end({ status }) }))));
    same(answers.filter((answer) => answer === 'stored').length, 1, 'ends that were stored');
    same((await storage.executions.get(executionId(1)))?.status, statuses[answers.indexOf('stored')], 'status');
  });

  it('commit: returns one answer per entry, in the order of the entries', async (storage) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    const answers = await storage.commit(WORKER, [
      entry(1, { steps: [step('flow[0]')] }),
      entry(9, { steps: [step('flow[0]')] }),
      entry(2, { state: change(7, { a: 1 }) }),
      entry(3, { end: end() }),
      entry(1, { epoch: 2 }),
    ]);
    same(answers, ['stored', 'fenced', 'state-conflict', 'stored', 'fenced'], 'answers');
  });

  it('commit: a refused entry does not affect the other entries of the batch', async (storage) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    await storage.commit(WORKER, [
      entry(1, { epoch: 5, end: end() }),
      entry(2, { steps: [step('flow[0]')], state: change(3, { a: 1 }) }),
      entry(3, { steps: [step('flow[0]')], end: end() }),
    ]);
    same(await stepKeys(storage, 2), [], 'steps of the refused entry');
    same(await stepKeys(storage, 3), ['flow[0]'], 'steps of the stored entry');
    const statuses = await Promise.all(
      [1, 2, 3].map(async (number) => (await storage.executions.get(executionId(number)))?.status),
    );
    same(statuses, ['running', 'running', 'completed'], 'statuses');
  });

  it('commit: entries of one execution in one batch are applied in their order', async (storage) => {
    await accept(storage, execution(1));
    const answers = await storage.commit(WORKER, [
      entry(1, { steps: [step('flow[0]'), retrying('flow[1]', 1)] }),
      entry(1, { steps: [step('flow[1]', { attempts: 2 })] }),
      entry(1, { steps: [step('flow[2]')], end: end({ agents: 3 }) }),
      entry(1, { steps: [step('flow[3]')] }),
    ]);
    same(answers, ['stored', 'stored', 'stored', 'fenced'], 'answers');
    same(await stepKeys(storage, 1), ['flow[0]', 'flow[1]', 'flow[2]'], 'steps');
    const record = await storage.executions.get(executionId(1));
    same([record?.status, record?.agents[1]?.attempts], ['completed', 2], 'status, and attempts of the second step');
  });

  it('commit: an entry after the release of its execution in the same batch is fenced', async (storage) => {
    await accept(storage, execution(1));
    const answers = await storage.commit(WORKER, [
      entry(1, { steps: [step('flow[0]')], release: { status: 'waiting', dueAt: T0 + 100 } }),
      entry(1, { steps: [step('flow[1]')] }),
    ]);
    same(answers, ['stored', 'fenced'], 'answers');
    same(await stepKeys(storage, 1), ['flow[0]'], 'steps');
    same((await storage.executions.get(executionId(1)))?.status, 'waiting', 'status');
  });

  it('commit: a refused entry does not block the next entry of its execution', async (storage) => {
    await accept(storage, execution(1));
    const answers = await storage.commit(WORKER, [
      entry(1, { steps: [step('flow[0]')], state: change(4, { a: 1 }) }),
      entry(1, { steps: [step('flow[1]')] }),
    ]);
    same(answers, ['state-conflict', 'stored'], 'answers');
    same(await stepKeys(storage, 1), ['flow[1]'], 'steps');
  });

  it('commit: stores steps, state and end of one entry together', async (storage) => {
    await accept(storage, execution(1));
    const steps = [step('flow[0]'), step('flow[1]')];
    const whole = entry(1, { steps, state: change(0, { a: 1 }), end: end() });
    same(await commitOne(storage, whole), 'stored', 'answer');
    const record = await storage.executions.get(executionId(1));
    same(record?.status, 'completed', 'status');
    same(
      record?.agents.map(({ key }) => key),
      ['flow[0]', 'flow[1]'],
      'steps',
    );
    same((await storage.state.read('orders'))?.value, { a: 1 }, 'state');
  });

  it('commit: stores steps, state and release of one entry together', async (storage) => {
    await accept(storage, execution(1));
    const whole = entry(1, {
      steps: [step('flow[0]')],
      state: change(0, { a: 1 }),
      release: { status: 'waiting', dueAt: T0 + 100 },
    });
    same(await commitOne(storage, whole), 'stored', 'answer');
    const record = await storage.executions.get(executionId(1));
    same([record?.status, record?.agents.length], ['waiting', 1], 'status and runs');
    same((await storage.state.read('orders'))?.value, { a: 1 }, 'state');
    same(await nextDueAt(storage), T0 + 100, 'due');
  });

  it('commit: a batch with every kind of entry, stored and refused', async (storage) => {
    await register(storage);
    for (const number of [1, 2, 3, 4, 5]) await accept(storage, execution(number));
    await commitOne(storage, entry(5, { end: end() }));
    const before = await everything(storage, 4, 5, 9);
    const answers = await storage.commit(WORKER, [
      entry(4, { epoch: 2, steps: [step('flow[0]')], end: end() }),
      starting(execution(6), { steps: [step('flow[0]')] }),
      starting(execution(1, { seed: 'f'.repeat(32) }), { steps: [step('flow[9]')] }),
      entry(1, { steps: [step('flow[0]')] }),
      entry(9, { steps: [step('flow[0]')], state: change(0, { by: 9 }, 'nobody') }),
      starting(execution(7), { release: { status: 'queued', dueAt: T0 + 50 } }),
      entry(2, { steps: [step('flow[0]')], release: { status: 'waiting', dueAt: T0 + 100 } }),
      entry(4, { steps: [step('flow[0]')], state: change(8, { by: 4 }, 'nobody') }),
      entry(3, { steps: [retrying('flow[0]', 1)], state: change(0, { by: 3 }, 'theirs'), end: end() }),
      entry(5, { steps: [step('flow[0]')] }),
      entry(1, { steps: [step('flow[1]')] }),
    ]);
    const [stored, fenced] = ['stored', 'fenced'];
    const conflict = 'state-conflict';
    same(
      answers,
      [fenced, stored, 'exists', stored, fenced, stored, stored, conflict, stored, fenced, stored],
      'answers',
    );
    const of = async (number: number) => {
      const id = executionId(number);
      const record = await storage.executions.get(id);
      return [record?.status, record?.agents.length];
    };
    same(
      await Promise.all([1, 2, 3, 6, 7].map(of)),
      [
        ['running', 2],
        ['waiting', 1],
        ['completed', 1],
        ['running', 1],
        ['queued', 0],
      ],
      'status and runs',
    );
    same((await storage.state.read('theirs'))?.value, { by: 3 }, 'state');
    same(await storage.state.read('nobody'), undefined, 'state of the refused entries');
    same(numbers(await claim(storage)), [2, 7], 'claimed');
    same(await everything(storage, 4, 5, 9), before, 'what is stored of the refused entries');
  });

  it('commit: stores a batch of entries for 500 executions', async (storage) => {
    const numbers = Array.from({ length: 500 }, (_, i) => i);
    await Promise.all(numbers.map(async (number) => accept(storage, execution(number))));
    const answers = await storage.commit(
      WORKER,
      numbers.map((number) => entry(number, { steps: [step('flow[0]')], ...(number % 2 === 0 && { end: end() }) })),
    );
    same(answers.filter((answer) => answer === 'stored').length, 500, 'stored entries');
    same((await storage.executions.list({ status: 'running', limit: 250 })).length, 250, 'running executions');
  });

  it('commit: many concurrent commits of one execution are all stored', async (storage) => {
    await accept(storage, execution(1));
    const keys = Array.from({ length: 50 }, (_, i) => `flow[0].foreach[${i}].steps[0]`);
    const answers = await Promise.all(keys.map((key) => commitOne(storage, entry(1, { steps: [step(key)] }))));
    same([...new Set(answers)], ['stored'], 'answers');
    same((await stepKeys(storage, 1)).sort(), keys.sort(), 'keys');
  });
}
