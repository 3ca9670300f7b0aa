/** Storage suite: the record of an execution in each status. */

import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  retrying,
  type StorageCase,
  same,
  step,
  T0,
  UNTROUBLED,
} from '../context.ts';

export function recordCases(it: StorageCase): void {
  it('getAccepted: returns the execution as it was accepted, before and after its end', async (storage) => {
    const accepted = execution(1, {
      trigger: { type: 'schedule' },
      input: { list: [1, null, 'ä'] },
      deadlineAt: T0 + 60_000,
      retryOf: executionId(0),
    });
    await enqueue(storage, accepted);
    await accept(storage, execution(2));
    same(await storage.executions.getAccepted(executionId(1)), accepted, 'when it is queued');
    await claim(storage);
    same(await storage.executions.getAccepted(executionId(1)), accepted, 'when it runs');
    await commitOne(storage, entry(1, { end: end() }));
    same(await storage.executions.getAccepted(executionId(1)), accepted, 'when it has ended');
    same(await storage.executions.getAccepted(executionId(2)), execution(2), 'an execution without a deadline');
  });

  it('getAccepted: returns undefined for an unknown id', async (storage) => {
    await accept(storage, execution(1));
    for (const id of [executionId(2), '', 'constructor'])
      same(await storage.executions.getAccepted(id), undefined, `of ${JSON.stringify(id)}`);
  });

  it('get: returns undefined for an unknown id', async (storage) => {
    same(await storage.executions.get(executionId(1)), undefined, 'record');
    await accept(storage, execution(1));
    for (const id of [executionId(2), '', 'constructor', executionId(1).toLowerCase().replace('exec_', 'exec-')]) {
      same(await storage.executions.get(id), undefined, `record of ${JSON.stringify(id)}`);
    }
  });

  it('get: returns the record of a running execution', async (storage) => {
    const { seed, ...accepted } = execution(1, { trigger: { type: 'webhook' }, deadlineAt: T0 + 60_000 });
    await accept(storage, { seed, ...accepted });
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
  });

  it('get: returns agent runs that completed, failed, or wait for another attempt', async (storage) => {
    await accept(storage, execution(1));
    const error = { code: 'TIMEOUT', message: 'agent `slow` took longer than 5 ms', agent: 'slow' };
    const failed = step('flow[1]', { name: 'slow', status: 'failed', attempts: 3, output: null, error });
    await commitOne(storage, entry(1, { steps: [step('flow[0]'), failed, retrying('flow[2]', 1)] }));
    const record = await storage.executions.get(executionId(1));
    const { retryAt: _retryAt, ...between } = retrying('flow[2]', 1);
    same(record?.agents, [step('flow[0]'), failed, { ...between, status: 'retrying' }], 'runs');
    same(
      record?.metrics,
      { totalDuration: 0, agents: 2, queued: 0, waited: 0 },
      'metrics: agents that ran to a result',
    );
  });

  for (const status of ['completed', 'failed', 'timed_out', 'cancelled'] as const) {
    it(`get: returns the record of an execution that ended as ${status}`, async (storage) => {
      const { seed, ...accepted } = execution(1, { deadlineAt: T0 + 60_000 });
      await accept(storage, { seed, ...accepted });
      const error = status === 'completed' ? undefined : { code: 'AGENT_FAILED', message: 'boom', agent: 'a' };
      await commitOne(storage, entry(1, { steps: [step('flow[0]')], end: end({ status, ...(error && { error }) }) }));
      const expected = {
        ...accepted,
        status,
        ...(error ? { partialOutput: { done: true }, error } : { output: { done: true } }),
        startedAt: T0 + 1,
        finishedAt: T0 + 500,
        duration: 400,
        tags: [],
        metrics: { totalDuration: 400, agents: 1, queued: 0, waited: 0 },
        ...UNTROUBLED,
        agents: [step('flow[0]')],
      };
      same(await storage.executions.get(executionId(1)), expected, 'record');
    });
  }

  it('get: the end sets the number of agents that ran', async (storage) => {
    for (const [number, agents] of [0, 7, 100_000].entries()) {
      await accept(storage, execution(number));
      await commitOne(storage, entry(number, { steps: [step('flow[0]')], end: end({ agents }) }));
      same((await storage.executions.get(executionId(number)))?.metrics.agents, agents, 'agents in the record');
    }
    const listed = await storage.executions.list({ limit: 10 });
    same(
      listed.map(({ metrics }) => metrics.agents),
      [100_000, 7, 0],
      'agents in a listing',
    );
  });

  it('get: returns the first 1,000 runs, and counts all', async (storage) => {
    await accept(storage, execution(1));
    const steps = Array.from({ length: 1005 }, (_, i) => step(`flow[0].foreach[${i}].steps[0]`));
    await commitOne(storage, entry(1, { steps: steps.slice(0, 600) }));
    await commitOne(storage, entry(1, { steps: steps.slice(600) }));
    const record = await storage.executions.get(executionId(1));
    same(record?.agents, steps.slice(0, 1000), 'runs');
    same(record?.metrics.agents, 1005, 'agents that ran');
  });

  it('get: a returned record does not change when more is committed', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1)] }));
    const record = await storage.executions.get(executionId(1));
    const steps = await storage.executions.listSteps(executionId(1), { limit: 10 });
    await commitOne(storage, entry(1, { steps: [step('flow[0]', { attempts: 2 }), step('flow[1]')], end: end() }));
    same((await storage.executions.get(executionId(1)))?.status, 'completed', 'status now');
    same([record?.status, record?.agents.length, record?.agents[0]?.status], ['running', 1, 'retrying'], 'record');
    same(steps, [retrying('flow[0]', 1)], 'steps');
  });
}
