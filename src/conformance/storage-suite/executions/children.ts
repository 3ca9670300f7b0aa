/** Storage suite: child executions. They are counted, listed, and cancelled before they begin. */

import type { NewExecution } from '../../../engine/execution/stored-execution.ts';
import type { Storage } from '../../../engine/storage/storage.port.ts';
import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  nextDueAt,
  register,
  release,
  type StorageCase,
  same,
  T0,
} from '../context.ts';

const error = { code: 'CANCELLED', message: 'it was cancelled' };
const cancelled = end({ status: 'cancelled', output: null, error, finishedAt: T0 + 50, duration: 0, agents: 0 });

/** A child of execution `parent`. */
function child(number: number, parent: number, fields: { root?: number; depth?: number; detached?: true } = {}) {
  const { root = parent, depth = 1, detached } = fields;
  const ids = { parentId: executionId(parent), rootId: executionId(root) };
  return execution(number, { trigger: { type: 'ensemble', ...ids, depth, ...(detached && { detached }) } });
}

const ids = async (storage: Storage, parent: number, more: object = {}) =>
  (await storage.executions.list({ parentId: executionId(parent), limit: 100, ...more })).map(({ id }) => id);

export function childCases(it: StorageCase): void {
  it('countDescendants: counts descendants at every depth, held, queued and ended, and nothing else', async (storage) => {
    same(await storage.executions.countDescendants(executionId(1), 10), 0, 'of an unknown execution');
    for (const number of [1, 2]) await accept(storage, execution(number));
    await accept(storage, child(3, 1));
    await enqueue(storage, child(4, 3, { root: 1, depth: 2 }));
    await accept(storage, child(5, 1, { detached: true }));
    await accept(storage, child(6, 2));
    await commitOne(storage, entry(3, { end: end() }));
    same(await storage.executions.countDescendants(executionId(1), 10), 3, 'of the first');
    same(await storage.executions.countDescendants(executionId(2), 10), 1, 'of the second');
    same(await storage.executions.countDescendants(executionId(3), 10), 0, 'of an execution that is not the root');
  });

  it('countDescendants: counts up to `limit`', async (storage) => {
    for (let number = 2; number < 7; number++) await accept(storage, child(number, 1));
    for (const limit of [1, 4, 5, 6])
      same(await storage.executions.countDescendants(executionId(1), limit), Math.min(limit, 5), `limit ${limit}`);
  });

  it('list: `parentId` selects the direct children, newest first', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, child(2, 1));
    await accept(storage, child(3, 2, { root: 1, depth: 2 }));
    await enqueue(storage, child(4, 1, { detached: true }));
    same(await ids(storage, 1), [4, 2].map(executionId), 'of the first');
    same(await ids(storage, 2), [executionId(3)], 'of its child');
    same(await ids(storage, 3), [], 'of an execution without children');
    same(await ids(storage, 99), [], 'of an unknown execution');
  });

  it('list: pages by `parentId`, `ensemble`, `status`, `before` and `limit` list each execution once', async (storage) => {
    for (let number = 1; number < 25; number++) {
      const { trigger } = child(number, number % 2 === 0 ? 100 : 200);
      await accept(storage, execution(number, { trigger, ensemble: number % 3 === 0 ? 'a' : 'b' }));
      if (number % 4 === 0) await commitOne(storage, entry(number, { end: end() }));
    }
    const query = { ensemble: 'b', status: 'completed' as const, limit: 2 };
    const seen: string[] = [];
    for (let pages = 0; pages < 10; pages++) {
      const last = seen.at(-1);
      const page = await ids(storage, 100, {
        ...query,
        ...(last !== undefined && { before: { createdAt: T0 + Number(last.slice(5)), id: last } }),
      });
      if (page.length === 0) break;
      seen.push(...page);
    }
    same(seen, [20, 16, 8, 4].map(executionId), 'ids');
  });

  it('get, list and claim: return the trigger unchanged, and the parent', async (storage) => {
    const accepted: NewExecution = child(2, 1, { detached: true });
    await enqueue(storage, accepted);
    const record = await storage.executions.get(accepted.id);
    same([record?.trigger, record?.parentId], [accepted.trigger, executionId(1)], 'record');
    const [listed] = await storage.executions.list({ limit: 1 });
    same([listed?.trigger, listed?.parentId], [accepted.trigger, executionId(1)], 'listing');
    await register(storage);
    same(
      (await claim(storage)).map((one) => one.execution.trigger),
      [accepted.trigger],
      'claimed',
    );
    same((await storage.executions.getAccepted(accepted.id))?.trigger, accepted.trigger, 'accepted');
  });

  it('requestCancel: a queued execution with a parent does not end; it is due, and its claim carries the request', async (storage) => {
    await register(storage);
    await enqueue(storage, child(2, 1), T0 + 86_400_000);
    same(await storage.executions.requestCancel(executionId(2), T0 + 50, cancelled), 'queued', 'answer');
    same((await storage.executions.get(executionId(2)))?.status, 'queued', 'status');
    same(await nextDueAt(storage), T0 + 50, 'due');
    same(
      await storage.executions.requestCancel(executionId(2), T0 + 70, cancelled),
      'queued',
      'answer to a repeated request',
    );
    const claimed = await claim(storage, { now: T0 + 50 });
    same(
      claimed.map(({ execution: { id }, cancelRequested }) => [id, cancelRequested]),
      [[executionId(2), true]],
      'claimed, and cancel requested',
    );
  });

  it('requestCancel: a queued execution with a parent does not end either if it is detached or was released as queued', async (storage) => {
    await register(storage);
    await enqueue(storage, child(2, 1, { detached: true }));
    await enqueue(storage, child(3, 1));
    await claim(storage);
    for (const number of [2, 3]) await release(storage, number, { status: 'queued', dueAt: T0 + 5000 });
    for (const number of [2, 3])
      same(await storage.executions.requestCancel(executionId(number), T0 + 50, cancelled), 'queued', 'answer');
    const claimed = await claim(storage, { now: T0 + 50 });
    same(
      claimed.map(({ cancelRequested }) => cancelRequested),
      [true, true],
      'cancel requested',
    );
  });

  it('countQueued and findEnded: include children', async (storage) => {
    await enqueue(storage, child(2, 1));
    same(await storage.executions.countQueued(10), 1, 'queued');
    await accept(storage, child(3, 1));
    await commitOne(storage, entry(3, { end: end({ finishedAt: T0 + 10 }) }));
    same(await storage.executions.findEnded([executionId(2), executionId(3)]), [executionId(3)], 'ended');
  });
}
