/** The storage suite's cases of reading: an execution's record at each stage, its values, its steps by pages, listings. */

import type { Json } from '../../../engine/json.ts';
import {
  accept,
  change,
  claim,
  commitOne,
  delivery,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  frozen,
  retrying,
  type StorageCase,
  same,
  starting,
  step,
  T0,
} from './context.ts';

export function recordCases(it: StorageCase): void {
  it('getAccepted: an execution as it was accepted, from its start to behind its end', async (storage) => {
    const accepted = execution(1, {
      trigger: { type: 'schedule' },
      input: { list: [1, null, 'ä'] },
      deadlineAt: T0 + 60_000,
      retryOf: executionId(0),
    });
    await enqueue(storage, accepted);
    await accept(storage, execution(2));
    same(await storage.getAccepted(executionId(1)), accepted, 'when it is queued');
    await claim(storage);
    same(await storage.getAccepted(executionId(1)), accepted, 'when it runs');
    await commitOne(storage, entry(1, { end: end() }));
    same(await storage.getAccepted(executionId(1)), accepted, 'when it has ended');
    same(await storage.getAccepted(executionId(2)), execution(2), 'one without a deadline');
  });

  it('getAccepted: an unknown id gives undefined', async (storage) => {
    await accept(storage, execution(1));
    for (const id of [executionId(2), '', 'constructor'])
      same(await storage.getAccepted(id), undefined, `of ${JSON.stringify(id)}`);
  });

  it('getExecution: an unknown id gives undefined', async (storage) => {
    same(await storage.getExecution(executionId(1)), undefined, 'record');
    await accept(storage, execution(1));
    for (const id of [executionId(2), '', 'constructor', executionId(1).toLowerCase().replace('exec_', 'exec-')]) {
      same(await storage.getExecution(id), undefined, `record of ${JSON.stringify(id)}`);
    }
  });

  it('getExecution: a running execution', async (storage) => {
    const { seed, ...accepted } = execution(1, { trigger: { type: 'webhook' }, deadlineAt: T0 + 60_000 });
    await accept(storage, { seed, ...accepted });
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
    await accept(storage, execution(1));
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
      const { seed, ...accepted } = execution(1, { deadlineAt: T0 + 60_000 });
      await accept(storage, { seed, ...accepted });
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

  it('getExecution: an end says how many agents ran', async (storage) => {
    for (const [number, agents] of [0, 7, 100_000].entries()) {
      await accept(storage, execution(number));
      await commitOne(storage, entry(number, { steps: [step('flow[0]')], end: end({ agents }) }));
      same((await storage.getExecution(executionId(number)))?.metrics.agents, agents, 'agents in the record');
    }
    const listed = await storage.listExecutions({ limit: 10 });
    same(
      listed.map(({ metrics }) => metrics.agents),
      [100_000, 7, 0],
      'agents in a listing',
    );
  });

  it('getExecution: carries the first 1,000 runs and counts all', async (storage) => {
    await accept(storage, execution(1));
    const steps = Array.from({ length: 1005 }, (_, i) => step(`flow[0].foreach[${i}].steps[0]`));
    await commitOne(storage, entry(1, { steps: steps.slice(0, 600) }));
    await commitOne(storage, entry(1, { steps: steps.slice(600) }));
    const record = await storage.getExecution(executionId(1));
    same(record?.agents, steps.slice(0, 1000), 'runs');
    same(record?.metrics.agents, 1005, 'agents that ran');
  });

  it('getExecution: what was handed out stays as it was when more is committed', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1)] }));
    const record = await storage.getExecution(executionId(1));
    const steps = await storage.listSteps(executionId(1), { limit: 10 });
    await commitOne(storage, entry(1, { steps: [step('flow[0]', { attempts: 2 }), step('flow[1]')], end: end() }));
    same((await storage.getExecution(executionId(1)))?.status, 'completed', 'status now');
    same([record?.status, record?.agents.length, record?.agents[0]?.status], ['running', 1, 'retrying'], 'record');
    same(steps, [retrying('flow[0]', 1)], 'steps');
  });

  it('values that are handed in may be frozen', async (storage) => {
    await storage.putDefinition(
      frozen({ version: 'v', definition: { name: 'orders', flow: [] }, needs: ['operation:code'] }),
    );
    await accept(storage, frozen(execution(1)));
    const first = frozen(entry(1, { steps: [retrying('flow[0]', 1)], state: change(0, { list: [1] }) }));
    const second = frozen(
      entry(1, { steps: [step('flow[0]', { attempts: 2 })], state: change(1, { list: [2] }), end: end() }),
    );
    same([await commitOne(storage, first), await commitOne(storage, second)], ['stored', 'stored'], 'answers');
    const queued = frozen(
      starting(execution(2), {
        steps: [step('flow[0]')],
        deliveries: [delivery(1)],
        release: { status: 'queued', dueAt: T0 },
      }),
    );
    same(await commitOne(storage, queued), 'stored', 'answer to one that is queued');
    const [claimed] = await claim(storage, frozen({ now: T0, limit: 5, except: ['other'] }));
    const waits = frozen(
      entry(2, {
        deliveries: [delivery(2)],
        release: { status: 'waiting', dueAt: T0 + 5 },
        epoch: claimed?.epoch ?? 0,
      }),
    );
    same(await commitOne(storage, waits), 'stored', 'answer to one that is given up');
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
      await accept(storage, execution(1, { input: value }));
      const state = change(0, { value });
      await commitOne(
        storage,
        entry(1, { steps: [step('flow[0]', { output: value })], state, end: end({ output: value }) }),
      );
      const record = await storage.getExecution(executionId(1));
      same(record?.input, value, 'input');
      same(record?.output, value, 'output');
      same(record?.agents[0]?.output, value, 'output of the step');
      same((await storage.listSteps(executionId(1), { limit: 1 }))[0]?.output, value, 'output of the step record');
      same((await storage.readState('orders'))?.value, { value }, 'state');
    });
  }

  it('names, keys and messages come back as they were handed in', async (storage) => {
    const odd = 'a\'"\\;--%_\u2028漢👍';
    await accept(storage, execution(1, { ensemble: 'agent:constructor', version: odd }));
    const error = { code: 'AGENT_FAILED', message: odd };
    const record = step(odd, { name: odd, status: 'failed', output: null, error });
    await commitOne(storage, entry(1, { steps: [record], end: end({ status: 'failed', error }) }));
    const found = await storage.getExecution(executionId(1));
    same([found?.ensemble, found?.version, found?.error], ['agent:constructor', odd, error], 'record');
    same(found?.agents, [record], 'runs');
  });
}
