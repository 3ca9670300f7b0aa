/** The storage suite's cases of reading: an execution's record at each stage, its values, its steps by pages, listings. */

import type { Json } from '../../../engine/json.ts';
import {
  change,
  commitOne,
  end,
  entry,
  execution,
  executionId,
  frozen,
  retrying,
  type StorageCase,
  same,
  step,
  stepKeys,
  T0,
} from './context.ts';

export function recordCases(it: StorageCase): void {
  it('getExecution: an unknown id gives undefined', async (storage) => {
    same(await storage.getExecution(executionId(1)), undefined, 'record');
    await storage.accept(execution(1));
    for (const id of [executionId(2), '', 'constructor', executionId(1).toLowerCase().replace('exec_', 'exec-')]) {
      same(await storage.getExecution(id), undefined, `record of ${JSON.stringify(id)}`);
    }
  });

  it('getExecution: a running execution', async (storage) => {
    const { seed, epoch, ...accepted } = execution(1, { trigger: { type: 'webhook' }, deadlineAt: T0 + 60_000 });
    await storage.accept({ seed, epoch, ...accepted });
    const expected = {
      ...accepted,
      status: 'running',
      output: null,
      startedAt: T0 + 1,
      metrics: { totalDuration: 0, agents: 0 },
      agents: [],
    };
    same(await storage.getExecution(executionId(1)), expected, 'record');
  });

  it('getExecution: an agent run, one that failed, and one between two attempts', async (storage) => {
    await storage.accept(execution(1));
    const error = { code: 'TIMEOUT', message: 'agent `slow` took longer than 5 ms', agent: 'slow' };
    const failed = step('flow[1]', { name: 'slow', status: 'failed', attempts: 3, output: null, error });
    await commitOne(storage, entry(1, { steps: [step('flow[0]'), failed, retrying('flow[2]', 1)] }));
    const record = await storage.getExecution(executionId(1));
    const { retryAt: _retryAt, ...between } = retrying('flow[2]', 1);
    same(record?.agents, [step('flow[0]'), failed, { ...between, status: 'retrying' }], 'runs');
    same(record?.metrics, { totalDuration: 0, agents: 2 }, 'metrics: agents that ran to a result');
  });

  for (const status of ['completed', 'failed', 'timed_out', 'cancelled'] as const) {
    it(`getExecution: an execution that ended as ${status}`, async (storage) => {
      const { seed, epoch, ...accepted } = execution(1, { deadlineAt: T0 + 60_000 });
      await storage.accept({ seed, epoch, ...accepted });
      const error = status === 'completed' ? undefined : { code: 'AGENT_FAILED', message: 'boom', agent: 'a' };
      await commitOne(storage, entry(1, { steps: [step('flow[0]')], end: end({ status, ...(error && { error }) }) }));
      const expected = {
        ...accepted,
        status,
        output: { done: true },
        ...(error && { error }),
        startedAt: T0 + 1,
        finishedAt: T0 + 500,
        duration: 400,
        metrics: { totalDuration: 400, agents: 1 },
        agents: [step('flow[0]')],
      };
      same(await storage.getExecution(executionId(1)), expected, 'record');
    });
  }

  it('getExecution: carries the first 1,000 runs and counts all', async (storage) => {
    await storage.accept(execution(1));
    const steps = Array.from({ length: 1005 }, (_, i) => step(`flow[0].foreach[${i}].steps[0]`));
    await commitOne(storage, entry(1, { steps: steps.slice(0, 600) }));
    await commitOne(storage, entry(1, { steps: steps.slice(600) }));
    const record = await storage.getExecution(executionId(1));
    same(record?.agents, steps.slice(0, 1000), 'runs');
    same(record?.metrics.agents, 1005, 'agents that ran');
  });

  it('getExecution: what was handed out stays as it was when more is committed', async (storage) => {
    await storage.accept(execution(1));
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1)] }));
    const record = await storage.getExecution(executionId(1));
    const steps = await storage.listSteps(executionId(1), { after: 0, limit: 10 });
    await commitOne(storage, entry(1, { steps: [step('flow[0]', { attempts: 2 }), step('flow[1]')], end: end() }));
    same([record?.status, record?.agents.length, record?.agents[0]?.status], ['running', 1, 'retrying'], 'record');
    same(steps, [retrying('flow[0]', 1)], 'steps');
  });

  it('values that are handed in may be frozen', async (storage) => {
    await storage.putDefinition(
      frozen({ version: 'v', definition: { name: 'orders', flow: [] }, needs: ['operation:code'] }),
    );
    await storage.accept(frozen(execution(1)));
    const first = frozen(entry(1, { steps: [retrying('flow[0]', 1)], state: change(0, { list: [1] }) }));
    const second = frozen(
      entry(1, { steps: [step('flow[0]', { attempts: 2 })], state: change(1, { list: [2] }), end: end() }),
    );
    same([await commitOne(storage, first), await commitOne(storage, second)], ['stored', 'stored'], 'answers');
    same((await storage.getExecution(executionId(1)))?.agents.length, 1, 'runs');
  });
}

const VALUES: readonly (readonly [string, Json])[] = [
  ['null', null],
  ['booleans', [true, false]],
  ['numbers', [0, 1, -1, 0.1, 1e21, 5e-324, Number.MAX_VALUE, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]],
  ['negative zero, which JSON writes as 0', [-0]],
  ['a text alone', 'text'],
  ['the empty text', ''],
  ['a text that looks like JSON', '{"a":1}'],
  ['a text that looks like a date', '2026-01-01T00:00:00Z'],
  ['texts of all planes', ['ä', '漢字', '👩‍👩‍👧', '\u0000', '\u2028', '\ufeff', 'e\u0301', '\\ " \' ` $1 %s ?']],
  ['half a surrogate pair', ['\ud83d', '\udc00']],
  ['a text of a million characters', 'ä漢x'.repeat(350_000)],
  ['an empty list and an empty object', [[], {}]],
  ['empty and odd keys', { '': 1, ' ': 2, '.': 3, 'a.b': 4, '[0]': 5, "'": 6, '"': 7, ключ: 8, '0': 9, '-1': 10 }],
  ['keys that objects inherit', { constructor: 1, toString: 2, hasOwnProperty: 3, valueOf: null, length: [] }],
  ['a list of lists', [[[[[[1], 2], 3], 4], 5], 6]],
  ['60 levels', Array.from({ length: 60 }).reduce<Json>((inner) => ({ inner }), 'bottom')],
  ['ten thousand items', Array.from({ length: 10_000 }, (_, i) => ({ i, odd: i % 2 === 1 }))],
];

export function valueCases(it: StorageCase): void {
  for (const [what, value] of VALUES) {
    it(`values come back as they were handed in, as input, step output, output and state: ${what}`, async (storage) => {
      await storage.accept(execution(1, { input: value }));
      const state = change(0, { value });
      await commitOne(
        storage,
        entry(1, { steps: [step('flow[0]', { output: value })], state, end: end({ output: value }) }),
      );
      const record = await storage.getExecution(executionId(1));
      same(record?.input, value, 'input');
      same(record?.output, value, 'output');
      same(record?.agents[0]?.output, value, 'output of the step');
      same(
        (await storage.listSteps(executionId(1), { after: 0, limit: 1 }))[0]?.output,
        value,
        'output of the step record',
      );
      same((await storage.readState('orders'))?.value, { value }, 'state');
    });
  }

  it('names, keys and messages come back as they were handed in', async (storage) => {
    const odd = 'a\'"\\;--%_\u2028漢👍';
    await storage.accept(execution(1, { ensemble: 'agent:constructor', version: odd }));
    const error = { code: 'AGENT_FAILED', message: odd };
    const record = step(odd, { name: odd, status: 'failed', output: null, error });
    await commitOne(storage, entry(1, { steps: [record], end: end({ status: 'failed', error }) }));
    const found = await storage.getExecution(executionId(1));
    same([found?.ensemble, found?.version, found?.error], ['agent:constructor', odd, error], 'record');
    same(found?.agents, [record], 'runs');
  });
}

export function listingCases(it: StorageCase): void {
  it('listExecutions: an empty store gives none', async (storage) => {
    same(await storage.listExecutions({ limit: 100 }), [], 'executions');
  });

  it('listExecutions: newest first, by id, whatever the order in which they came', async (storage) => {
    for (const number of [3, 1, 10, 2]) await storage.accept(execution(number, { createdAt: T0 }));
    const ids = (await storage.listExecutions({ limit: 100 })).map(({ id }) => id);
    same(ids, [10, 3, 2, 1].map(executionId), 'ids');
  });

  it('listExecutions: records as getExecution gives them, without their agent runs', async (storage) => {
    for (const number of [1, 2]) await storage.accept(execution(number));
    const error = { code: 'TIMEOUT', message: 'late', agent: 'a' };
    const ended = end({ status: 'timed_out', error });
    await storage.commit([
      entry(1, { steps: [step('flow[0]')] }),
      entry(2, { steps: [step('flow[0]'), step('flow[1]')], end: ended }),
    ]);
    const expected = [];
    for (const number of [2, 1]) expected.push({ ...(await storage.getExecution(executionId(number))), agents: [] });
    same(await storage.listExecutions({ limit: 100 }), expected, 'records');
  });

  it('listExecutions: at most `limit`', async (storage) => {
    for (let number = 0; number < 5; number++) await storage.accept(execution(number));
    for (const limit of [1, 4, 5, 250])
      same((await storage.listExecutions({ limit })).length, Math.min(limit, 5), `limit ${limit}`);
  });

  it('listExecutions: by ensemble', async (storage) => {
    for (const [number, ensemble] of ['a', 'b', 'a', 'A'].entries())
      await storage.accept(execution(number, { ensemble }));
    const ids = async (ensemble: string) =>
      (await storage.listExecutions({ ensemble, limit: 100 })).map(({ id }) => id);
    same(await ids('a'), [executionId(2), executionId(0)], 'ensemble a');
    same(await ids('A'), [executionId(3)], 'ensemble A: case counts');
    for (const other of ['c', '%', 'constructor', '']) same(await ids(other), [], `ensemble ${JSON.stringify(other)}`);
  });

  it('listExecutions: by status', async (storage) => {
    const statuses = ['completed', 'failed', 'timed_out', 'cancelled'] as const;
    for (let number = 0; number < 5; number++) await storage.accept(execution(number));
    await storage.commit(statuses.map((status, number) => entry(number, { end: end({ status }) })));
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
    for (const number of [1, 2, 4, 5]) await storage.accept(execution(number));
    const before = async (number: number) =>
      (await storage.listExecutions({ before: executionId(number), limit: 100 })).map(({ id }) => id);
    same(await before(4), [executionId(2), executionId(1)], 'before one that is stored');
    same(await before(3), [executionId(2), executionId(1)], 'before one that is not');
    same(await before(1), [], 'before the oldest');
  });

  it('listExecutions: ensemble, status, before and limit together page through all, each once', async (storage) => {
    for (let number = 0; number < 30; number++)
      await storage.accept(execution(number, { ensemble: number % 3 === 0 ? 'a' : 'b' }));
    await storage.commit(
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
    same(await storage.listSteps(executionId(1), { after: 0, limit: 10 }), [], 'steps');
  });

  it('listSteps: the records as they were handed in, in the order in which they were first stored', async (storage) => {
    await storage.accept(execution(1));
    const records = [step('flow[2]'), step('flow[0]', { duration: 0 }), retrying('flow[1]', 1)];
    await commitOne(storage, entry(1, { steps: records.slice(0, 2) }));
    await commitOne(storage, entry(1, { steps: records.slice(2) }));
    same(await storage.listSteps(executionId(1), { after: 0, limit: 10 }), records, 'steps');
  });

  it('listSteps: `after` skips that many, `limit` bounds the page', async (storage) => {
    await storage.accept(execution(1));
    const keys = Array.from({ length: 1200 }, (_, i) => `flow[0].foreach[${i}].steps[0]`);
    await commitOne(storage, entry(1, { steps: keys.map((key) => step(key)) }));
    const page = async (after: number, limit: number) =>
      (await storage.listSteps(executionId(1), { after, limit })).map(({ key }) => key);
    same(await page(0, 2), keys.slice(0, 2), 'the first page');
    same(await page(999, 3), keys.slice(999, 1002), 'across the first 1,000');
    same(await page(1198, 10), keys.slice(1198), 'the last page');
    same(await page(1200, 10), [], 'behind the end');
  });

  it('listSteps: a record that is replaced keeps its place between two pages', async (storage) => {
    await storage.accept(execution(1));
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1), step('flow[1]')] }));
    await commitOne(storage, entry(1, { steps: [step('flow[0]', { attempts: 2 }), step('flow[2]')] }));
    same(await stepKeys(storage, 1), ['flow[0]', 'flow[1]', 'flow[2]'], 'keys');
  });
}
