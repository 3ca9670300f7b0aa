/** Storage suite: records of one key. A record replaces the attempt before it, and a final record never changes. */

import {
  accept,
  commitOne,
  entry,
  execution,
  executionId,
  retrying,
  type StorageCase,
  same,
  step,
  WORKER,
} from '../context.ts';

export function replacingCases(it: StorageCase): void {
  it('commit: a record replaces the record of its key that has `retryAt`, and takes its place', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1)] }));
    await commitOne(storage, entry(1, { steps: [step('flow[1]')] }));
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 2)] }));
    same(
      await storage.executions.listSteps(executionId(1), { limit: 10 }),
      [retrying('flow[0]', 2), step('flow[1]')],
      'steps',
    );
    await commitOne(storage, entry(1, { steps: [step('flow[0]', { attempts: 3 })] }));
    same(
      await storage.executions.listSteps(executionId(1), { limit: 10 }),
      [step('flow[0]', { attempts: 3 }), step('flow[1]')],
      'steps',
    );
  });

  it('commit: of two records of a key in one entry, the later one replaces the attempt before it', async (storage) => {
    await accept(storage, execution(1));
    const failed = step('flow[0]', {
      status: 'failed',
      attempts: 2,
      output: null,
      error: { code: 'TIMEOUT', message: 'late' },
    });
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1), failed] }));
    same(await storage.executions.listSteps(executionId(1), { limit: 10 }), [failed], 'steps');
  });

  for (const attempts of [1, 2]) {
    it(`commit: a record without \`retryAt\` is final: a record of attempt ${attempts} under its key changes nothing`, async (storage) => {
      await accept(storage, execution(1));
      await commitOne(storage, entry(1, { steps: [step('flow[0]', { output: 'first' })] }));
      same(
        await commitOne(storage, entry(1, { steps: [step('flow[0]', { output: 'second', attempts })] })),
        'stored',
        'answer',
      );
      const steps = await storage.executions.listSteps(executionId(1), { limit: 10 });
      same(
        steps.map(({ output }) => output),
        ['first'],
        'outputs',
      );
      same((await storage.executions.get(executionId(1)))?.metrics.agents, 1, 'agents that ran');
    });
  }

  it('commit: among 1,000 records, a key is stored once, and a retry replaces its own record', async (storage) => {
    await accept(storage, execution(1));
    const key = (i: number) => `flow[0].foreach[${i}].steps[0]`;
    await commitOne(storage, entry(1, { steps: Array.from({ length: 1000 }, (_, i) => retrying(key(i), 1)) }));
    await commitOne(
      storage,
      entry(1, {
        steps: [step(key(7), { attempts: 2 }), step(key(999), { attempts: 2 }), step(key(7), { output: 'again' })],
      }),
    );
    const steps = await storage.executions.listSteps(executionId(1), { limit: 2000 });
    same(steps.length, 1000, 'records');
    same(
      [steps[7], steps[8], steps[999]],
      [step(key(7), { attempts: 2 }), retrying(key(8), 1), step(key(999), { attempts: 2 })],
      'records',
    );
  });

  it('commit: one key in two executions makes two records', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    await storage.commit(WORKER, [
      entry(1, { steps: [step('flow[0]', { output: 1 })] }),
      entry(2, { steps: [step('flow[0]', { output: 2, attempts: 2 })] }),
    ]);
    const outputs = await Promise.all(
      [1, 2].map(async (number) => (await storage.executions.get(executionId(number)))?.agents[0]?.output),
    );
    same(outputs, [1, 2], 'outputs');
  });

  it('commit: a failed record without `retryAt` replaces an attempt, and is final', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1)] }));
    const { retryAt: _retryAt, ...failed } = retrying('flow[0]', 2);
    await commitOne(storage, entry(1, { steps: [failed] }));
    const [run] = (await storage.executions.get(executionId(1)))?.agents ?? [];
    same([run?.status, run?.attempts, run?.error?.message], ['failed', 2, 'attempt 2'], 'the run');
  });
}
