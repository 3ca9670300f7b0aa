/** Flows that the engine suite runs with a crash at every commit: foreach, state, durability, and single agents. */

import { equalJson } from '../../../engine/base/json/json.ts';
import { same } from '../../storage-suite/context.ts';
import type { Flow } from '../flow.ts';
import { code, echo, ensemble, flaky } from '../steps.ts';
import type { World } from '../world/world.ts';

const stateIs = (expected: unknown) => async (world: World) => {
  const { value } = (await world.reader.state.read('e')) ?? {};
  same(value, expected, 'the state');
};
const count = { state: { initial: { count: 0 } } };
const add = { setState: { count: '${state.count + 1}' } };

export const BLOCK_FLOWS: readonly Flow[] = [
  {
    title: 'foreach, one item at a time, until breakWhen holds',
    ensemble: ensemble(
      [
        {
          foreach: '${[1, 2, 3, 4, 5]}',
          steps: [echo('a', { i: '${index}', v: '${item * 2}' }), echo('b', { i: '${index}', v: '${a.output.v + 1}' })],
          breakWhen: '${index >= 2}',
          name: 'each',
        },
        echo('end', 1),
      ],
      { each: '${each.output}' },
    ),
    status: 'completed',
    output: { each: [0, 1, 2].map((i) => ({ i, v: (i + 1) * 2 + 1 })) },
    agents: ['a', 'b', 'a', 'b', 'a', 'b', 'end'],
  },
  {
    title: 'foreach, several items at once, with retries in the items',
    ensemble: ensemble(
      [
        {
          foreach: '${[0, 1, 2, 3, 4, 5, 6]}',
          concurrency: 3,
          steps: [
            code('a', 'slow', { input: { i: '${item}', ms: '${10 + item}' } }),
            {
              if: '${item == 4}',
              then: [flaky('f', 2, { maxAttempts: 2 }, { input: { i: '${item}' } })],
            },
            echo('b', { i: '${item}' }),
          ],
          name: 'each',
        },
      ],
      { each: '${each.output}' },
    ),
    status: 'completed',
    output: { each: [0, 1, 2, 3, 4, 5, 6].map((i) => ({ i })) },
    agents: [...Array(7).fill('a'), ...Array(7).fill('b'), 'f'],
    inProgress: 3,
  },
  {
    title:
      'foreach, several items at once: when one fails, the others are stopped, and a condition handles the failure',
    ensemble: ensemble(
      [
        {
          foreach: '${[10, 50, 100, 100]}',
          concurrency: 2,
          steps: [code('a', 'slow', { input: { i: '${index}', ms: '${item}', fails: '${index == 1}' } })],
          name: 'each',
        },
        { if: '${each.failed}', then: [echo('repair', { why: '${each.error.message}' })] },
        echo('end', 1),
      ],
      { why: '${repair.output.why}' },
    ),
    status: 'completed',
    output: { why: 'failed after 50 ms' },
    agents: ['a', 'a', 'end', 'repair'],
    inProgress: 2,
  },
  {
    title: 'foreach, several items at once, until breakWhen holds: items that have not begun never begin',
    ensemble: ensemble(
      [
        {
          foreach: '${[100, 10, 10, 10]}',
          concurrency: 2,
          steps: [code('a', 'slow', { input: { i: '${index}', ms: '${item}' } })],
          breakWhen: '${index == 1}',
          name: 'each',
        },
        echo('b', '${length(each.output)}'),
        echo('c', 1),
      ],
      { count: '${b.output}' },
    ),
    status: 'completed',
    output: { count: 2 },
    agents: ['a', 'a', 'b', 'c'],
    inProgress: 2,
  },
  {
    title: 'a foreach in a foreach, and one whose item fails for good',
    ensemble: ensemble(
      [
        {
          foreach: '${["x", "y"]}',
          steps: [
            {
              foreach: '${[0, 1]}',
              concurrency: 2,
              as: 'inner',
              steps: [echo('a', { i: '${item + inner}' })],
              name: 'pairs',
            },
            echo('b', { i: '${item}', n: '${length(pairs.output)}' }),
          ],
          name: 'all',
        },
        { foreach: '${[1, 2, 3]}', steps: [code('c', 'boom')] },
        echo('never', 1),
      ],
      { all: '${all.output}' },
    ),
    status: 'failed',
    output: { all: ['x', 'y'].map((i) => ({ i, n: 2 })) },
    error: { code: 'AGENT_FAILED', agent: 'c' },
    agents: ['a', 'a', 'a', 'a', 'b', 'b', 'c'],
    inProgress: 2,
  },
  {
    title: '1,100 agents, a hundred at once',
    ensemble: ensemble(
      [
        {
          foreach: '${input.items}',
          concurrency: 100,
          collect: false,
          steps: [echo('a', { i: '${item}' })],
          name: 'each',
        },
        echo('end', '${each.output}'),
      ],
      { done: '${end.output}' },
    ),
    run: (subject) => subject.execute('e', { items: Array.from({ length: 1100 }, (_, i) => i) }),
    status: 'completed',
    output: { done: 1100 },
    agents: Array(1000).fill('a'),
    inProgress: 100,
    points: (commits) => [1, 2, Math.ceil(commits / 2), commits - 1, commits],
    async check({ reader }, { id, metrics }) {
      same(metrics.agents, 1101, 'how many agents ran');
      const { key } = (await reader.executions.listSteps(id, { limit: 1100 })).at(-1) ?? {};
      const last = await reader.executions.listSteps(id, { after: key, limit: 10 });
      same(last.length, 1, 'agents that are listed after the first 1,100');
    },
  },
];

export const STATE_FLOWS: readonly Flow[] = [
  {
    title: 'state: each change is applied once',
    ensemble: ensemble(
      [
        echo('a', { seen: '${state.count}' }, add),
        echo('b', { seen: '${state.count}' }, add),
        { foreach: '${[0, 1, 2]}', concurrency: 3, steps: [echo('c', { i: '${item}' }, add)] },
        echo('d', { seen: '${state.count}' }, { setState: { count: '${state.count + 1}', last: '${d.output.seen}' } }),
      ],
      { count: '${state.count}', d: '${d.output.seen}' },
      count,
    ),
    status: 'completed',
    output: { count: 6, d: 5 },
    agents: ['a', 'b', 'c', 'c', 'c', 'd'],
    inProgress: 3,
    check: stateIs({ count: 6, last: 5 }),
  },
  {
    title: 'state: conditions that read it decide the same after a crash, even if the state has changed since',
    ensemble: ensemble(
      [
        { if: '${state.count == 0}', then: [echo('first', 1, add)], else: [echo('wrong', 1)] },
        echo('second', 2, { condition: '${state.count == 1}', ...add }),
        {
          foreach: '${[0, 1, 2, 3]}',
          steps: [echo('one', { i: '${item}' }, add)],
          breakWhen: '${state.count >= 4}',
          name: 'each',
        },
        {
          agent: 'way',
          routes: [
            { member: 'four', condition: '${state.count == 4}' },
            { member: 'other', default: true },
          ],
        },
        echo('end', 1),
      ],
      { each: '${length(each.output)}', wrong: '${wrong.executed}', way: '${way.output.target}' },
      {
        ...count,
        agents: [
          { name: 'four', operation: 'code', config: { script: 'echo' }, ...add },
          { name: 'other', operation: 'code', config: { script: 'echo' } },
        ],
      },
    ),
    status: 'completed',
    output: { each: 2, wrong: false, way: 'four' },
    agents: ['first', 'second', 'one', 'one', 'four', 'end'],
    check: stateIs({ count: 5 }),
  },
];

export const OTHER_FLOWS: readonly Flow[] = [
  {
    title: 'durability none: the run starts from the beginning after a crash',
    ensemble: ensemble(
      [echo('a', 1), flaky('b', 2, { maxAttempts: 2 }), echo('c', '${b.output}')],
      { c: '${c.output}' },
      { execution: { durability: 'none' } },
    ),
    status: 'completed',
    output: { c: 2 },
    agents: ['a', 'b', 'c'],
    inProgress: 10,
  },
  {
    title: 'a single agent',
    options: {
      agents: [
        { name: 'alone', operation: 'code', config: { script: 'flaky', passesAt: 3 }, retry: { maxAttempts: 3 } },
      ],
    },
    run: (subject) => subject.executeAgent('alone', { i: 1 }),
    status: 'completed',
    output: 3,
    agents: ['alone'],
    async check(_world, { input }) {
      if (!equalJson(input, { i: 1 })) throw new Error('the input of the agent was lost');
    },
  },
];
