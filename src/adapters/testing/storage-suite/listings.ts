/** The storage suite's cases of listing: executions, newest first, by what they are asked for; steps by pages. */

import {
  accept,
  commitOne,
  end,
  entry,
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

export function listingCases(it: StorageCase): void {
  it('listExecutions: an empty store gives none', async (storage) => {
    same(await storage.listExecutions({ limit: 100 }), [], 'executions');
  });

  it('listExecutions: newest first, by id, whatever the order in which they came', async (storage) => {
    for (const number of [3, 1, 10, 2]) await accept(storage, execution(number, { createdAt: T0 }));
    const ids = (await storage.listExecutions({ limit: 100 })).map(({ id }) => id);
    same(ids, [10, 3, 2, 1].map(executionId), 'ids');
  });

  it('listExecutions: records as getExecution gives them, without their agent runs', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    const error = { code: 'TIMEOUT', message: 'late', agent: 'a' };
    const ended = end({ status: 'timed_out', error });
    await storage.commit(OWNER, [
      entry(1, { steps: [step('flow[0]')] }),
      entry(2, { steps: [step('flow[0]'), step('flow[1]')], end: ended }),
    ]);
    const expected = [];
    for (const number of [2, 1]) expected.push({ ...(await storage.getExecution(executionId(number))), agents: [] });
    same(await storage.listExecutions({ limit: 100 }), expected, 'records');
  });

  it('listExecutions: at most `limit`', async (storage) => {
    for (let number = 0; number < 5; number++) await accept(storage, execution(number));
    for (const limit of [1, 4, 5, 250])
      same((await storage.listExecutions({ limit })).length, Math.min(limit, 5), `limit ${limit}`);
  });

  it('listExecutions: by ensemble', async (storage) => {
    for (const [number, ensemble] of ['a', 'b', 'a', 'A'].entries())
      await accept(storage, execution(number, { ensemble }));
    const ids = async (ensemble: string) =>
      (await storage.listExecutions({ ensemble, limit: 100 })).map(({ id }) => id);
    same(await ids('a'), [executionId(2), executionId(0)], 'ensemble a');
    same(await ids('A'), [executionId(3)], 'ensemble A: case counts');
    for (const other of ['c', '%', 'constructor', '']) same(await ids(other), [], `ensemble ${JSON.stringify(other)}`);
  });

  it('listExecutions: by status', async (storage) => {
    const statuses = ['completed', 'failed', 'timed_out', 'cancelled'] as const;
    for (let number = 0; number < 5; number++) await accept(storage, execution(number));
    await storage.commit(
      OWNER,
      statuses.map((status, number) => entry(number, { end: end({ status }) })),
    );
    for (const [number, status] of [...statuses, 'running' as const].entries()) {
      same(
        (await storage.listExecutions({ status, limit: 100 })).map(({ id }) => id),
        [executionId(number)],
        status,
      );
    }
    for (const status of ['queued', 'waiting'] as const)
      same(await storage.listExecutions({ status, limit: 100 }), [], status);
  });

  it('listExecutions: `before` leaves out that id and all newer ones, also when it is stored no more', async (storage) => {
    for (const number of [1, 2, 4, 5]) await accept(storage, execution(number));
    const before = async (number: number) =>
      (await storage.listExecutions({ before: executionId(number), limit: 100 })).map(({ id }) => id);
    same(await before(4), [executionId(2), executionId(1)], 'before one that is stored');
    same(await before(3), [executionId(2), executionId(1)], 'before one that is not');
    same(await before(1), [], 'before the oldest');
  });

  it('listExecutions: ensemble, status, before and limit together page through all, each once', async (storage) => {
    for (let number = 0; number < 30; number++)
      await accept(storage, execution(number, { ensemble: number % 3 === 0 ? 'a' : 'b' }));
    await storage.commit(
      OWNER,
      Array.from({ length: 30 }, (_, number) => entry(number, number % 2 === 0 ? { end: end() } : {})),
    );
    const seen: string[] = [];
    for (let pages = 0; pages < 30; pages++) {
      const last = seen.at(-1);
      const page = await storage.listExecutions({
        ensemble: 'b',
        status: 'completed',
        limit: 3,
        ...(last !== undefined && { before: last }),
      });
      if (page.length === 0) break;
      seen.push(...page.map(({ id }) => id));
    }
    const expected = Array.from({ length: 30 }, (_, number) => number).filter(
      (number) => number % 3 !== 0 && number % 2 === 0,
    );
    same(seen, expected.reverse().map(executionId), 'ids');
  });

  it('listSteps: an unknown execution has none', async (storage) => {
    same(await storage.listSteps(executionId(1), { limit: 10 }), [], 'steps');
  });

  it('listSteps: the records as they were handed in, in the order in which they were first stored', async (storage) => {
    await accept(storage, execution(1));
    const records = [step('flow[2]'), step('flow[0]', { duration: 0 }), retrying('flow[1]', 1)];
    await commitOne(storage, entry(1, { steps: records.slice(0, 2) }));
    await commitOne(storage, entry(1, { steps: records.slice(2) }));
    same(await storage.listSteps(executionId(1), { limit: 10 }), records, 'steps');
  });

  it('listSteps: `after` is the key of the record before, `limit` bounds the page', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    const keys = Array.from({ length: 1200 }, (_, i) => `flow[0].foreach[${i}].steps[0]`);
    await commitOne(storage, entry(1, { steps: keys.map((key) => step(key)) }));
    await commitOne(storage, entry(2, { steps: [step('flow[9]')] }));
    const page = async (after: string | undefined, limit: number) =>
      (await storage.listSteps(executionId(1), { after, limit })).map(({ key }) => key);
    same(await page(undefined, 2), keys.slice(0, 2), 'the first page');
    same(await page(keys[998], 3), keys.slice(999, 1002), 'across the first 1,000');
    same(await page(keys[1197], 10), keys.slice(1198), 'the last page');
    same(await page(keys[1199], 10), [], 'behind the end');
    same(await page('flow[9]', 10), [], 'behind a key of another execution');
  });

  it('listSteps: a record that is replaced keeps its place between two pages', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1), step('flow[1]')] }));
    await commitOne(storage, entry(1, { steps: [step('flow[0]', { attempts: 2 }), step('flow[2]')] }));
    same(await stepKeys(storage, 1), ['flow[0]', 'flow[1]', 'flow[2]'], 'keys');
  });
}
