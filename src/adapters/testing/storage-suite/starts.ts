/** The storage suite's cases of accepting: held or queued, once under an id, with what a retry hands over. */

import {
  accept,
  claim,
  commitOne,
  delivery,
  end,
  enqueue,
  entry,
  everything,
  execution,
  executionId,
  join,
  nextDueAt,
  OWNER,
  STRANGER,
  type StorageCase,
  same,
  starting,
  step,
  stepKeys,
  T0,
} from './context.ts';

export function startCases(it: StorageCase): void {
  it('start: the execution is held by its owner, and there when commit returns', async (storage) => {
    await join(storage);
    const { seed, ...accepted } = execution(1, { deadlineAt: T0 + 60_000 });
    same(await commitOne(storage, starting({ seed, ...accepted })), 'stored', 'answer');
    const expected = {
      ...accepted,
      status: 'running',
      output: null,
      startedAt: T0 + 1,
      metrics: { totalDuration: 0, agents: 0 },
      agents: [],
    };
    same(await storage.getExecution(executionId(1)), expected, 'record');
    same(await nextDueAt(storage), undefined, 'due');
    same(await claim(storage), [], 'claimed');
    same(await commitOne(storage, entry(1)), 'stored', "the owner's commit under epoch 1");
  });

  it('start: with `release` it is queued, due at its instant, and has not begun', async (storage) => {
    const { seed, ...accepted } = execution(1);
    await enqueue(storage, { seed, ...accepted }, T0 + 100);
    const expected = {
      ...accepted,
      status: 'queued',
      output: null,
      metrics: { totalDuration: 0, agents: 0 },
      agents: [],
    };
    same(await storage.getExecution(executionId(1)), expected, 'record');
    same(await storage.countQueued(10), 1, 'queued');
    same(await nextDueAt(storage), T0 + 100, 'due');
  });

  it('start: one that is queued needs no owner that is known', async (storage) => {
    const queued = starting(execution(1), { release: { status: 'queued', dueAt: T0 } });
    same(await commitOne(storage, queued, STRANGER), 'stored', 'answer');
    await join(storage);
    same((await claim(storage)).length, 1, 'claimed');
  });

  it('start: one that is to be held is refused when its owner is not known; nothing is stored', async (storage) => {
    await join(storage);
    const before = await everything(storage, 1);
    const held = starting(execution(1), { steps: [step('flow[0]')], deliveries: [delivery(1)] });
    same(await commitOne(storage, held, STRANGER), 'fenced', 'answer');
    same(await everything(storage, 1), before, 'what is stored');
    same(await commitOne(storage, starting(execution(1))), 'stored', 'a start under the same id by an owner');
    same(await stepKeys(storage, 1), [], 'steps');
  });

  it('start: an owner that has left starts nothing', async (storage) => {
    await join(storage);
    await storage.leave(OWNER, T0);
    same(await commitOne(storage, starting(execution(1))), 'fenced', 'answer');
    same(await storage.getExecution(executionId(1)), undefined, 'record');
  });

  it('start: under an id that is held, `exists`, and nothing is changed', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')] }));
    const before = await everything(storage, 1);
    for (const fields of [{}, { release: { status: 'queued', dueAt: T0 } as const }]) {
      const another = execution(1, { ensemble: 'others', input: 'other', seed: 'f'.repeat(32) });
      const refused = starting(another, { steps: [step('flow[9]')], deliveries: [delivery(1)], ...fields });
      same(await commitOne(storage, refused), 'exists', 'answer');
      same(await everything(storage, 1), before, 'what is stored');
    }
    same(await commitOne(storage, entry(1, { steps: [step('flow[1]')] })), 'stored', 'commit of its owner');
  });

  it('start: under an id that is queued, `exists`, and it stays queued', async (storage) => {
    await join(storage);
    await enqueue(storage, execution(1), T0 + 100);
    const before = await everything(storage, 1);
    const another = execution(1, { seed: 'f'.repeat(32) });
    same(await commitOne(storage, starting(another)), 'exists', 'a start that is held');
    const queued = starting(another, { release: { status: 'queued', dueAt: T0 } });
    same(await commitOne(storage, queued), 'exists', 'a start that is queued');
    same(await everything(storage, 1), before, 'what is stored');
  });

  it('start: under the id of an execution that has ended, `exists` too', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { end: end() }));
    const before = await everything(storage, 1);
    same(await commitOne(storage, starting(execution(1, { seed: 'f'.repeat(32) }))), 'exists', 'answer');
    same(await everything(storage, 1), before, 'what is stored');
  });

  it('start: of several with one id at the same time, one alone is stored', async (storage) => {
    await join(storage);
    const seeds = Array.from({ length: 10 }, (_, i) => String(i).repeat(32));
    const answers = await Promise.all(
      seeds.map(async (seed, input) => commitOne(storage, starting(execution(1, { seed, input })))),
    );
    same(answers.filter((answer) => answer === 'stored').length, 1, 'starts that were stored');
    same(answers.filter((answer) => answer === 'exists').length, 9, 'starts that were refused');
    same((await storage.getExecution(executionId(1)))?.input, answers.indexOf('stored'), 'the input that is stored');
  });

  it('start: many at the same time are all there', async (storage) => {
    await join(storage);
    await Promise.all(Array.from({ length: 50 }, async (_, i) => accept(storage, execution(i))));
    same((await storage.listExecutions({ limit: 250 })).length, 50, 'executions');
  });

  it('start: many in one batch, held and queued', async (storage) => {
    await join(storage);
    const batch = Array.from({ length: 300 }, (_, number) =>
      starting(execution(number), number % 3 === 0 ? { release: { status: 'queued', dueAt: T0 + number } } : {}),
    );
    same([...new Set(await storage.commit(OWNER, batch))], ['stored'], 'answers');
    same(await storage.countQueued(1000), 100, 'queued');
    same((await storage.listExecutions({ status: 'running', limit: 250 })).length, 200, 'running');
    same((await claim(storage, { limit: 250 })).length, 100, 'claimed');
  });

  for (const [what, fields] of [
    ['held', {}],
    ['queued', { release: { status: 'queued', dueAt: T0 } }],
  ] as const) {
    it(`start: the results that a retry hands over and its deliveries are stored with it, ${what}`, async (storage) => {
      await join(storage);
      const again = execution(2, { retryOf: executionId(1) });
      const steps = [step('flow[0]'), step('flow[1]', { name: '', note: true }), step('flow[2]', { attempts: 3 })];
      const whole = starting(again, { steps, deliveries: [delivery(1), delivery(2)], ...fields });
      same(await commitOne(storage, whole), 'stored', 'answer');
      const record = await storage.getExecution(executionId(2));
      same([record?.retryOf, record?.metrics.agents], [executionId(1), 2], 'what it tries again, and agents that ran');
      same(await stepKeys(storage, 2), ['flow[0]', 'flow[2]'], 'steps');
      same(await storage.listSteps(executionId(2), { limit: 10, notes: true }), steps, 'steps and notes');
      const stored = await storage.listDeliveries(executionId(2));
      same(
        stored.map(({ id }) => id),
        [delivery(1).id, delivery(2).id],
        'deliveries',
      );
      if (what === 'held') return;
      const [claimed] = await claim(storage);
      same(claimed?.execution, again, 'the execution that is claimed');
    });
  }

  it('start: `retryOf` is in the record and in listings', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2, { retryOf: executionId(1) }));
    same((await storage.getExecution(executionId(2)))?.retryOf, executionId(1), 'record');
    same(
      (await storage.listExecutions({ limit: 10 })).map(({ retryOf }) => retryOf ?? 'none'),
      [executionId(1), 'none'],
      'listing',
    );
  });
}
