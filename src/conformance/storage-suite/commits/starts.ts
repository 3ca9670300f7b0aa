/** Storage suite: accepting executions. An execution is held or queued, and an id is accepted once. */

import { retryKeyOf } from '../../../engine/execution/start-once.ts';
import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  everything,
  execution,
  executionId,
  nextDueAt,
  register,
  STRANGER,
  type StorageCase,
  same,
  starting,
  step,
  stepKeys,
  T0,
  UNTROUBLED,
  WORKER,
} from '../context.ts';

export function startCases(it: StorageCase): void {
  it('start: the worker holds the execution, which is stored when `commit` returns', async (storage) => {
    await register(storage);
    const { seed, ...accepted } = execution(1, { deadlineAt: T0 + 60_000 });
    same(await commitOne(storage, starting({ seed, ...accepted })), 'stored', 'answer');
    const expected = {
      ...accepted,
      status: 'running',
      output: null,
      startedAt: T0 + 1,
      tags: [],
      metrics: { totalDuration: 0, agents: 0, queued: 0, waited: 0 },
      ...UNTROUBLED,
      agents: [],
    };
    same(await storage.executions.get(executionId(1)), expected, 'record');
    same(await nextDueAt(storage), undefined, 'due');
    same(await claim(storage), [], 'claimed');
    same(await commitOne(storage, entry(1)), 'stored', "the worker's commit under epoch 1");
  });

  it('start: with `release` the execution is queued, is due at `dueAt`, and has not begun', async (storage) => {
    const { seed, ...accepted } = execution(1);
    await enqueue(storage, { seed, ...accepted }, T0 + 100);
    const expected = {
      ...accepted,
      status: 'queued',
      output: null,
      tags: [],
      metrics: { totalDuration: 0, agents: 0, waited: 0 },
      ...UNTROUBLED,
      agents: [],
    };
    same(await storage.executions.get(executionId(1)), expected, 'record');
    same(await storage.executions.countQueued(10), 1, 'queued');
    same(await nextDueAt(storage), T0 + 100, 'due');
  });

  it('start: a queued execution needs no registered worker', async (storage) => {
    const queued = starting(execution(1), { release: { status: 'queued', dueAt: T0 } });
    same(await commitOne(storage, queued, STRANGER), 'stored', 'answer');
    await register(storage);
    same((await claim(storage)).length, 1, 'claimed');
  });

  it('start: without `release`, an unregistered worker is fenced, and nothing is stored', async (storage) => {
    await register(storage);
    const before = await everything(storage, 1);
    const held = starting(execution(1), { steps: [step('flow[0]')] });
    same(await commitOne(storage, held, STRANGER), 'fenced', 'answer');
    same(await everything(storage, 1), before, 'what is stored');
    same(
      await commitOne(storage, starting(execution(1))),
      'stored',
      'a start under the same id by a registered worker',
    );
    same(await stepKeys(storage, 1), [], 'steps');
  });

  it('start: a worker that has unregistered cannot start an execution', async (storage) => {
    await register(storage);
    await storage.workers.unregister(WORKER, T0);
    same(await commitOne(storage, starting(execution(1))), 'fenced', 'answer');
    same(await storage.executions.get(executionId(1)), undefined, 'record');
  });

  it('start: under the id of a held execution, the answer is `exists`, and nothing changes', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')] }));
    const before = await everything(storage, 1);
    for (const fields of [{}, { release: { status: 'queued', dueAt: T0 } as const }]) {
      const another = execution(1, { ensemble: 'others', input: 'other', seed: 'f'.repeat(32) });
      const refused = starting(another, { steps: [step('flow[9]')], ...fields });
      same(await commitOne(storage, refused), 'exists', 'answer');
      same(await everything(storage, 1), before, 'what is stored');
    }
    same(
      await commitOne(storage, entry(1, { steps: [step('flow[1]')] })),
      'stored',
      'commit of the worker that holds it',
    );
  });

  it('start: under the id of a queued execution, the answer is `exists`, and it stays queued', async (storage) => {
    await register(storage);
    await enqueue(storage, execution(1), T0 + 100);
    const before = await everything(storage, 1);
    const another = execution(1, { seed: 'f'.repeat(32) });
    same(await commitOne(storage, starting(another)), 'exists', 'a start without `release`');
    const queued = starting(another, { release: { status: 'queued', dueAt: T0 } });
    same(await commitOne(storage, queued), 'exists', 'a start with `release`');
    same(await everything(storage, 1), before, 'what is stored');
  });

  it('start: under the id of an execution that has ended, the answer is `exists`', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { end: end() }));
    const before = await everything(storage, 1);
    same(await commitOne(storage, starting(execution(1, { seed: 'f'.repeat(32) }))), 'exists', 'answer');
    same(await everything(storage, 1), before, 'what is stored');
  });

  it('start: of concurrent starts with one id, exactly one is stored', async (storage) => {
    await register(storage);
    const seeds = Array.from({ length: 10 }, (_, i) => String(i).repeat(32));
    const answers = await Promise.all(
      seeds.map(async (seed, input) => commitOne(storage, starting(execution(1, { seed, input })))),
    );
    same(answers.filter((answer) => answer === 'stored').length, 1, 'starts that were stored');
    same(answers.filter((answer) => answer === 'exists').length, 9, 'starts that were refused');
    same((await storage.executions.get(executionId(1)))?.input, answers.indexOf('stored'), 'the input that is stored');
  });

  it('start: many concurrent starts are all stored', async (storage) => {
    await register(storage);
    await Promise.all(Array.from({ length: 50 }, async (_, i) => accept(storage, execution(i))));
    same((await storage.executions.list({ limit: 250 })).length, 50, 'executions');
  });

  it('start: a batch of many starts, held and queued, is stored', async (storage) => {
    await register(storage);
    const batch = Array.from({ length: 300 }, (_, number) =>
      starting(execution(number), number % 3 === 0 ? { release: { status: 'queued', dueAt: T0 + number } } : {}),
    );
    same([...new Set(await storage.commit(WORKER, batch))], ['stored'], 'answers');
    same(await storage.executions.countQueued(1000), 100, 'queued');
    same((await storage.executions.list({ status: 'running', limit: 250 })).length, 200, 'running');
    same((await claim(storage, { limit: 250 })).length, 100, 'claimed');
  });

  for (const [what, fields] of [
    ['held', {}],
    ['queued', { release: { status: 'queued', dueAt: T0 } }],
  ] as const) {
    it(`start: the results that a retry carries over are stored with the ${what} execution`, async (storage) => {
      await register(storage);
      const again = execution(2, { retryOf: executionId(1) });
      const steps = [step('flow[0]'), step('flow[1]', { name: '', note: true }), step('flow[2]', { attempts: 3 })];
      const whole = starting(again, { steps, ...fields });
      same(await commitOne(storage, whole), 'stored', 'answer');
      const record = await storage.executions.get(executionId(2));
      same([record?.retryOf, record?.metrics.agents], [executionId(1), 2], '`retryOf`, and agents that ran');
      same(await stepKeys(storage, 2), ['flow[0]', 'flow[2]'], 'steps');
      same(
        await storage.executions.listSteps(executionId(2), { limit: 10, notes: true }),
        steps,
        'steps and decisions',
      );
      if (what === 'held') return;
      const [claimed] = await claim(storage);
      same(claimed?.execution, again, 'the claimed execution');
    });
  }

  it('start: records and listings show `retryOf`', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2, { retryOf: executionId(1) }));
    same((await storage.executions.get(executionId(2)))?.retryOf, executionId(1), 'record');
    same(
      (await storage.executions.list({ limit: 10 })).map(({ retryOf }) => retryOf ?? 'none'),
      [executionId(1), 'none'],
      'listing',
    );
  });

  it('start: the record of what has ended, and its entry in a listing, name the execution whose key says that it retries it', async (storage) => {
    for (const [number, status] of [
      [1, 'failed'],
      [2, 'completed'],
    ] as const) {
      const id = executionId(number);
      await accept(storage, execution(number));
      await commitOne(storage, entry(number, { end: end({ status }) }));
      await accept(storage, execution(number + 2, { retryOf: id, idempotencyKey: retryKeyOf(id) }));
    }
    const links = [executionId(3), executionId(4), undefined, undefined];
    const records = await Promise.all([1, 2, 3, 4].map((number) => storage.executions.get(executionId(number))));
    same(
      records.map((record) => record?.retriedBy),
      links,
      'records',
    );
    const listed = await storage.executions.list({ limit: 10 });
    same(listed.map(({ retriedBy }) => retriedBy).reverse(), links, 'listing');
    const twin = execution(5, { retryOf: executionId(1), idempotencyKey: retryKeyOf(executionId(1)) });
    same(await commitOne(storage, starting(twin)), 'exists', 'a second retry');
  });
}
