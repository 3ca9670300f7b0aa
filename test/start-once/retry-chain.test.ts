/** Retries of an execution: one chain, in which each execution is retried once, and in which each call keeps its idempotency key. */

import { describe, expect, it } from 'vitest';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { manualClock } from '../../src/entries/testing.ts';
import { createOrchestrator, memoryStorage, type OrchestratorOptions } from '../../src/index.ts';

/** A bank that books each key once. Its answers are lost until `answers` is set. */
function createBank() {
  const calls: string[] = [];
  const booked = new Set<string>();
  const bank = { answers: false, calls, booked };
  const pay = ({ idempotencyKey, input }: { idempotencyKey: string; input: unknown }) => {
    calls.push(idempotencyKey);
    booked.add(idempotencyKey);
    if (!bank.answers) throw new Error('no answer');
    return { paid: (input as { cents?: number }).cents ?? null };
  };
  return { bank, scripts: { pay } as unknown as OrchestratorOptions['scripts'] };
}

const PAY = { agent: 'pay', operation: 'code', config: { script: 'pay' }, input: { cents: '${input.cents}' } };
const REFUND = {
  name: 'refund',
  inputs: { cents: { type: 'integer', default: 5 } },
  flow: [PAY],
  outputs: { paid: '${pay.output.paid}' },
};

function open(more: Partial<OrchestratorOptions> = {}) {
  const { bank, scripts } = createBank();
  const options = { ensembles: [REFUND] as never, scripts, clock: manualClock(), ...more } as OrchestratorOptions;
  return { bank, orchestrator: createOrchestrator(options), options };
}

const ids = (records: readonly { readonly id: string }[]) => records.map(({ id }) => id);

describe('the key of a call', () => {
  it('is equal through attempts, retries, and retries of retries: the customer pays once', async () => {
    const flow = [{ ...PAY, retry: { maxAttempts: 3, delay: 0, backoff: 'fixed' } }];
    const { bank, orchestrator } = open({ ensembles: [{ ...REFUND, flow }] as never });
    const { id } = await orchestrator.execute('refund');
    for (let times = 0; times < 2; times++) await (await orchestrator.executions.retry(id)).result();
    bank.answers = true;
    const last = await (await orchestrator.executions.retry(id)).result();
    expect([last.status, bank.calls.length, bank.booked.size]).toEqual(['completed', 10, 1]);
  });

  it('is equal in the child that a retry starts, and differs between the items of a foreach', async () => {
    const parent = {
      name: 'parent',
      flow: [{ foreach: '${[1, 2]}', steps: [{ ensemble: 'refund', input: { cents: '${item}' } }] }],
    };
    const { bank, orchestrator } = open({ ensembles: [REFUND, parent] as never });
    const { id } = await orchestrator.execute('parent');
    await (await orchestrator.executions.retry(id)).result();
    bank.answers = true;
    expect((await (await orchestrator.executions.retry(id)).result()).status).toBe('completed');
    expect([bank.calls.length > 3, bank.booked.size]).toEqual([true, 2]);
  });

  it('differs after `newKeys`, and stays that one in the next retry', async () => {
    const { bank, orchestrator } = open();
    const { id } = await orchestrator.execute('refund');
    await (await orchestrator.executions.retry(id, { newKeys: true })).result();
    expect(bank.booked.size).toBe(2);
    await (await orchestrator.executions.retry(id)).result();
    expect([bank.calls[2], bank.booked.size]).toEqual([bank.calls[1], 2]);
  });

  it('random values are those of the first execution, also after `newKeys`', async () => {
    const flow = [{ agent: 'draw', operation: 'code', config: { script: 'draw' }, input: { n: '${random()}' } }];
    const drawn: unknown[] = [];
    const draw = ({ input }: { input: { n: number } }) => {
      drawn.push(input.n);
      throw new Error('no');
    };
    const { orchestrator } = open({ ensembles: [{ name: 'refund', flow }] as never, scripts: { draw } as never });
    const { id } = await orchestrator.execute('refund');
    await (await orchestrator.executions.retry(id, { newKeys: true })).result();
    expect(drawn).toHaveLength(2);
    expect(new Set(drawn).size).toBe(1);
  });
});

describe.each([
  ['memory', () => memoryStorage()],
  ['SQLite', () => sqliteStorage({ path: ':memory:' })],
])('the chain in %s', (_name, storage) => {
  it('twins make one execution; records have the links in both directions', async () => {
    const { bank, orchestrator } = open({ storage: storage() });
    const { id } = await orchestrator.execute('refund');
    const twins = await Promise.all(Array.from({ length: 20 }, () => orchestrator.executions.retry(id)));
    expect(new Set(ids(twins)).size).toBe(1);
    const [twin] = twins;
    await twin?.result();
    expect(bank.calls).toHaveLength(2);
    const [first, second] = await Promise.all([id, twin?.id ?? ''].map((one) => orchestrator.executions.get(one)));
    expect([first?.retriedBy, second?.retryOf, second?.retriedBy]).toEqual([twin?.id, id, undefined]);
    const { executions } = await orchestrator.executions.list();
    expect(executions.map(({ retriedBy }) => retriedBy).sort()).toEqual([twin?.id, undefined]);
    await orchestrator.close();
  });

  it('a retry of any execution of it acts on the newest: what is active or completed is returned', async () => {
    const { bank, orchestrator } = open({ storage: storage() });
    const { retry, get } = orchestrator.executions;
    const { id } = await orchestrator.execute('refund');
    const second = await (await retry(id)).result();
    bank.answers = true;
    const third = await (await retry(id)).result();
    expect([third.status, third.retryOf]).toEqual(['completed', second.id]);
    for (const one of [id, second.id, third.id]) expect(await (await retry(one)).result()).toEqual(third);
    expect((await get(second.id)).retriedBy).toBe(third.id);
    expect(bank.calls).toHaveLength(3);
    await orchestrator.close();
  });

  it('a start with the id or the key of its first execution answers with the newest', async () => {
    const { bank, orchestrator } = open({ storage: storage() });
    const named = { id: 'refund-7', idempotencyKey: 'refund 7' };
    const first = await orchestrator.execute('refund', { cents: 7 }, named);
    expect(first.status).toBe('failed');
    bank.answers = true;
    const { id } = await orchestrator.executions.retry('refund-7');
    for (const how of [named, { id: 'refund-7' }, { idempotencyKey: 'refund 7' }] as const) {
      const again = await orchestrator.execute('refund', { cents: 7 }, how as never).catch((error: Error) => error);
      if (how === named) expect(again).toMatchObject({ id, status: 'completed', output: { paid: 7 } });
    }
    const byKey = await orchestrator.execute('refund', { cents: 7 }, { idempotencyKey: 'refund 7' });
    expect([byKey.id, bank.calls.length]).toEqual([id, 2]);
    await orchestrator.close();
  });

  it('`list({ retryOf })` has the direct retry alone, if it matches the other filters', async () => {
    const { orchestrator } = open({ storage: storage() });
    const { list, retry } = orchestrator.executions;
    const { id } = await orchestrator.execute('refund');
    const { id: second } = await retry(id);
    await (await retry(second)).result();
    expect(ids((await list({ retryOf: id })).executions)).toEqual([second]);
    expect(ids((await list({ retryOf: id, status: 'failed', ensemble: 'refund' })).executions)).toEqual([second]);
    const others = [
      { status: 'completed' },
      { ensemble: 'other' },
      { tag: 'x' },
      { until: 0 },
      { since: 9e15 },
    ] as const;
    for (const other of others) expect((await list({ retryOf: id, ...other })).executions).toEqual([]);
    expect((await list({ retryOf: 'unknown' })).executions).toEqual([]);
    await orchestrator.close();
  });
});

describe('the input of a retry', () => {
  it('replaces the input of the steps that run again, and is checked as at a start', async () => {
    const { bank, orchestrator } = open();
    const { id } = await orchestrator.execute('refund');
    await expect(orchestrator.executions.retry(id, { input: { cents: 'ten' } })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    });
    bank.answers = true;
    const record = await (await orchestrator.executions.retry(id, { input: { cents: 9 } })).result();
    expect(record).toMatchObject({ status: 'completed', input: { cents: 9 }, output: { paid: 9 } });
  });

  it('an unknown option is refused with the nearest name', async () => {
    const { orchestrator } = open();
    const retry = orchestrator.executions.retry('x', { newKey: true } as never);
    await expect(retry).rejects.toThrow('did you mean `newKeys`?');
  });
});
