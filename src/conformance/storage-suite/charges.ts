/** Storage suite: what callers are charged for, and their quotas. */

import type { Charge } from '../../engine/access/quota.ts';
import type { CommitEntry } from '../../engine/execution/stored-execution.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import {
  change,
  commitOne,
  end,
  execution,
  executionId,
  frozen,
  register,
  STRANGER,
  type StorageCase,
  same,
  signal,
  starting,
  step,
  T0,
  WORKER,
} from './context.ts';

const PERIOD = '2026-01';

function charge(fields: Partial<Charge> = {}): Charge {
  return frozen({ account: 'tok_1', period: PERIOD, ...fields });
}

const paid = (number: number, fields: Partial<Charge> = {}, more: Partial<CommitEntry> = {}) =>
  starting(execution(number, { seed: String(number).padStart(32, '0') }), { charge: charge(fields), ...more });

const charged = async (storage: Storage, account = 'tok_1', period = PERIOD) => storage.usage.charged(account, period);

const QUEUED = { release: { status: 'queued', dueAt: T0 } } as const;

export function chargeCases(it: StorageCase): void {
  it('charged: is 0 for an unknown caller, and counts per caller and period', async (storage) => {
    await register(storage);
    same(await charged(storage), 0, 'before');
    await commitOne(storage, paid(1));
    await commitOne(storage, paid(2, { account: 'ä"b' }));
    await commitOne(storage, paid(3, { period: '2026-02' }));
    await commitOne(storage, paid(4));
    await commitOne(storage, starting(execution(5)));
    same(await charged(storage), 2, 'tok_1');
    same(await charged(storage, 'ä"b'), 1, 'another caller');
    same(await charged(storage, 'tok_1', '2026-02'), 1, 'another month');
    same(await charged(storage, 'tok_2'), 0, 'a caller that started nothing');
  });

  it('commit: a start over the quota stores nothing and is not charged', async (storage) => {
    await register(storage);
    same(await commitOne(storage, paid(1, { limit: 2 })), 'stored', 'the first');
    same(await commitOne(storage, paid(2, { limit: 2 }, QUEUED)), 'stored', 'the second');
    same(await commitOne(storage, paid(3, { limit: 2 })), 'quota-exceeded', 'the third');
    same(await commitOne(storage, paid(4, { limit: 2 }, QUEUED)), 'quota-exceeded', 'a queued one');
    same(await storage.executions.get(executionId(3)), undefined, 'the refused execution');
    same(await charged(storage), 2, 'charged');
    same(await commitOne(storage, paid(3, { limit: 3 })), 'stored', 'after the plan was raised');
    same(await commitOne(storage, paid(5, { limit: 1 })), 'quota-exceeded', 'after the plan was lowered');
    same(await commitOne(storage, paid(6)), 'stored', 'without a limit');
    same(await commitOne(storage, paid(7, { account: 'tok_0', limit: 0 })), 'quota-exceeded', 'a quota of 0');
  });

  it('commit: the same start again is charged once, also when the quota is used up', async (storage) => {
    await register(storage);
    for (const more of [{}, QUEUED, { steps: [step('flow[0]')] }]) {
      const entry = paid(Object.keys(more).length + (more === QUEUED ? 10 : 0), { limit: 3 }, more);
      same(await commitOne(storage, entry), 'stored', 'first');
      same(await commitOne(storage, entry), 'stored', 'again');
    }
    same(await charged(storage), 3, 'charged');
  });

  it('commit: a start whose id or key is taken is not charged', async (storage) => {
    await register(storage);
    const first = execution(1, { idempotencyKey: 'key' });
    await commitOne(storage, starting(first));
    const other = { seed: 'ff'.repeat(16) };
    const again = starting({ ...first, ...other }, { charge: charge({ limit: 0 }) });
    same(await commitOne(storage, again), 'exists', 'the same id');
    const sameKey = starting({ ...execution(2), ...other, idempotencyKey: 'key' }, { charge: charge() });
    same(await commitOne(storage, sameKey), 'exists', 'the same key');
    same(await charged(storage), 0, 'charged');
  });

  it('commit: a start of a worker that is not registered is fenced and not charged', async (storage) => {
    same(await commitOne(storage, paid(1), STRANGER), 'fenced', 'within the quota');
    same(await commitOne(storage, paid(2, { limit: 0 }), STRANGER), 'fenced', 'over the quota');
    same(await charged(storage), 0, 'charged');
  });

  it('commit: a start that expects another document is stale and not charged', async (storage) => {
    await register(storage);
    const expects = { kind: 'ensemble', name: 'orders', tag: 'old' };
    same(await commitOne(storage, paid(1, {}, { expects })), 'stale', 'within the quota');
    same(await commitOne(storage, paid(2, { limit: 0 }, { expects })), 'stale', 'over the quota');
    same(await charged(storage), 0, 'charged');
  });

  it('commit: a start together with its end, a state or signals is charged, or nothing of it is stored', async (storage) => {
    await register(storage);
    await commitOne(storage, starting(execution(20)));
    const parts: Partial<CommitEntry>[] = [
      { end: end() },
      { state: change(0, { a: 1 }) as NonNullable<CommitEntry['state']> },
      { signals: [signal(1, 20)] },
    ];
    for (const [i, more] of parts.entries()) {
      same(await commitOne(storage, paid(i, { limit: 3 }, more)), 'stored', `stored ${i}`);
      same(await commitOne(storage, paid(i, { limit: 3 }, more)), 'stored', `again ${i}`);
    }
    const conflict = { state: change(7, { a: 2 }) as NonNullable<CommitEntry['state']> };
    same(await commitOne(storage, paid(9, {}, conflict)), 'state-conflict', 'a state of another version');
    same(await charged(storage), 3, 'charged');
    const late = { end: end(), signals: [signal(2, 20)] };
    same(await commitOne(storage, paid(10, { limit: 3 }, late)), 'quota-exceeded', 'over the quota');
    same(await storage.executions.get(executionId(10)), undefined, 'the refused execution');
    same((await storage.signals.list(executionId(20), { name: 'go', after: 0, limit: 10 })).length, 1, 'signals');
  });

  it('commit: in a batch, starts are charged in their order, and the others of the batch are stored', async (storage) => {
    await register(storage);
    const batch = [
      paid(1, { limit: 2 }),
      paid(2, { account: 'tok_2' }),
      starting(execution(3)),
      paid(4, { limit: 2 }, QUEUED),
      paid(5, { limit: 2 }),
      paid(6, { account: 'tok_2' }),
    ];
    const answers = ['stored', 'stored', 'stored', 'stored', 'quota-exceeded', 'stored'];
    same(await storage.commit(WORKER, batch), answers, 'answers');
    same([await charged(storage), await charged(storage, 'tok_2')], [2, 2], 'charged');
  });

  it('commit: many concurrent starts at the edge of a quota store exactly the quota', async (storage) => {
    await register(storage);
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, number) =>
        commitOne(storage, paid(number, { limit: 25 }, number % 3 === 0 ? QUEUED : {})),
      ),
    );
    same(answers.filter((answer) => answer === 'stored').length, 25, 'stored');
    same(answers.filter((answer) => answer === 'quota-exceeded').length, 35, 'refused');
    same(await charged(storage), 25, 'charged');
  });
}

/** For stores that outlive their handle. */
export function reopenedChargeCases(it: StorageCase): void {
  it('reopen: charges are unchanged', async (storage, reopen) => {
    await register(storage);
    await commitOne(storage, paid(1, { limit: 2 }));
    const next = await reopen();
    same(await charged(next), 1, 'charged');
    await commitOne(next, paid(2, { limit: 2 }, QUEUED));
    same(await commitOne(next, paid(3, { limit: 2 }, QUEUED)), 'quota-exceeded', 'over the quota');
  });
}
