/** The operations that run something, with every kind of flow that calls the storage in a different way. */

import { code, echo, ensemble, flaky } from '../../src/conformance/engine-suite/steps.ts';
import type { Execution } from '../../src/engine/execution/execution.ts';
import { type Operation, only, plain, runs, slow, waits } from './operation.ts';

const add = { setState: { count: '${state.count + 1}' } };
const count = { state: { initial: { count: 0 } } };

const execute = (name: string, definition: object, status?: Execution['status']): Operation => ({
  name: `execute: ${name}`,
  options: only(definition),
  act: runs(status),
});

// An agent has no deadline by default, and a failure of its store is a failure of the agent. The timeout ends a call without answer.
const again = { timeout: 1000, retry: { maxAttempts: 2 } };
const storing = (config: object): object =>
  ensemble([{ agent: 'put', operation: 'storage', config, ...again }, echo('b', '${put.success}')], {
    b: '${b.output}',
  });

export const EXECUTING: readonly Operation[] = [
  execute('steps in a row', plain),
  execute('a wait during which the run is suspended', ensemble([flaky('a', 2, { maxAttempts: 2 }), echo('b', 1)])),
  execute('short waits', ensemble([flaky('a', 3, { maxAttempts: 3, backoff: 'fixed', delay: 20 }), echo('b', 1)])),
  execute(
    'several items at once',
    ensemble([
      { foreach: [0, 1, 2, 3], concurrency: 2, steps: [echo('a', { i: '${item}' }), echo('b', { i: '${item}' })] },
    ]),
  ),
  execute(
    'items, one of which fails',
    ensemble([
      {
        foreach: [0, 1, 2],
        concurrency: 2,
        steps: [code('a', 'slow', { input: { i: '${item}', ms: '${item * 10 + 5}', fails: '${item == 1}' } })],
        continueOnError: true,
      },
      echo('b', 1),
    ]),
  ),
  execute('state', ensemble([echo('a', 1, add), echo('b', 2, add), echo('c', 3)], { n: '${state.count}' }, count)),
  execute(
    'conditions that read the state',
    ensemble([echo('a', 1, add), { if: '${state.count > 0}', then: [echo('b', 2, add)] }, echo('c', 3)], {}, count),
  ),
  execute('durability none', { ...plain, execution: { durability: 'none' } }),
  execute('a run that fails', ensemble([echo('a', 1), code('b', 'boom')]), 'failed'),
  execute('a deadline in a wait', { ...waits, timeout: 5000 }, 'timed_out'),
  execute('no steps', ensemble([])),
  {
    name: 'execute: cancelled by its signal',
    options: only(waits),
    async act({ orchestrator, until }) {
      const controller = new AbortController();
      const run = orchestrator.execute('e', {}, { signal: controller.signal });
      let over = false;
      run.then(
        () => {
          over = true;
        },
        () => {
          over = true;
        },
      );
      await until(() => over, 3000);
      controller.abort();
      return run;
    },
  },
  {
    name: 'executeAgent',
    options: { ensembles: [], agents: [{ name: 'alone', operation: 'code', config: { script: 'echo' } }] },
    act: ({ orchestrator }) => orchestrator.executeAgent('alone', { i: 1 }),
  },
  {
    name: 'startAgent',
    options: { ensembles: [], agents: [{ name: 'alone', operation: 'code', config: { script: 'echo' } }] },
    act: async ({ orchestrator }) => (await orchestrator.startAgent('alone', { i: 1 })).result(),
  },
  {
    name: 'start and result',
    options: only(plain),
    act: async ({ orchestrator }) => (await orchestrator.start('e')).result(),
  },
  {
    name: 'start: with an idempotency key',
    options: only(plain),
    act: async ({ orchestrator }) => (await orchestrator.start('e', {}, { idempotencyKey: 'once' })).result(),
  },
  {
    name: 'execute: a child',
    options: { ensembles: [ensemble([{ ensemble: 'kid', input: {} }, echo('c', 3)]), { ...plain, name: 'kid' }] },
    act: runs(),
  },
  {
    name: 'start: events of the run',
    options: only(plain),
    async act({ orchestrator }) {
      const handle = await orchestrator.start('e');
      for await (const { event } of handle.events()) if (event === 'execution.completed') break;
      await handle.result();
    },
  },
  {
    name: 'start: queued, with a concurrency of 1',
    options: only(slow, { engine: { concurrency: 1 } }),
    async act({ orchestrator }) {
      const handles = [await orchestrator.start('e', { i: 0 }), await orchestrator.start('e', { i: 1 })];
      await Promise.all(handles.map((handle) => handle.result()));
    },
  },
  {
    name: 'start: several at once',
    options: only(plain),
    act: ({ orchestrator }) => Promise.all([0, 1, 2].map(async (i) => (await orchestrator.start('e', { i })).result())),
  },
  {
    name: 'handle.cancel',
    options: only(slow),
    async act({ orchestrator }) {
      const handle = await orchestrator.start('e');
      handle.cancel();
      await handle.result();
    },
  },
  execute('an agent that stores a value', storing({ type: 'kv', action: 'put', key: 'k', value: 1 })),
  execute('an agent that stores an object', storing({ type: 'r2', action: 'put', key: 'k', value: 'text' })),
];
