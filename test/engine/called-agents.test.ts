/** Agents that the operation of another agent calls: what they read, how they are stored, and what stops them. */

import { describe, expect, it } from 'vitest';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import type { Json } from '../../src/engine/base/json/json.ts';
import { createTestOrchestrator, type TestOrchestratorOptions } from '../../src/entries/testing.ts';
import { isOrchestratorError, type Operation } from '../../src/index.ts';

/** Calls the agents of `config.calls` one after the other with its input, and returns what they gave. */
const caller: Operation<{ readonly calls: readonly string[] }> = {
  name: 'caller',
  calls: ({ calls }) => (calls as string[]).map((agent, i) => ({ agent, path: ['calls', i] })),
  async run({ callAgent, config, input }) {
    const given: Json[] = [];
    for (const [i, name] of config.calls.entries()) {
      const { output, error } = await callAgent(name, input, { kind: 'tool', number: i + 1, name });
      given.push(error ? { code: error.code, message: error.message } : (output ?? null));
    }
    return given;
  },
};

const script = (name: string, more: object = {}) => ({ name, operation: 'code', config: { script: name }, ...more });
const calling = (calls: string[], agents: object[], more: object = {}) => ({
  name: 'e',
  flow: [{ agent: 'main', operation: 'caller', config: { calls }, input: { n: 20, text: 'hello' }, ...more }],
  outputs: { main: '${main.output}' },
  agents,
});

function made(ensemble: object, options: TestOrchestratorOptions = {}) {
  return createTestOrchestrator({ ensembles: [ensemble as never], operations: [caller], ...options });
}

function failOnError(given: unknown): unknown {
  if (JSON.stringify(given).includes('"code"')) throw new Error('a call failed');
  return given;
}

function refused(ensemble: object, options: TestOrchestratorOptions = {}): readonly string[] {
  try {
    made(ensemble, options);
  } catch (error) {
    if (isOrchestratorError(error, 'INVALID_DEFINITION'))
      return error.details.issues.map(({ path, message }) => `${path}: ${message}`);
    throw error;
  }
  return [];
}

describe('a called agent', () => {
  it('reads as `input` what it is called with, and not the input of the execution', async () => {
    const orchestrator = made(calling(['double'], [script('double', { input: { value: '${input.n * 2}' } })]), {
      scripts: { double: ({ input }) => input },
    });
    const run = await orchestrator.execute('e', { n: 1 });
    expect(run.output).toEqual({ main: [{ value: 40 }] });
    await orchestrator.close();
  });

  it('without an `input` of its own gets what it is called with', async () => {
    const orchestrator = made(calling(['same'], [script('same')]), { scripts: { same: ({ input }) => input } });
    expect((await orchestrator.execute('e')).output).toEqual({ main: [{ n: 20, text: 'hello' }] });
    await orchestrator.close();
  });

  it('is an agent of the record, under the key of its call', async () => {
    const orchestrator = made(calling(['one', 'two'], [script('one'), script('two')]), {
      scripts: { one: () => 1, two: () => 2 },
    });
    const run = await orchestrator.execute('e');
    expect(run.agents.map(({ key, name, output }) => [key, name, output])).toEqual([
      ['flow[0].tool[1].flow[0]', 'one', 1],
      ['flow[0].tool[2].flow[0]', 'two', 2],
      ['flow[0]', 'main', [1, 2]],
    ]);
    await orchestrator.close();
  });

  it('may be a shared agent', async () => {
    const orchestrator = made(calling(['shared'], []), {
      agents: [script('shared') as never],
      scripts: { shared: () => 'from the shared one' },
    });
    const run = await orchestrator.execute('e');
    expect(run.output).toEqual({ main: ['from the shared one'] });
    await orchestrator.close();
  });

  it('retries as it declares, in the place of the call', async () => {
    let attempts = 0;
    const orchestrator = made(
      calling(['flaky'], [script('flaky', { retry: { maxAttempts: 3, delay: '2h', backoff: 'fixed' } })]),
      {
        scripts: {
          flaky: () => {
            attempts += 1;
            if (attempts < 3) throw new Error('not yet');
            return attempts;
          },
        },
      },
    );
    const run = await orchestrator.execute('e');
    expect([run.output, run.duration]).toEqual([{ main: [3] }, 4 * 3_600_000]);
    await orchestrator.close();
  });

  it('that fails gives its error to the caller, which may go on', async () => {
    const orchestrator = made(calling(['bad', 'good'], [script('bad'), script('good')]), {
      scripts: {
        bad: () => {
          throw new OrchestratorError('AGENT_FAILED', 'no such order');
        },
        good: () => 'fine',
      },
    });
    const run = await orchestrator.execute('e');
    expect([run.status, run.output]).toEqual([
      'completed',
      { main: [{ code: 'AGENT_FAILED', message: 'no such order' }, 'fine'] },
    ]);
    await orchestrator.close();
  });

  it('whose condition does not hold gives null', async () => {
    const orchestrator = made(calling(['one'], [script('one', { condition: '${input.n > 100}' })]), {
      scripts: { one: () => 1 },
    });
    expect((await orchestrator.execute('e')).output).toEqual({ main: [null] });
    await orchestrator.close();
  });

  it('that has a stored result does not run again after a crash', async () => {
    const runs: string[] = [];
    const scripts = {
      one: () => runs.push('one'),
      two: () => {
        runs.push('two');
        return runs.length < 4 ? new Promise(() => {}) : 'done';
      },
    };
    const orchestrator = made(calling(['one', 'two'], [script('one'), script('two', { timeout: 5000 })]), { scripts });
    const { id } = await orchestrator.start('e');
    await orchestrator.clock.advance(0);
    expect(runs).toEqual(['one', 'two']);
    const next = await orchestrator.crash({ scripts: { ...scripts, two: () => 'two of the next process' } });
    const run = await next.result(id);
    expect([run.status, run.output, runs]).toEqual([
      'completed',
      { main: [1, 'two of the next process'] },
      ['one', 'two'],
    ]);
    await next.close();
  });

  it('of a failed caller is not run again when the execution is retried', async () => {
    let runs = 0;
    let failures = 0;
    const orchestrator = made(calling(['one', 'bad'], [script('one'), script('bad')], { retry: { maxAttempts: 1 } }), {
      operations: [{ ...caller, run: async (context) => failOnError(await caller.run(context)) }],
      scripts: {
        one: () => {
          runs += 1;
          return runs;
        },
        bad: () => {
          if (failures++ === 0) throw new Error('not yet');
          return 'good';
        },
      },
    });
    const { id } = await orchestrator.execute('e');
    const retried = await orchestrator.executions.retry(id);
    expect((await orchestrator.result(retried.id)).output).toEqual({ main: [1, 'good'] });
    await orchestrator.close();
  });

  it('is stopped by the timeout of its caller; a later result of it is dropped', async () => {
    const calls: string[] = [];
    const orchestrator = made(calling(['slow'], [script('slow')], { timeout: 1000, retry: { maxAttempts: 2 } }), {
      scripts: {
        slow: async ({ signal }) => {
          calls.push('begun');
          if (calls.length > 1) return 'second';
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          return 'first, too late';
        },
      },
    });
    const { id } = await orchestrator.start('e');
    await orchestrator.clock.advance(1000);
    const run = await orchestrator.result(id);
    expect([run.status, run.output, calls.length]).toEqual(['completed', { main: ['second'] }, 2]);
    expect(run.agents.map(({ key, output }) => [key, output])).toEqual([
      ['flow[0]', ['second']],
      ['flow[0].tool[1].flow[0]', 'second'],
    ]);
    await orchestrator.close();
  });

  it('is stopped when the execution is cancelled', async () => {
    let aborted = false;
    const orchestrator = made(calling(['slow'], [script('slow')]), {
      scripts: {
        slow: ({ signal }) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => {
              aborted = true;
              reject(signal.reason);
            });
          }),
      },
    });
    const { id } = await orchestrator.start('e');
    await orchestrator.clock.advance(0);
    await orchestrator.executions.cancel(id);
    expect([(await orchestrator.result(id)).status, aborted]).toEqual(['cancelled', true]);
    await orchestrator.close();
  });

  it('reads and sets the state of the ensemble', async () => {
    const ensemble = {
      ...calling(
        ['count', 'count2'],
        [
          script('count', { input: '${state.total}', setState: { total: '${state.total + 1}' } }),
          script('count2', { input: '${state.total}' }),
        ],
      ),
      state: { initial: { total: 7 } },
    };
    const scripts = {
      count: ({ input }: { input: unknown }) => input,
      count2: ({ input }: { input: unknown }) => input,
    };
    const orchestrator = made(ensemble, { scripts });
    expect((await orchestrator.execute('e')).output).toEqual({ main: [7, 8] });
    await orchestrator.close();
  });
});

describe('at load', () => {
  it('an agent that does not exist is refused, with the nearest name', () => {
    expect(refused(calling(['duble'], [script('double')]), { scripts: { double: () => 1 } })[0]).toContain(
      'flow[0].config.calls[0]: there is no agent `duble`',
    );
  });

  it('an agent that leads back to itself is refused', () => {
    const inner = { name: 'inner', operation: 'caller', config: { calls: ['main2'] } };
    const main2 = { name: 'main2', operation: 'caller', config: { calls: ['inner'] } };
    expect(refused(calling(['main2'], [inner, main2]))[0]).toContain(
      "agent `main2` can't be called here, because that leads back to it: main -> main2 -> inner",
    );
  });

  it('a router is refused', () => {
    const router = { name: 'router', routes: [{ default: true, member: 'one' }] };
    expect(refused(calling(['router'], [router, script('one')]), { scripts: { one: () => 1 } })[0]).toContain(
      'has `routes`',
    );
  });

  it('an agent that reads the result of a step is refused: a call has no results of the flow', () => {
    const ensemble = calling(['reads'], [script('reads', { input: '${main.output}' }), script('one')]);
    expect(refused(ensemble, { scripts: { reads: () => 1, one: () => 1 } })[0]).toContain('main');
  });
});
