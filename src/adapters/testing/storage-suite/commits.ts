/** The storage suite's cases of accepting and committing: fences, atomicity, the order of answers, records that are replaced. */

import {
  change,
  commitOne,
  end,
  entry,
  execution,
  executionId,
  refusesAsConflict,
  retrying,
  type StorageCase,
  same,
  step,
  stepKeys,
} from './context.ts';

export function acceptCases(it: StorageCase): void {
  it('accept: the execution is stored when it returns', async (storage) => {
    await storage.accept(execution(1));
    same((await storage.getExecution(executionId(1)))?.status, 'running', 'status');
  });

  it('accept: an id that is there already is refused with CONFLICT, and nothing is changed', async (storage) => {
    await storage.accept(execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')] }));
    const before = await storage.getExecution(executionId(1));
    await refusesAsConflict(() => storage.accept(execution(1, { ensemble: 'others', input: 'other', epoch: 2 })));
    same(await storage.getExecution(executionId(1)), before, 'record after the refusal');
    same(await commitOne(storage, entry(1, { steps: [step('flow[1]')] })), 'stored', 'commit with the first epoch');
  });

  it('accept: the id of an execution that has ended is refused too', async (storage) => {
    await storage.accept(execution(1));
    await commitOne(storage, entry(1, { end: end() }));
    await refusesAsConflict(() => storage.accept(execution(1)));
    same((await storage.getExecution(executionId(1)))?.status, 'completed', 'status');
  });

  it('accept: of several calls with one id at the same time, one alone is taken', async (storage) => {
    const attempts = Array.from({ length: 10 }, async (_, i) => storage.accept(execution(1, { input: i })));
    const outcomes = await Promise.allSettled(attempts);
    const taken = outcomes.flatMap(({ status }, i) => (status === 'fulfilled' ? [i] : []));
    same(taken.length, 1, 'calls that were taken');
    same((await storage.getExecution(executionId(1)))?.input, taken[0], 'the input that is stored');
  });

  it('accept: many executions at the same time are all there', async (storage) => {
    await Promise.all(Array.from({ length: 50 }, async (_, i) => storage.accept(execution(i))));
    same((await storage.listExecutions({ limit: 250 })).length, 50, 'executions');
  });
}

export function commitCases(it: StorageCase): void {
  it('commit: the answer of an entry that is stored is `stored`, and it is there when commit returns', async (storage) => {
    await storage.accept(execution(1));
    same(await commitOne(storage, entry(1, { steps: [step('flow[0]')] })), 'stored', 'answer');
    same(await stepKeys(storage, 1), ['flow[0]'], 'steps');
  });

  it('commit: an empty batch has no answers', async (storage) => {
    same(await storage.commit([]), [], 'answers');
  });

  it('commit: an entry that holds nothing is stored', async (storage) => {
    await storage.accept(execution(1));
    same(await commitOne(storage, entry(1)), 'stored', 'answer');
    same((await storage.getExecution(executionId(1)))?.status, 'running', 'status');
  });

  it('commit: an unknown execution is fenced', async (storage) => {
    same(
      await commitOne(storage, entry(1, { steps: [step('flow[0]')], state: change(0, { a: 1 }), end: end() })),
      'fenced',
      'answer',
    );
    same(await storage.getExecution(executionId(1)), undefined, 'record');
    same(await stepKeys(storage, 1), [], 'steps');
    same(await storage.readState('orders'), undefined, 'state');
  });

  for (const [what, epoch] of [
    ['an earlier', 1],
    ['a later', 3],
  ] as const) {
    it(`commit: ${what} epoch than the execution's is fenced, and nothing is stored`, async (storage) => {
      await storage.accept(execution(1, { epoch: 2 }));
      const refused = entry(1, { epoch, steps: [step('flow[0]')], state: change(0, { a: 1 }), end: end() });
      same(await commitOne(storage, refused), 'fenced', 'answer');
      same((await storage.getExecution(executionId(1)))?.status, 'running', 'status');
      same(await stepKeys(storage, 1), [], 'steps');
      same(await storage.readState('orders'), undefined, 'state');
      same(await commitOne(storage, { ...refused, epoch: 2 }), 'stored', "the owner's own commit");
    });
  }

  it('commit: an execution that has ended is fenced: its record never changes', async (storage) => {
    await storage.accept(execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')], end: end() }));
    const before = await storage.getExecution(executionId(1));
    same(
      await commitOne(storage, entry(1, { steps: [step('flow[1]')], state: change(0, { a: 1 }) })),
      'fenced',
      'a step',
    );
    same(await commitOne(storage, entry(1, { end: end({ status: 'failed' }) })), 'fenced', 'another end');
    same(await commitOne(storage, entry(1)), 'fenced', 'an entry that holds nothing');
    same(await storage.getExecution(executionId(1)), before, 'record');
    same(await storage.readState('orders'), undefined, 'state');
  });

  it('commit: of several ends at the same time, one alone is stored', async (storage) => {
    await storage.accept(execution(1));
    const statuses = ['completed', 'failed', 'cancelled', 'timed_out'] as const;
    const answers = await Promise.all(statuses.map((status) => commitOne(storage, entry(1, { end: end({ status }) }))));
    same(answers.filter((answer) => answer === 'stored').length, 1, 'ends that were stored');
    same((await storage.getExecution(executionId(1)))?.status, statuses[answers.indexOf('stored')], 'status');
  });

  it('commit: one answer an entry, in the order of the entries', async (storage) => {
    for (const number of [1, 2, 3]) await storage.accept(execution(number));
    const answers = await storage.commit([
      entry(1, { steps: [step('flow[0]')] }),
      entry(9, { steps: [step('flow[0]')] }),
      entry(2, { state: change(7, { a: 1 }) }),
      entry(3, { end: end() }),
      entry(1, { epoch: 2 }),
    ]);
    same(answers, ['stored', 'fenced', 'state-conflict', 'stored', 'fenced'], 'answers');
  });

  it('commit: an entry that is refused touches none of the others in the batch', async (storage) => {
    for (const number of [1, 2, 3]) await storage.accept(execution(number));
    await storage.commit([
      entry(1, { epoch: 5, end: end() }),
      entry(2, { steps: [step('flow[0]')], state: change(3, { a: 1 }) }),
      entry(3, { steps: [step('flow[0]')], end: end() }),
    ]);
    same(await stepKeys(storage, 2), [], 'steps of the entry that was refused');
    same(await stepKeys(storage, 3), ['flow[0]'], 'steps of the entry that was stored');
    const statuses = await Promise.all(
      [1, 2, 3].map(async (number) => (await storage.getExecution(executionId(number)))?.status),
    );
    same(statuses, ['running', 'running', 'completed'], 'statuses');
  });

  it('commit: entries of one execution in one batch are taken in their order', async (storage) => {
    await storage.accept(execution(1));
    const answers = await storage.commit([
      entry(1, { steps: [step('flow[0]')] }),
      entry(1, { steps: [step('flow[1]')], end: end() }),
      entry(1, { steps: [step('flow[2]')] }),
    ]);
    same(answers, ['stored', 'stored', 'fenced'], 'answers');
    same(await stepKeys(storage, 1), ['flow[0]', 'flow[1]'], 'steps');
  });

  it('commit: steps, state and end of one entry are stored together', async (storage) => {
    await storage.accept(execution(1));
    const whole = entry(1, { steps: [step('flow[0]'), step('flow[1]')], state: change(0, { a: 1 }), end: end() });
    same(await commitOne(storage, whole), 'stored', 'answer');
    const record = await storage.getExecution(executionId(1));
    same(record?.status, 'completed', 'status');
    same(
      record?.agents.map(({ key }) => key),
      ['flow[0]', 'flow[1]'],
      'steps',
    );
    same((await storage.readState('orders'))?.value, { a: 1 }, 'state');
  });

  it('commit: a batch of 500 executions', async (storage) => {
    const numbers = Array.from({ length: 500 }, (_, i) => i);
    await Promise.all(numbers.map(async (number) => storage.accept(execution(number))));
    const answers = await storage.commit(
      numbers.map((number) => entry(number, { steps: [step('flow[0]')], ...(number % 2 === 0 && { end: end() }) })),
    );
    same(answers.filter((answer) => answer === 'stored').length, 500, 'entries that were stored');
    same((await storage.listExecutions({ status: 'running', limit: 250 })).length, 250, 'executions still running');
  });

  it('commit: many commits of one execution at the same time are all stored', async (storage) => {
    await storage.accept(execution(1));
    const keys = Array.from({ length: 50 }, (_, i) => `flow[0].foreach[${i}].steps[0]`);
    const answers = await Promise.all(keys.map((key) => commitOne(storage, entry(1, { steps: [step(key)] }))));
    same([...new Set(answers)], ['stored'], 'answers');
    same((await stepKeys(storage, 1)).sort(), keys.sort(), 'keys');
  });
}

export function replacingCases(it: StorageCase): void {
  it('commit: a record replaces an earlier one of its key that has `retryAt`, in its place', async (storage) => {
    await storage.accept(execution(1));
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1)] }));
    await commitOne(storage, entry(1, { steps: [step('flow[1]')] }));
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 2)] }));
    same(
      await storage.listSteps(executionId(1), { after: 0, limit: 10 }),
      [retrying('flow[0]', 2), step('flow[1]')],
      'steps',
    );
    await commitOne(storage, entry(1, { steps: [step('flow[0]', { attempts: 3 })] }));
    same(
      await storage.listSteps(executionId(1), { after: 0, limit: 10 }),
      [step('flow[0]', { attempts: 3 }), step('flow[1]')],
      'steps',
    );
  });

  it('commit: a record and its successor in one entry leave the successor', async (storage) => {
    await storage.accept(execution(1));
    const failed = step('flow[0]', {
      status: 'failed',
      attempts: 2,
      output: null,
      error: { code: 'TIMEOUT', message: 'late' },
    });
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1), failed] }));
    same(await storage.listSteps(executionId(1), { after: 0, limit: 10 }), [failed], 'steps');
  });

  for (const attempts of [1, 2]) {
    it(`I2: a record without \`retryAt\` is final: one of attempt ${attempts} under its key leaves it as it is`, async (storage) => {
      await storage.accept(execution(1));
      await commitOne(storage, entry(1, { steps: [step('flow[0]', { output: 'first' })] }));
      same(
        await commitOne(storage, entry(1, { steps: [step('flow[0]', { output: 'second', attempts })] })),
        'stored',
        'answer',
      );
      const steps = await storage.listSteps(executionId(1), { after: 0, limit: 10 });
      same(
        steps.map(({ output }) => output),
        ['first'],
        'outputs',
      );
      same((await storage.getExecution(executionId(1)))?.metrics.agents, 1, 'agents that ran');
    });
  }

  it('I2: among a thousand records, a key still stands once, and a retry finds its own', async (storage) => {
    await storage.accept(execution(1));
    const key = (i: number) => `flow[0].foreach[${i}].steps[0]`;
    await commitOne(storage, entry(1, { steps: Array.from({ length: 1000 }, (_, i) => retrying(key(i), 1)) }));
    await commitOne(
      storage,
      entry(1, {
        steps: [step(key(7), { attempts: 2 }), step(key(999), { attempts: 2 }), step(key(7), { output: 'again' })],
      }),
    );
    const steps = await storage.listSteps(executionId(1), { after: 0, limit: 2000 });
    same(steps.length, 1000, 'records');
    same(
      [steps[7], steps[8], steps[999]],
      [step(key(7), { attempts: 2 }), retrying(key(8), 1), step(key(999), { attempts: 2 })],
      'records',
    );
  });

  it('commit: one key in two executions is two records', async (storage) => {
    for (const number of [1, 2]) await storage.accept(execution(number));
    await storage.commit([
      entry(1, { steps: [step('flow[0]', { output: 1 })] }),
      entry(2, { steps: [step('flow[0]', { output: 2, attempts: 2 })] }),
    ]);
    const outputs = await Promise.all(
      [1, 2].map(async (number) => (await storage.getExecution(executionId(number)))?.agents[0]?.output),
    );
    same(outputs, [1, 2], 'outputs');
  });

  it('commit: a record that was replaced may fail for good', async (storage) => {
    await storage.accept(execution(1));
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1)] }));
    const { retryAt: _retryAt, ...failed } = retrying('flow[0]', 2);
    await commitOne(storage, entry(1, { steps: [failed] }));
    const [run] = (await storage.getExecution(executionId(1)))?.agents ?? [];
    same([run?.status, run?.attempts, run?.error?.message], ['failed', 2, 'attempt 2'], 'the run');
  });
}
