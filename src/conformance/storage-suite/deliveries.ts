/** Storage suite: deliveries, which a commit stores with the state that they report, and which are taken when they are due. */

import { deliveryId, type NewDelivery } from '../../engine/delivery/delivery.ts';
import type { SettledDelivery, Storage } from '../../engine/storage/storage.port.ts';
import {
  accept,
  change,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  frozen,
  register,
  type StorageCase,
  same,
  starting,
  step,
  T0,
  WORKER,
  workerId,
} from './context.ts';

/** A delivery of the execution with a number. One with a greater `at` is newer. */
function delivery(number: number, at: number, fields: Partial<NewDelivery> = {}): NewDelivery {
  const { id: of, ensemble, version } = execution(number);
  const event = 'agent.completed';
  return {
    id: deliveryId({ executionId: of, event, key: String(at), at: T0 + at }, 0),
    ...{ executionId: of, ensemble, version, notification: 0, event, receiver: 'shop', createdAt: T0 + at },
    body: JSON.stringify({ event, data: { at, text: 'ä "漢"\u0000\ud83d' } }),
    ...fields,
  };
}

/** A delivery that was stored and that nobody has taken. */
function stored(made: NewDelivery) {
  return { ...made, status: 'pending', attempts: 0, attemptsBefore: 0, dueAt: made.createdAt, log: [] };
}

function withoutBody({ body: _, ...state }: NewDelivery) {
  return state;
}

/** Stores deliveries with a step of an execution that the worker holds. */
async function put(storage: Storage, number: number, deliveries: readonly NewDelivery[]): Promise<void> {
  await accept(storage, execution(number));
  same(await commitOne(storage, frozen(entry(number, { deliveries }))), 'stored', 'the deliveries');
}

const at = (ms: number) => T0 + ms;
const claim = async (storage: Storage, now: number, { receiver = 'shop', limit = 10, until = now + 100 } = {}) =>
  storage.deliveries.claim(receiver, { now: at(now), until: at(until), limit });
const idsOf = (list: readonly { readonly id: string }[]) => list.map(({ id }) => id);
const settled = (made: NewDelivery, fields: Partial<SettledDelivery>): SettledDelivery =>
  frozen({ id: made.id, expectedAttempts: 0, status: 'succeeded', attempts: 1, log: [], ...fields });

export function deliveryCases(it: StorageCase): void {
  it('commit: stores deliveries with a start, a step, a state, an end and a release', async (storage) => {
    await register(storage);
    const made = [1, 2, 3, 4, 5].map((n) => delivery(n === 5 ? 2 : 1, n));
    const [first, second, third, fourth, fifth] = made as [
      NewDelivery,
      NewDelivery,
      NewDelivery,
      NewDelivery,
      NewDelivery,
    ];
    await commitOne(storage, frozen(starting(execution(1), { deliveries: [first] })));
    await commitOne(storage, frozen(entry(1, { steps: [step('flow[0]')], deliveries: [second] })));
    await commitOne(
      storage,
      frozen(entry(1, { steps: [step('flow[1]')], state: change(0, { a: 1 }), deliveries: [third] })),
    );
    await commitOne(storage, frozen(entry(1, { end: end(), deliveries: [fourth] })));
    await accept(storage, execution(2));
    const release = { status: 'waiting', dueAt: T0 } as const;
    same(await commitOne(storage, frozen(entry(2, { release, deliveries: [fifth] }))), 'stored', 'the release');
    for (const one of made) same(await storage.deliveries.get(one.id), stored(one), `delivery ${one.createdAt - T0}`);
  });

  it('get: returns undefined for a delivery that is not stored', async (storage) => {
    await put(storage, 1, [delivery(1, 1)]);
    same(await storage.deliveries.get(delivery(1, 2).id), undefined, 'unknown');
    same(await storage.deliveries.get(delivery(1, 1).id), stored(delivery(1, 1)), 'stored');
  });

  it('commit: stores deliveries with the end of a child and with a start that ends at once', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    const signal = { id: 's', executionId: executionId(1), name: 'child', payload: null, createdAt: T0 };
    await commitOne(storage, frozen(entry(2, { end: end(), signals: [signal], deliveries: [delivery(2, 1)] })));
    await commitOne(storage, frozen(starting(execution(3), { end: end(), deliveries: [delivery(3, 2)] })));
    same(idsOf(await claim(storage, 10)), [delivery(2, 1).id, delivery(3, 2).id], 'claimed');
  });

  it('commit: stores no delivery of an entry that is refused', async (storage) => {
    await accept(storage, execution(1));
    const refused = [
      entry(1, { epoch: 2, steps: [step('flow[0]')], deliveries: [delivery(1, 1)] }),
      entry(1, { steps: [step('flow[0]')], state: change(3, { a: 1 }), deliveries: [delivery(1, 2)] }),
      entry(1, { epoch: 2, deliveries: [delivery(1, 3)] }),
      entry(9, { end: end(), deliveries: [delivery(9, 4)] }),
      starting({ ...execution(1), seed: '0'.repeat(32) }, { deliveries: [delivery(1, 5)] }),
    ];
    const answers: unknown[] = [];
    for (const one of refused) answers.push(await commitOne(storage, frozen(one)));
    same(answers, ['fenced', 'state-conflict', 'fenced', 'fenced', 'exists'], 'answers');
    same(await claim(storage, 100), [], 'claimed');
  });

  it('commit: in a batch, each entry has its own deliveries, and a refused one takes none with it', async (storage) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    const entries = [1, 2, 3].map((number) =>
      entry(number, { epoch: number === 2 ? 5 : 1, steps: [step('flow[0]')], deliveries: [delivery(number, number)] }),
    );
    same(await storage.commit(WORKER, frozen(entries)), ['stored', 'fenced', 'stored'], 'answers');
    same(idsOf(await claim(storage, 10)), [delivery(1, 1).id, delivery(3, 3).id], 'claimed');
  });

  it('commit: the same entry again stores no delivery twice, whatever became of it', async (storage) => {
    await accept(storage, execution(1));
    const last = frozen(entry(1, { steps: [step('flow[0]')], end: end(), deliveries: [delivery(1, 1)] }));
    same(await commitOne(storage, last), 'stored', 'first');
    same(idsOf(await claim(storage, 10)), [delivery(1, 1).id], 'claimed');
    same(await storage.deliveries.settle([settled(delivery(1, 1), {})]), 1, 'settled');
    same(await commitOne(storage, last), 'stored', 'again');
    same((await storage.deliveries.get(delivery(1, 1).id))?.status, 'succeeded', 'status');
    same(await claim(storage, 1000), [], 'claimed later');
  });

  it('commit: an entry of a delivery alone is stored under the fence, and again without an effect', async (storage) => {
    await put(storage, 1, [delivery(1, 1)]);
    same(await commitOne(storage, entry(1, { deliveries: [delivery(1, 1)] })), 'stored', 'again');
    same(idsOf(await claim(storage, 10)), [delivery(1, 1).id], 'claimed');
    await enqueue(storage, execution(2));
    same(
      await commitOne(storage, entry(2, { epoch: 0, deliveries: [delivery(2, 2)] })),
      'fenced',
      'of a free execution',
    );
    same(await storage.deliveries.get(delivery(2, 2).id), undefined, 'the refused one');
  });

  it('claim: takes what is due, those first that are due longest, and each once', async (storage) => {
    const made = [50, 10, 30, 40, 20].map((ms) => delivery(1, ms));
    await put(storage, 1, made);
    same(await claim(storage, 9), [], 'before');
    same(
      await claim(storage, 45, { limit: 2 }),
      [10, 20].map((ms) => ({ ...stored(delivery(1, ms)), dueAt: at(145) })),
      '2',
    );
    same(idsOf(await claim(storage, 45)), idsOf([delivery(1, 30), delivery(1, 40)]), 'the next');
    same(await claim(storage, 45), [], 'then');
    same(await claim(storage, 60, { receiver: 'other' }), [], 'of another receiver');
  });

  it('claim: what nobody has settled is due again when the claim is over', async (storage) => {
    await put(storage, 1, [delivery(1, 1)]);
    await claim(storage, 10, { until: 50 });
    same(await claim(storage, 49), [], 'before');
    same(idsOf(await claim(storage, 50)), [delivery(1, 1).id], 'after');
  });

  it('claim: of many concurrent calls, each delivery is taken by one', async (storage) => {
    const made = Array.from({ length: 60 }, (_, i) => delivery(1, i));
    await put(storage, 1, made);
    const taken = await Promise.all(Array.from({ length: 8 }, () => claim(storage, 100, { limit: 5, until: 500 })));
    for (const one of taken) same(one.length <= 5, true, 'at most 5');
    const rest = await claim(storage, 100, { limit: 100, until: 500 });
    same(idsOf([...taken.flat(), ...rest]).sort(), idsOf(made).sort(), 'all');
  });

  it('receivers: each with when it is due first, in the order of their names, page by page', async (storage) => {
    const of = (receiver: string, ms: number) => delivery(1, ms, { receiver });
    await put(storage, 1, [of('b', 30), of('a', 20), of('b', 10), of('Z', 40), of('c', 50)]);
    const receivers = (after: string, limit = 10) => storage.deliveries.receivers(after, limit);
    const all = [
      { receiver: 'Z', dueAt: at(40) },
      { receiver: 'a', dueAt: at(20) },
      { receiver: 'b', dueAt: at(10) },
      { receiver: 'c', dueAt: at(50) },
    ];
    same(await receivers(''), all, 'all');
    same(await receivers('', 2), all.slice(0, 2), 'the first page');
    same(await receivers('a', 2), all.slice(2), 'the next page');
    await claim(storage, 20, { receiver: 'a', until: 500 });
    same((await receivers('Z', 1))[0], { receiver: 'a', dueAt: at(500) }, 'after a claim');
    await storage.deliveries.settle([settled(of('a', 20), {})]);
    same((await receivers('Z', 1))[0]?.receiver, 'b', 'after its last one was sent');
  });

  it('settle: a failed attempt makes it due later, and the last one ends it', async (storage) => {
    await put(storage, 1, [delivery(1, 1)]);
    await claim(storage, 10, { until: 20 });
    const log = [{ attempt: 1, at: at(10), duration: 5, status: 503, excerpt: 'ä "down"\u0000' }];
    const failed = settled(delivery(1, 1), { status: 'pending', dueAt: at(60), log });
    same(await storage.deliveries.settle([failed]), 1, 'settled');
    same(await storage.deliveries.settle([failed]), 0, 'settled again');
    same(await claim(storage, 59), [], 'before');
    const [again] = await claim(storage, 60);
    same(again, { ...stored(delivery(1, 1)), attempts: 1, dueAt: at(160), log }, 'the second attempt');
    const both = [...log, { attempt: 2, at: at(60), duration: 3, error: 'the connection was closed' }];
    const ended = settled(delivery(1, 1), { expectedAttempts: 1, attempts: 2, status: 'failed', log: both });
    same(await storage.deliveries.settle([ended]), 1, 'ended');
    const { dueAt: _, ...rest } = { ...stored(delivery(1, 1)), status: 'failed', attempts: 2, log: both };
    same(await storage.deliveries.get(delivery(1, 1).id), rest, 'at the end');
    same(await claim(storage, 10_000), [], 'later');
  });

  it('settle: many results at once, of which those that have changed are left out', async (storage) => {
    const made = Array.from({ length: 40 }, (_, i) => delivery(1, i));
    await put(storage, 1, made);
    await claim(storage, 100, { limit: 100 });
    const results = made.map((one, i) => settled(one, { expectedAttempts: i % 4 === 0 ? 7 : 0 }));
    same(await storage.deliveries.settle(frozen([...results, settled(delivery(1, 99), {})])), 30, 'settled');
    same((await storage.deliveries.list({ status: 'pending', limit: 100 })).length, 10, 'pending');
    same(await storage.deliveries.settle([]), 0, 'nothing');
  });

  it('requeue: what has ended or is paused is due again, with its attempts counted on', async (storage) => {
    const made = [1, 2, 3].map((ms) => delivery(1, ms));
    await put(storage, 1, made);
    await claim(storage, 10);
    const [first, second, third] = made as [NewDelivery, NewDelivery, NewDelivery];
    const log = [{ attempt: 4, at: at(5), duration: 1, status: 500 }];
    await storage.deliveries.settle([
      settled(first, { status: 'failed', attempts: 4, log }),
      settled(second, { status: 'paused', attempts: 0 }),
    ]);
    same(await storage.deliveries.requeue(idsOf([...made, delivery(9, 9)]), at(80)), 2, 'requeued');
    const [one, two] = await claim(storage, 80, { until: 90 });
    same(one, { ...stored(first), attempts: 4, attemptsBefore: 4, dueAt: at(90), log }, 'the failed one');
    same(two, { ...stored(second), dueAt: at(90) }, 'the paused one');
    same((await storage.deliveries.get(third.id))?.dueAt, at(110), 'the claimed one');
  });

  it('list: by execution, ensemble, status, receiver and time, newest first, without bodies', async (storage) => {
    const made = [1, 2, 3, 4, 5, 6].map((n) =>
      delivery(n <= 3 ? 1 : 2, n * 10, { receiver: n % 2 ? 'odd' : 'even', ensemble: n <= 4 ? 'orders' : 'other' }),
    );
    await put(storage, 1, made.slice(0, 3));
    await put(storage, 2, made.slice(3));
    await claim(storage, 100, { receiver: 'odd' });
    await storage.deliveries.settle([settled(made[0] as NewDelivery, { status: 'failed' })]);
    const listed = async (query: object) => {
      const found = await storage.deliveries.list({ limit: 10, ...query });
      return found.map(({ createdAt }) => (createdAt - T0) / 10);
    };
    same(await listed({}), [6, 5, 4, 3, 2, 1], 'all');
    same(await listed({ limit: 2, before: made[4]?.id }), [4, 3], 'a page');
    same(await listed({ executionId: executionId(1) }), [3, 2, 1], 'of an execution');
    same(await listed({ ensemble: 'other' }), [6, 5], 'of an ensemble');
    same(await listed({ status: 'failed' }), [1], 'failed');
    same(await listed({ status: 'succeeded' }), [], 'succeeded');
    same(await listed({ receiver: 'even', since: at(40) }), [6, 4], 'of a receiver since');
    same(await listed({ since: at(20), until: at(50) }), [4, 3, 2], 'in a time');
    same(
      await listed({ status: 'pending', ensemble: 'orders', receiver: 'even', executionId: executionId(2) }),
      [4],
      'all filters',
    );
    const [newest] = await storage.deliveries.list({ limit: 1 });
    same(newest, withoutBody(stored(made[5] as NewDelivery) as never), 'the newest');
  });

  it('purge: deletes old deliveries that are not pending, in batches', async (storage) => {
    const made = [1, 2, 3, 4, 5].map((n) => delivery(1, n * 10));
    await put(storage, 1, made);
    await claim(storage, 100);
    const [pending, ...others] = made as [NewDelivery, ...NewDelivery[]];
    const results = others.map((one, i) =>
      settled(one, { status: i === 0 ? 'paused' : i === 1 ? 'failed' : 'succeeded' }),
    );
    await storage.deliveries.settle(results);
    same(await storage.deliveries.purge(at(50), 2), 2, 'the first batch');
    same(await storage.deliveries.purge(at(50), 2), 1, 'the second batch');
    same(await storage.deliveries.purge(at(50), 2), 0, 'then');
    same(idsOf(await storage.deliveries.list({ limit: 10 })), [made[4]?.id, pending.id], 'left');
  });
}

export function sharedDeliveryCases(it: StorageCase): void {
  it('commit: a worker that lost the execution stores no delivery', async (storage) => {
    await accept(storage, execution(1));
    await register(storage, workerId(2));
    const theirs = entry(1, { steps: [step('flow[0]')], deliveries: [delivery(1, 1)] });
    same(await storage.commit(workerId(2), [theirs]), ['fenced'], 'another worker');
    same(await claim(storage, 10), [], 'claimed');
  });
}

export function reopenedDeliveryCases(it: StorageCase): void {
  it('reopen: deliveries, their attempts and their instants are unchanged', async (storage, reopen) => {
    await put(storage, 1, [delivery(1, 1), delivery(1, 2)]);
    await claim(storage, 10, { limit: 1 });
    const log = [{ attempt: 1, at: at(10), duration: 5, status: 503 }];
    await storage.deliveries.settle([settled(delivery(1, 1), { status: 'pending', dueAt: at(60), log })]);
    const before = await storage.deliveries.list({ limit: 10 });
    const next = await reopen();
    same(await next.deliveries.list({ limit: 10 }), before, 'deliveries');
    same((await next.deliveries.get(delivery(1, 2).id))?.body, delivery(1, 2).body, 'body');
  });
}
