/** Storage suite: listings. Executions by their filters, newest first; steps in pages. */

import type { ExecutionPosition, ExecutionQuery } from '../../../engine/storage/storage.port.ts';
import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  register,
  release,
  retrying,
  type StorageCase,
  same,
  step,
  stepKeys,
  T0,
  WORKER,
} from '../context.ts';

/** The position of the execution with this number. */
const position = (number: number): ExecutionPosition => ({ createdAt: T0 + number, id: executionId(number) });

export function listingCases(it: StorageCase): void {
  it('list: an empty store has none', async (storage) => {
    same(await storage.executions.list({ limit: 100 }), [], 'executions');
  });

  it('list: sorts executions of one instant by id, whatever the order in which they were stored', async (storage) => {
    for (const number of [3, 1, 10, 2]) await accept(storage, execution(number, { createdAt: T0 }));
    const ids = (await storage.executions.list({ limit: 100 })).map(({ id }) => id);
    same(ids, [10, 3, 2, 1].map(executionId), 'ids');
  });

  it('list: returns the records of `executions.get` without agent runs', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    const error = { code: 'TIMEOUT', message: 'late', agent: 'a' };
    const ended = end({ status: 'timed_out', error });
    await storage.commit(WORKER, [
      entry(1, { steps: [step('flow[0]')] }),
      entry(2, { steps: [step('flow[0]'), step('flow[1]')], end: ended }),
    ]);
    const expected = [];
    for (const number of [2, 1]) expected.push({ ...(await storage.executions.get(executionId(number))), agents: [] });
    same(await storage.executions.list({ limit: 100 }), expected, 'records');
  });

  it('list: returns at most `limit` executions', async (storage) => {
    for (let number = 0; number < 5; number++) await accept(storage, execution(number));
    for (const limit of [1, 4, 5, 250])
      same((await storage.executions.list({ limit })).length, Math.min(limit, 5), `limit ${limit}`);
  });

  it('list: `ensemble` selects by ensemble', async (storage) => {
    for (const [number, ensemble] of ['a', 'b', 'a', 'A'].entries())
      await accept(storage, execution(number, { ensemble }));
    const ids = async (ensemble: string) =>
      (await storage.executions.list({ ensemble, limit: 100 })).map(({ id }) => id);
    same(await ids('a'), [executionId(2), executionId(0)], 'ensemble a');
    same(await ids('A'), [executionId(3)], 'ensemble A, as names are case-sensitive');
    for (const other of ['c', '%', 'constructor', '']) same(await ids(other), [], `ensemble ${JSON.stringify(other)}`);
  });

  it('list: `status` selects by status', async (storage) => {
    const statuses = ['completed', 'failed', 'timed_out', 'cancelled'] as const;
    for (let number = 0; number < 5; number++) await accept(storage, execution(number));
    await storage.commit(
      WORKER,
      statuses.map((status, number) => entry(number, { end: end({ status }) })),
    );
    for (const [number, status] of [...statuses, 'running' as const].entries()) {
      same(
        (await storage.executions.list({ status, limit: 100 })).map(({ id }) => id),
        [executionId(number)],
        status,
      );
    }
    for (const status of ['queued', 'waiting'] as const)
      same(await storage.executions.list({ status, limit: 100 }), [], status);
  });

  it('list: `status` follows an execution through all its statuses', async (storage) => {
    await register(storage);
    const statuses = async () => {
      const found: string[] = [];
      for (const status of ['queued', 'running', 'waiting', 'completed', 'cancelled'] as const) {
        const [first, second] = await storage.executions.list({ status, limit: 10 });
        if (second) throw new Error('one execution is listed twice');
        if (first) found.push(status, first.status);
      }
      return found;
    };
    await enqueue(storage, execution(1));
    same(await statuses(), ['queued', 'queued'], 'when it is queued');
    await claim(storage);
    same(await statuses(), ['running', 'running'], 'when it is claimed');
    await release(storage, 1, { status: 'waiting', dueAt: T0 });
    same(await statuses(), ['waiting', 'waiting'], 'when it waits');
    await claim(storage);
    await release(storage, 1, { status: 'running', dueAt: T0 }, { epoch: 2 });
    same(await statuses(), ['running', 'running'], 'when it is released as running');
    await claim(storage);
    await storage.workers.unregister(WORKER, T0);
    same(await statuses(), ['running', 'running'], 'when its worker has unregistered');
    await register(storage);
    await claim(storage);
    await commitOne(storage, entry(1, { epoch: 4, end: end() }));
    same(await statuses(), ['completed', 'completed'], 'when it has ended');
  });

  it('list: lists queued, waiting and running executions with the records of `executions.get`', async (storage) => {
    for (let number = 0; number < 9; number++) {
      if (number % 3 === 0) await enqueue(storage, execution(number));
      else await accept(storage, execution(number, { ensemble: number > 5 ? 'late' : 'orders' }));
      if (number % 3 === 1) await release(storage, number, { status: 'waiting', dueAt: T0 + 500 });
    }
    const ids = async (query: Omit<ExecutionQuery, 'limit'>) =>
      (await storage.executions.list({ ...query, limit: 100 })).map(({ id }) => Number(id.slice(5)));
    same(await ids({ status: 'queued' }), [6, 3, 0], 'queued');
    same(await ids({ status: 'waiting' }), [7, 4, 1], 'waiting');
    same(await ids({ status: 'running' }), [8, 5, 2], 'running');
    same(await ids({ status: 'waiting', ensemble: 'orders', before: position(4) }), [1], 'some waiting executions');
    const expected = [];
    for (let number = 8; number >= 0; number--)
      expected.push({ ...(await storage.executions.get(executionId(number))), agents: [] });
    same(await storage.executions.list({ limit: 100 }), expected, 'all');
  });

  it('list: `before` leaves out that position and all newer ones, also if nothing is stored there', async (storage) => {
    for (const number of [1, 2, 4, 5]) await accept(storage, execution(number));
    const before = async (number: number) =>
      (await storage.executions.list({ before: position(number), limit: 100 })).map(({ id }) => id);
    same(await before(4), [executionId(2), executionId(1)], 'before a stored position');
    same(await before(3), [executionId(2), executionId(1)], 'before a position without an execution');
    same(await before(1), [], 'before the oldest');
  });

  it('list: pages by `ensemble`, `status`, `before` and `limit` list each execution once', async (storage) => {
    for (let number = 0; number < 30; number++)
      await accept(storage, execution(number, { ensemble: number % 3 === 0 ? 'a' : 'b' }));
    await storage.commit(
      WORKER,
      Array.from({ length: 30 }, (_, number) => entry(number, number % 2 === 0 ? { end: end() } : {})),
    );
    const seen: string[] = [];
    let last: ExecutionPosition | undefined;
    for (let pages = 0; pages < 30; pages++) {
      const page = await storage.executions.list({
        ensemble: 'b',
        status: 'completed',
        limit: 3,
        ...(last !== undefined && { before: last }),
      });
      if (page.length === 0) break;
      seen.push(...page.map(({ id }) => id));
      last = page.at(-1);
    }
    const expected = Array.from({ length: 30 }, (_, number) => number).filter(
      (number) => number % 3 !== 0 && number % 2 === 0,
    );
    same(seen, expected.reverse().map(executionId), 'ids');
  });

  it('listSteps: an unknown execution has no steps', async (storage) => {
    same(await storage.executions.listSteps(executionId(1), { limit: 10 }), [], 'steps');
  });

  it('listSteps: returns the records unchanged, in the order in which they were first stored', async (storage) => {
    await accept(storage, execution(1));
    const records = [step('flow[2]'), step('flow[0]', { duration: 0 }), retrying('flow[1]', 1)];
    await commitOne(storage, entry(1, { steps: records.slice(0, 2) }));
    await commitOne(storage, entry(1, { steps: records.slice(2) }));
    same(await storage.executions.listSteps(executionId(1), { limit: 10 }), records, 'steps');
  });

  it('listSteps: a page begins after the record with the key `after`, and has at most `limit` records', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    const keys = Array.from({ length: 1200 }, (_, i) => `flow[0].foreach[${i}].steps[0]`);
    await commitOne(storage, entry(1, { steps: keys.map((key) => step(key)) }));
    await commitOne(storage, entry(2, { steps: [step('flow[9]')] }));
    const page = async (after: string | undefined, limit: number) =>
      (await storage.executions.listSteps(executionId(1), { after, limit })).map(({ key }) => key);
    same(await page(undefined, 2), keys.slice(0, 2), 'the first page');
    same(await page(keys[998], 3), keys.slice(999, 1002), 'a page across record 1,000');
    same(await page(keys[1197], 10), keys.slice(1198), 'the last page');
    same(await page(keys[1199], 10), [], 'after the last record');
    same(await page('flow[9]', 10), [], 'after a key of another execution');
  });

  it('listSteps: a replaced record keeps its place', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1), step('flow[1]')] }));
    await commitOne(storage, entry(1, { steps: [step('flow[0]', { attempts: 2 }), step('flow[2]')] }));
    same(await stepKeys(storage, 1), ['flow[0]', 'flow[1]', 'flow[2]'], 'keys');
  });
}
