/** Storage suite: recorded decisions of the interpreter, which are stored alongside agent runs. */

import {
  accept,
  commitOne,
  decision,
  end,
  entry,
  execution,
  executionId,
  retrying,
  type StorageCase,
  same,
  step,
  stepKeys,
} from '../context.ts';

export function decisionCases(it: StorageCase): void {
  it('decisions: `notes: true` lists them unchanged and in their places; otherwise they are left out', async (storage) => {
    await accept(storage, execution(1));
    const records = [
      decision('a'),
      step('flow[0]'),
      decision('b', null),
      retrying('flow[1]', 1),
      decision('c', [1, { two: 2 }]),
    ];
    await commitOne(storage, entry(1, { steps: records.slice(0, 3) }));
    await commitOne(storage, entry(1, { steps: records.slice(3) }));
    same(await storage.executions.listSteps(executionId(1), { limit: 10, notes: true }), records, 'with decisions');
    same(await stepKeys(storage, 1), ['flow[0]', 'flow[1]'], 'without decisions');
    same(
      await storage.executions.listSteps(executionId(1), { limit: 10, notes: false }),
      [records[1], records[3]],
      'with `notes: false`',
    );
  });

  it('decisions: no record lists or counts them as runs', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [decision('a'), step('flow[0]'), decision('b')] }));
    const record = await storage.executions.get(executionId(1));
    same(record?.agents, [step('flow[0]')], 'runs');
    same(record?.metrics.agents, 1, 'agents that ran');
    same((await storage.executions.list({ limit: 1 }))[0]?.metrics.agents, 1, 'agents that ran, in a listing');
    await commitOne(storage, entry(1, { steps: [decision('c')], end: end({ agents: 1 }) }));
    same((await storage.executions.get(executionId(1)))?.agents, [step('flow[0]')], 'runs at the end');
  });

  it('decisions: take no places among the first 1,000 runs of a record', async (storage) => {
    await accept(storage, execution(1));
    const steps = Array.from({ length: 2010 }, (_, i) =>
      i % 2 === 0 ? decision(`decision-${i}`) : step(`flow[${i}]`),
    );
    await commitOne(storage, entry(1, { steps }));
    const record = await storage.executions.get(executionId(1));
    same([record?.agents.length, record?.metrics.agents], [1000, 1005], 'runs, and agents that ran');
    same(record?.agents[999]?.key, 'flow[1999]', 'the last run of the record');
  });

  it('decisions: `limit` and `after` of a page refer to what the page lists', async (storage) => {
    await accept(storage, execution(1));
    const steps = Array.from({ length: 30 }, (_, i) => (i % 3 === 0 ? decision(`decision-${i}`) : step(`flow[${i}]`)));
    await commitOne(storage, entry(1, { steps }));
    const page = async (after: string | undefined, limit: number, notes: boolean) =>
      (await storage.executions.listSteps(executionId(1), { after, limit, notes })).map(({ key }) => key);
    const keys = steps.map(({ key }) => key);
    same(await page(keys[3], 5, true), keys.slice(4, 9), 'with decisions');
    const runs = keys.filter((key) => key.startsWith('flow'));
    same(await page(runs[3], 5, false), runs.slice(4, 9), 'without decisions');
    same(
      await page('decision-9', 3, false),
      ['flow[10]', 'flow[11]', 'flow[13]'],
      'without decisions, after the key of a decision',
    );
    same(await page(runs[17], 5, false), runs.slice(18), 'the last page');
  });

  it('decisions: a stored decision never changes', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [decision('a', 'first')] }));
    same(await commitOne(storage, entry(1, { steps: [decision('a', 'second')] })), 'stored', 'answer');
    const [stored] = await storage.executions.listSteps(executionId(1), { limit: 10, notes: true });
    same(stored?.output, 'first', 'output');
  });
}
