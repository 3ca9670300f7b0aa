/** Every form of the flow as an ensemble that completes, with its output: for outages of the storage during a run. */

import { code, echo, ensemble, flaky } from '../../src/conformance/engine-suite/steps.ts';
import type { Rig } from './rig.ts';

export interface FlowForm {
  readonly name: string;
  readonly ensembles: readonly object[];
  readonly output: unknown;
  /** Called after the execution was accepted; its calls of the storage never fail. */
  accepted?(rig: Rig, id: string): unknown;
}

const add = { setState: { count: '${state.count + 1}' } };
const count = { state: { initial: { count: 0 } } };
const child = (name: string, flow: readonly object[], outputs: object = {}): object => ({ name, flow, outputs });
const pause = (agent: string, ms: number) => code(agent, 'slow', { input: { i: agent, ms } });

const form = (name: string, definition: object, output: unknown, ...others: readonly object[]): FlowForm => ({
  name,
  ensembles: [definition, ...others],
  output,
});

const small = child('small', [echo('x', 'X'), echo('y', 'Y')], { y: '${y.output}' });

export const FLOW_FORMS: readonly FlowForm[] = [
  form('steps in a row', ensemble([echo('a', 1), pause('b', 50), echo('c', 3)], { c: '${c.output}' }), { c: 3 }),
  form(
    'durability none',
    ensemble([echo('a', 1), echo('b', 2)], { b: '${b.output}' }, { execution: { durability: 'none' } }),
    {
      b: 2,
    },
  ),
  form(
    'retries',
    ensemble([flaky('a', 3, { maxAttempts: 3, backoff: 'fixed', delay: 2000 }), echo('b', 1)], { a: '${a.output}' }),
    { a: 3 },
  ),
  form(
    'state, read by outputs',
    ensemble([echo('a', 1, add), echo('b', 2, add), echo('c', 3)], { n: '${state.count}' }, count),
    { n: 2 },
  ),
  form(
    'state, read by conditions and inputs',
    ensemble(
      [
        echo('a', 1, add),
        { if: '${state.count > 0}', then: [echo('b', '${state.count}', add)] },
        { switch: '${state.count}', cases: { 2: [echo('c', 'two', add)] } },
        { while: '${state.count < 4}', maxIterations: 5, steps: [echo('d', '${state.count}', add)] },
      ],
      { n: '${state.count}', b: '${b.output}', c: '${c.output}' },
      count,
    ),
    { n: 4, b: 1, c: 'two' },
  ),
  form(
    'several items at once',
    ensemble(
      [
        {
          foreach: [0, 1, 2, 3],
          concurrency: 2,
          steps: [echo('a', { i: '${item}' }), echo('b', { i: '${item}' })],
        },
        echo('z', 9),
      ],
      { z: '${z.output}' },
    ),
    { z: 9 },
  ),
  form(
    'branches',
    ensemble(
      [
        {
          parallel: [
            { try: [echo('a', 1), pause('b', 40)], finally: [echo('e', 5)] },
            { if: true, then: [pause('c', 20), echo('d', 4)] },
          ],
        },
        echo('z', '${d.output}'),
      ],
      { z: '${z.output}' },
    ),
    { z: 4 },
  ),
  form(
    'a race',
    ensemble([{ parallel: [pause('a', 10), pause('b', 5000)], waitFor: 'first' }, echo('z', 1)], {
      z: '${z.output}',
    }),
    { z: 1 },
  ),
  form(
    'try, catch and finally',
    ensemble(
      [
        {
          try: [echo('a', 1), code('b', 'boom', { retry: { maxAttempts: 1 } })],
          catch: [echo('c', 3)],
          finally: [echo('d', 4)],
        },
      ],
      { c: '${c.output}', d: '${d.output}' },
    ),
    { c: 3, d: 4 },
  ),
  form('a sleep', ensemble([echo('a', 1), { sleep: '20s' }, echo('b', 2)], { b: '${b.output}' }), { b: 2 }),
  {
    ...form(
      'a wait',
      ensemble([echo('a', 1), { wait: 'ok', name: 'w', timeout: '10m' }, echo('b', '${w.output}')], {
        b: '${b.output}',
      }),
      {
        b: 'yes',
      },
    ),
    accepted: ({ raw, clock }, executionId) =>
      raw.signals.put({ id: 'sig_1', executionId, name: 'ok', payload: 'yes', createdAt: clock.now() }),
  },
  form(
    'a child',
    ensemble([echo('a', 1), { ensemble: 'small', name: 's' }, echo('b', '${s.output.y}')], { b: '${b.output}' }),
    { b: 'Y' },
    small,
  ),
  form(
    'a detached child',
    ensemble([echo('a', 1), { ensemble: 'small', name: 's', detached: true }, echo('b', 2)], { b: '${b.output}' }),
    { b: 2 },
    small,
  ),
  form(
    'children of a foreach, which read the state',
    ensemble(
      [
        {
          foreach: [0, 1],
          concurrency: 2,
          steps: [{ ensemble: 'small', name: 's' }, echo('c', { i: '${item}' }, add)],
        },
      ],
      { n: '${state.count}' },
      count,
    ),
    { n: 2 },
    small,
  ),
  form(
    'a child that waits',
    ensemble([{ ensemble: 'later', name: 's' }], { y: '${s.output.y}' }),
    { y: 'Y' },
    child('later', [{ sleep: '15s' }, echo('y', 'Y')], { y: '${y.output}' }),
  ),
];
