/** The storage suite's cases of what is stored beside agents' runs: notes of the interpreter, and deliveries. */

import type { Json } from '../../../engine/json.ts';
import type { StepRecord } from '../../../engine/model/stored-execution.ts';
import {
  accept,
  change,
  commitOne,
  delivery,
  end,
  entry,
  everything,
  execution,
  executionId,
  OWNER,
  retrying,
  type StorageCase,
  same,
  step,
  stepKeys,
  T0,
} from './context.ts';

const note = (key: string, output: Json = { decided: key }): StepRecord =>
  step(key, { name: '', output, duration: 0, note: true });

export function noteCases(it: StorageCase): void {
  it('notes: listed where they are asked for alone, as they were handed in, in their places', async (storage) => {
    await accept(storage, execution(1));
    const records = [note('a'), step('flow[0]'), note('b', null), retrying('flow[1]', 1), note('c', [1, { two: 2 }])];
    await commitOne(storage, entry(1, { steps: records.slice(0, 3) }));
    await commitOne(storage, entry(1, { steps: records.slice(3) }));
    same(await storage.listSteps(executionId(1), { limit: 10, notes: true }), records, 'with notes');
    same(await stepKeys(storage, 1), ['flow[0]', 'flow[1]'], 'without');
    same(
      await storage.listSteps(executionId(1), { limit: 10, notes: false }),
      [records[1], records[3]],
      'without, when it is said',
    );
  });

  it('notes: are no runs: no record lists them, and none counts them', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [note('a'), step('flow[0]'), note('b')] }));
    const record = await storage.getExecution(executionId(1));
    same(record?.agents, [step('flow[0]')], 'runs');
    same(record?.metrics.agents, 1, 'agents that ran');
    same((await storage.listExecutions({ limit: 1 }))[0]?.metrics.agents, 1, 'agents that ran, in a listing');
    await commitOne(storage, entry(1, { steps: [note('c')], end: end({ agents: 1 }) }));
    same((await storage.getExecution(executionId(1)))?.agents, [step('flow[0]')], 'runs at the end');
  });

  it('notes: take no places among the first 1,000 runs', async (storage) => {
    await accept(storage, execution(1));
    const steps = Array.from({ length: 2010 }, (_, i) => (i % 2 === 0 ? note(`note-${i}`) : step(`flow[${i}]`)));
    await commitOne(storage, entry(1, { steps }));
    const record = await storage.getExecution(executionId(1));
    same([record?.agents.length, record?.metrics.agents], [1000, 1005], 'runs, and agents that ran');
    same(record?.agents[999]?.key, 'flow[1999]', 'the last run of the record');
  });

  it('notes: pages count what they list', async (storage) => {
    await accept(storage, execution(1));
    const steps = Array.from({ length: 30 }, (_, i) => (i % 3 === 0 ? note(`note-${i}`) : step(`flow[${i}]`)));
    await commitOne(storage, entry(1, { steps }));
    const page = async (after: string | undefined, limit: number, notes: boolean) =>
      (await storage.listSteps(executionId(1), { after, limit, notes })).map(({ key }) => key);
    const keys = steps.map(({ key }) => key);
    same(await page(keys[3], 5, true), keys.slice(4, 9), 'with notes');
    const runs = keys.filter((key) => key.startsWith('flow'));
    same(await page(runs[3], 5, false), runs.slice(4, 9), 'without');
    same(await page('note-9', 3, false), ['flow[10]', 'flow[11]', 'flow[13]'], 'without, behind a note');
    same(await page(runs[17], 5, false), runs.slice(18), 'the last page');
  });

  it('notes: the ends of waits are found by the name of their signal and their instant, without what they hold', async (storage) => {
    await accept(storage, execution(1));
    const wait = (key: string, name: string, startedAt: number) => ({ ...note(key, { big: 'x' }), name, startedAt });
    const steps = [
      wait('flow[0].wait', 'go', T0 + 1),
      wait('flow[1].wait', 'stop', T0 + 2),
      note('flow[2].wait'),
      wait('flow[3].wait', 'go', T0 + 3),
      step('flow[4]', { name: 'go', startedAt: T0 + 9 }),
    ];
    await commitOne(storage, entry(1, { steps }));
    const waits = (name: string, behind: number) => storage.listEndedWaits(executionId(1), name, behind);
    const both = [
      { key: 'flow[0].wait', at: T0 + 1 },
      { key: 'flow[3].wait', at: T0 + 3 },
    ];
    same(await waits('go', T0), both, 'both');
    same(await waits('go', T0 + 1), both.slice(1), 'behind the first');
    same(await waits('stop', T0), [{ key: 'flow[1].wait', at: T0 + 2 }], 'of another signal');
    for (const name of ['', 'other']) same(await waits(name, 0), [], `of ${JSON.stringify(name)}`);
    same(await storage.listEndedWaits(executionId(2), 'go', 0), [], 'of an execution that is unknown');
  });

  it('notes: one that is stored stays as it is', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [note('a', 'first')] }));
    same(await commitOne(storage, entry(1, { steps: [note('a', 'second')] })), 'stored', 'answer');
    const [stored] = await storage.listSteps(executionId(1), { limit: 10, notes: true });
    same(stored?.output, 'first', 'output');
  });
}

export function deliveryCases(it: StorageCase): void {
  const pending = (number: number, owner: number) =>
    ({ ...delivery(number), executionId: executionId(owner), status: 'pending', attempts: 0 }) as const;

  it('listDeliveries: an unknown execution has none', async (storage) => {
    same(await storage.listDeliveries(executionId(1)), [], 'of one that is unknown');
    await accept(storage, execution(1));
    same(await storage.listDeliveries(executionId(1)), [], 'of one without any');
  });

  it('listDeliveries: those of the execution, in the order in which they were stored', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    await commitOne(storage, entry(1, { deliveries: [delivery(5), delivery(3)] }));
    await commitOne(storage, entry(2, { deliveries: [delivery(4)] }));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')], deliveries: [delivery(1)], end: end() }));
    same(
      await storage.listDeliveries(executionId(1)),
      [5, 3, 1].map((number) => pending(number, 1)),
      'of the first',
    );
    same(await storage.listDeliveries(executionId(2)), [pending(4, 2)], 'of the second');
  });

  it('commit: deliveries are refused with their entry', async (storage) => {
    await accept(storage, execution(1));
    const before = await everything(storage, 1);
    const refused = { steps: [step('flow[0]')], deliveries: [delivery(1)], end: end() };
    same(await commitOne(storage, entry(1, { ...refused, epoch: 2 })), 'fenced', 'under another epoch');
    same(await commitOne(storage, entry(1, { ...refused, state: change(3, {}) })), 'state-conflict', 'with a conflict');
    same(await everything(storage, 1), before, 'what is stored');
    same(await commitOne(storage, entry(1, refused)), 'stored', 'the same one, when nothing stands against it');
    same(await storage.listDeliveries(executionId(1)), [pending(1, 1)], 'deliveries');
  });

  it('commit: a delivery comes back as it was handed in', async (storage) => {
    await accept(storage, execution(1));
    const odd = delivery(1, {
      event: 'execution.a\'"\\;--%_漢👍',
      target: { type: 'email', to: ['a@example.com'], nested: { '': null, list: [1.5, true, {}] } },
      payload: { text: 'ä漢\u0000\u2028', many: Array.from({ length: 500 }, (_, i) => i) },
      createdAt: 1,
      dueAt: T0 + 1e12,
    });
    await commitOne(storage, entry(1, { deliveries: [odd] }));
    const expected = { ...odd, executionId: executionId(1), status: 'pending', attempts: 0 };
    same(await storage.listDeliveries(executionId(1)), [expected], 'deliveries');
  });

  it('commit: a hundred deliveries in one entry, and some in each entry of a batch', async (storage) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    const many = Array.from({ length: 100 }, (_, i) => delivery(100 - i));
    await storage.commit(OWNER, [
      entry(1, { deliveries: many }),
      entry(2, { deliveries: [delivery(201), delivery(200)] }),
      entry(3, { epoch: 4, deliveries: [delivery(300)] }),
    ]);
    const ids = async (number: number) => (await storage.listDeliveries(executionId(number))).map(({ id }) => id);
    same(
      await ids(1),
      many.map(({ id }) => id),
      'of the first',
    );
    same(await ids(2), [delivery(201).id, delivery(200).id], 'of the second');
    same(await ids(3), [], 'of the one that was refused');
  });
}
