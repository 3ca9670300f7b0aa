/** Flows that the engine suite runs with a crash at every commit: parallel, while, switch, try, deadlines and sleep. */

import { same } from '../../storage-suite/context.ts';
import type { Flow } from '../flow.ts';
import { code, echo, ensemble, flaky } from '../steps.ts';
import type { World } from '../world/world.ts';

type Fields = Readonly<Record<string, unknown>>;

const slow = (agent: string, ms: number, fields: Fields = {}) => code(agent, 'slow', { input: { ms }, ...fields });
const fails = (agent: string, ms: number) => code(agent, 'slow', { input: { ms, fails: true } });
/** Receives the instant of the last commit, and returns 1. */
const reads = (agent: string) => flaky(agent, 1, { maxAttempts: 1 }, { input: { at: '${now()}' } });
/** Never ends, and ignores its abort signal. */
const UNRESPONSIVE = { unresponsive: () => new Promise(() => {}) };

/** In no process does a step of `inside` begin after the first step of `cleanup` has begun, and every step of `cleanup` runs. */
const cleanedUp =
  (inside: readonly string[], cleanup: readonly string[]) =>
  async ({ history }: World): Promise<void> => {
    const names = history.effects.map(({ label }) => label.replace(/[#@].*/, ''));
    const began = names.findIndex((name) => cleanup.includes(name));
    const late = names.slice(began).filter((name) => inside.includes(name));
    same(began < 0 ? ['no cleanup'] : late, [], 'steps that began after the cleanup');
    for (const name of cleanup) if (!names.includes(name)) throw new Error(`${name} did not clean up`);
  };

export const PARALLEL_FLOWS: readonly Flow[] = [
  {
    title: 'parallel: all branches, with retries, state, if and foreach inside',
    ensemble: ensemble(
      [
        {
          parallel: [
            slow('a', 30, { setState: { count: '${state.count + 1}' } }),
            flaky('b', 3, { maxAttempts: 3, backoff: 'fixed', delay: 20 }),
            { if: '${input.n == 1}', then: [echo('c', 1), echo('d', '${c.output + 1}')] },
            { foreach: '${[1]}', steps: [echo('e', { i: '${item}' })], name: 'each' },
          ],
          concurrency: 3,
          name: 'all',
        },
        echo('end', { all: '${all.output}', b: '${b.output}', d: '${d.output}', count: '${state.count}' }),
      ],
      { end: '${end.output}' },
      { state: { initial: { count: 0 } } },
    ),
    status: 'completed',
    output: { end: { all: { a: { ms: 30 }, b: 3, 2: 2, each: [{ i: 1 }] }, b: 3, d: 2, count: 1 } },
    agents: ['a', 'b', 'c', 'd', 'e', 'end'],
    inProgress: 4,
  },
  {
    title:
      'parallel: when a branch fails, the others clean up and stop, and a condition after the block handles the failure',
    ensemble: ensemble(
      [
        code('before', 'boom'),
        {
          parallel: [
            fails('a', 50),
            { try: [echo('b', 1), slow('c', 60_000)], finally: [slow('d', 40), reads('e'), echo('f', 1)] },
            echo('mends', 1, { condition: '${before.failed}' }),
          ],
          name: 'all',
        },
        echo('repair', { why: '${all.error.message}' }, { condition: '${all.failed}' }),
        echo('end', { c: '${c.executed}', f: '${f.output}' }),
      ],
      { why: '${repair.output.why}', end: '${end.output}' },
    ),
    status: 'completed',
    output: { why: 'failed after 50 ms', end: { c: false, f: 1 } },
    agents: ['a', 'b', 'before', 'd', 'e', 'end', 'f', 'mends', 'repair'],
    inProgress: 3,
    check: cleanedUp(['b', 'c'], ['d', 'e', 'f']),
  },
  {
    title: 'parallel: the first branch that succeeds wins; the others are stopped and count as not executed',
    ensemble: ensemble(
      [
        {
          parallel: [
            fails('a', 10),
            slow('b', 40),
            { try: [slow('c', 60_000)], finally: [slow('d', 30), reads('e')] },
            code('f', 'unresponsive'),
          ],
          waitFor: 'any',
          name: 'race',
        },
        echo('seen', { race: '${race.output}', a: '${a.failed}', e: '${e.executed}', at: '${now() > 0}' }),
        echo('end', 1),
      ],
      { seen: '${seen.output}' },
    ),
    options: { scripts: UNRESPONSIVE },
    status: 'completed',
    output: { seen: { race: { winner: 'b', output: { ms: 40 } }, a: false, e: false, at: true } },
    agents: ['a', 'b', 'd', 'e', 'end', 'seen'],
    inProgress: 4,
    check: cleanedUp(['c'], ['d', 'e']),
  },
  {
    title: 'parallel: the first branch that ends fails the block, and catch receives the error',
    ensemble: ensemble(
      [
        {
          try: [{ parallel: [slow('a', 60_000), fails('b', 20), { sleep: '60s' }], waitFor: 'first', name: 'race' }],
          catch: [echo('caught', { agent: '${error.agent}', winner: '${race.output.winner}' })],
        },
        echo('end', '${caught.output}'),
      ],
      { end: '${end.output}' },
    ),
    status: 'completed',
    output: { end: { agent: 'b', winner: 'b' } },
    agents: ['b', 'caught', 'end'],
    inProgress: 2,
  },
];

export const FORM_FLOWS: readonly Flow[] = [
  {
    title: 'while and switch: the output of each round selects a case and ends the loop',
    ensemble: ensemble(
      [
        {
          while: '${(step.output ?? 0) < 3}',
          steps: [
            echo('step', '${(step.output ?? 0) + 1}'),
            {
              switch: '${step.output}',
              cases: {
                1: [echo('one', { i: 1 }, { setState: { count: '${state.count + 10}' } })],
                2: [flaky('two', 2, { maxAttempts: 2, backoff: 'fixed', delay: 20 }, { input: { i: 2 } })],
              },
              default: [echo('more', '${state.count}')],
            },
            { switch: '${state.count > 5 && step.output < 2}', cases: { true: [echo('many', { i: 1 })] } },
          ],
        },
        {
          try: [{ while: true, steps: [echo('ever', 1)], maxIterations: 1 }],
          catch: [echo('caught', '${error.code}')],
        },
      ],
      { more: '${more.output}', caught: '${caught.output}', one: '${one.output.i}', two: '${two.output}' },
      { state: { initial: { count: 0 } } },
    ),
    status: 'completed',
    output: { more: 10, caught: 'ITERATION_LIMIT', one: 1, two: 2 },
    agents: ['step', 'one', 'many', 'step', 'two', 'step', 'more', 'ever', 'caught'],
  },
  {
    title: 'try, catch and finally, nested, and a failure in a finally',
    ensemble: ensemble(
      [
        {
          try: [
            echo('a', 1),
            { try: [code('b', 'boom'), echo('never', 1)], finally: [echo('c', '${b.error.message}')] },
            echo('never2', 1),
          ],
          catch: [echo('d', '${error.message}'), code('e', 'boom', { continueOnError: true })],
          finally: [echo('f', '${d.output}')],
        },
        { try: [echo('g', 1)], finally: [code('h', 'boom')] },
        echo('i', '${h.error.agent}', { condition: '${h.failed}' }),
      ],
      { c: '${c.output}', f: '${f.output}', i: '${i.output}' },
    ),
    status: 'completed',
    output: { c: 'boom in b', f: 'boom in b', i: 'h' },
    agents: ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'],
  },
  {
    title: 'a deadline: the steps in progress are stopped, and every finally runs',
    ensemble: ensemble(
      [
        {
          try: [
            {
              parallel: [
                slow('a', 60_000),
                { try: [echo('b', 1), code('c', 'unresponsive')], finally: [slow('d', 50), echo('e', '${now() > 0}')] },
              ],
            },
          ],
          finally: [echo('f', { b: '${b.output}', e: '${e.output}' })],
        },
      ],
      { f: '${f.output}' },
      { timeout: 6000 },
    ),
    options: { scripts: UNRESPONSIVE },
    status: 'timed_out',
    output: { f: { b: 1, e: true } },
    error: { code: 'TIMEOUT' },
    agents: ['b', 'd', 'e', 'f'],
    inProgress: 3,
    check: cleanedUp(['a', 'b', 'c', 'd', 'e'], ['f']),
  },
  {
    title: 'sleep: short, long enough to suspend the run, in branches, and until an instant',
    ensemble: ensemble(
      [
        { sleep: 300, name: 'short' },
        echo('a', '${now() - short.output}'),
        { parallel: [{ sleep: '${2 * 1000}', name: 'x' }, { sleep: '1.2s', name: 'y' }, echo('b', 1)] },
        { until: '${x.output + 1500}', name: 'z' },
        { sleep: '1d', condition: '${a.failed}' },
        echo('d', { b: '${b.output}', z: '${z.output - x.output}' }),
      ],
      { a: '${a.output}', d: '${d.output}' },
    ),
    status: 'completed',
    output: { a: 0, d: { b: 1, z: 1500 } },
    agents: ['a', 'b', 'd'],
    inProgress: 1,
  },
];
