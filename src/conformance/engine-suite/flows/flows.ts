/** Flows that the engine suite runs with a crash at every commit: steps, conditions, failures, retries and deadlines. */

import type { Flow } from '../flow.ts';
import { code, echo, ensemble, flaky } from '../steps.ts';

/** The flow's own check looks at the agents. */
const ANY = undefined;

export const PLAIN_FLOWS: readonly Flow[] = [
  {
    title: 'steps in sequence, each of which reads the previous one',
    ensemble: ensemble(
      [
        echo('a', { v: '${input.n + 1}' }),
        echo('b', { v: '${a.output.v * 10}' }),
        echo('c', { v: '${b.output.v + a.output.v}' }),
        echo('d', { v: '${c.output.v + 1}' }),
      ],
      { total: '${d.output.v}', text: 'from ${a.output.v} to ${d.output.v}' },
    ),
    status: 'completed',
    output: { total: 23, text: 'from 2 to 23' },
    agents: ['a', 'b', 'c', 'd'],
  },
  {
    title: 'an ensemble without steps',
    ensemble: ensemble([], { n: '${input.n}' }),
    status: 'completed',
    output: { n: 1 },
    agents: [],
  },
  {
    title: 'expressions: random values and the time are the same after a crash',
    ensemble: ensemble(
      [
        echo('draw', { r: '${random()}', id: '${uuid()}', at: '${now()}' }),
        echo('again', { r: '${random()}', id: '${uuid()}', at: '${now()}', before: '${draw.output}' }),
        echo('text', { t: '${upper(join(["a", "b"], "-"))} ${length(draw.output.id)}' }),
      ],
      {
        text: '${text.output.t}',
        drawn: '${draw.output.r >= 0 && draw.output.r < 1}',
        kept: '${again.output.before == draw.output}',
        fresh: '${again.output.r != draw.output.r}',
      },
    ),
    status: 'completed',
    output: { text: 'A-B 36', drawn: true, kept: true, fresh: true },
    agents: ['draw', 'again', 'text'],
    isRandom: true,
  },
  {
    title: 'if, else, and conditions',
    ensemble: ensemble(
      [
        echo('a', { v: 5 }),
        { if: '${a.output.v > 3}', then: [echo('big', 1), echo('more', 2)], else: [echo('small', 3)] },
        { if: '${big.failed}', then: [echo('repair', 4)], else: [echo('fine', 5)] },
        echo('left', 6, { condition: '${small.executed}' }),
        echo('last', 7, { condition: '${more.output == 2}' }),
      ],
      { big: '${big.output}', small: '${small.executed}', left: '${left.executed}', last: '${last.output}' },
    ),
    status: 'completed',
    output: { big: 1, small: false, left: false, last: 7 },
    agents: ['a', 'big', 'more', 'fine', 'last'],
  },
  {
    title: 'a failure that a later step handles',
    ensemble: ensemble(
      [
        code('a', 'boom'),
        echo('b', 1, { condition: '${a.success}' }),
        echo('c', { why: '${a.error.message}' }, { condition: '${a.failed}' }),
        code('d', 'boom', { continueOnError: true }),
        echo('e', 2),
      ],
      { why: '${c.output.why}', d: '${d.failed}' },
    ),
    status: 'completed',
    output: { why: 'boom in a', d: true },
    agents: ['a', 'c', 'd', 'e'],
  },
  {
    title: 'a failure that ends the run; its outputs are computed',
    ensemble: ensemble([echo('a', 1), code('b', 'boom'), echo('c', 2)], { a: '${a.output}', c: '${c.executed}' }),
    status: 'failed',
    output: { a: 1, c: false },
    error: { code: 'AGENT_FAILED', agent: 'b' },
    agents: ['a', 'b'],
  },
  {
    title: 'outputs that cannot be computed fail the run',
    ensemble: ensemble([echo('a', { v: true }), echo('b', 1)], {
      bad: '${a.output.v - b.output}',
      good: '${b.output}',
    }),
    status: 'failed',
    output: { bad: null, good: 1 },
    error: { code: 'EXPRESSION_ERROR' },
    agents: ['a', 'b'],
  },
  {
    title: 'routes that depend on random values lead to the same members after a crash',
    ensemble: ensemble(
      [
        {
          foreach: '${[0, 1, 2, 3, 4, 5]}',
          steps: [
            {
              agent: 'way',
              routes: [
                { member: 'left', condition: '${random() < 0.5}' },
                { member: 'right', default: true },
              ],
            },
          ],
          name: 'ways',
        },
      ],
      { count: '${length(ways.output)}' },
      {
        agents: ['left', 'right'].map((name) => ({
          name,
          operation: 'code',
          config: { script: 'echo' },
          input: { i: '${index}' },
        })),
      },
    ),
    status: 'completed',
    output: { count: 6 },
    agents: ANY,
    isRandom: true,
    async check({ history }, { agents }) {
      const ways = new Map(agents.map(({ key, name }) => [/foreach\[(\d+)\]/.exec(key)?.[1], name]));
      if (agents.length !== 6) throw new Error(`${agents.length} members ran for 6 items`);
      for (const { label } of history.effects) {
        const [name, i] = label.split(/[#@]/) as [string, string];
        const other = [...ways].find(([at, way]) => at === i && way !== name);
        if (other) throw new Error(`item ${i} went ${name} and ${other[1]}`);
      }
    },
  },
];

export const TIMED_FLOWS: readonly Flow[] = [
  {
    title: 'retries: waits of 1 and 2 s, short ones, and one that is exhausted',
    ensemble: ensemble(
      [
        echo('a', 1),
        flaky('b', 3, { maxAttempts: 4 }),
        flaky('c', 3, { maxAttempts: 3, backoff: 'fixed', delay: 20 }),
        flaky('d', 9, { maxAttempts: 2 }, { continueOnError: true }),
        echo('e', 2),
      ],
      { b: '${b.output}', c: '${c.output}', d: '${d.error.message}' },
    ),
    status: 'completed',
    output: { b: 3, c: 3, d: 'attempt 2 of d' },
    agents: ['a', 'b', 'c', 'd', 'e'],
  },
  {
    title: 'an attempt that takes too long is stopped and made again',
    ensemble: ensemble(
      [
        echo('a', 1),
        code('b', 'never', { timeout: 400, retry: { maxAttempts: 2 }, continueOnError: true }),
        echo('c', 2),
      ],
      { b: '${b.error.code}', c: '${c.output}' },
    ),
    status: 'completed',
    output: { b: 'TIMEOUT', c: 2 },
    agents: ['a', 'b', 'c'],
  },
  {
    title: 'a deadline that passes while the run waits: the outputs contain what was stored before',
    ensemble: ensemble(
      [echo('a', 1), flaky('b', 9, { maxAttempts: 9, backoff: 'fixed', delay: 60_000 })],
      { a: '${a.output}' },
      {
        timeout: 20_000,
      },
    ),
    status: 'timed_out',
    output: { a: 1 },
    error: { code: 'TIMEOUT' },
    agents: ['a', 'b'],
  },
  {
    title: 'a deadline that passes while a step is in progress',
    ensemble: ensemble([echo('a', 1), code('b', 'never'), echo('c', 2)], { a: '${a.output}' }, { timeout: 20_000 }),
    status: 'timed_out',
    output: { a: 1 },
    error: { code: 'TIMEOUT' },
    agents: ['a'],
  },
];
