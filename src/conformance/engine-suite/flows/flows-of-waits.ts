/** Flows that the engine suite runs with a crash at every commit: waits for signals that come early, late, twice, or never. */

import type { Flow } from '../flow.ts';
import { echo, ensemble, flaky } from '../steps.ts';

/** At this time, in ms, the flow waits, even after a crash. */
const LATER = 8000;

/** Waits for a signal that never comes. */
const ASKS = { name: 'asks', flow: [{ wait: 'answer', timeout: '45s', onTimeout: 'continue' }] };

const OTHERS = ['flow[1].parallel[1].then[0] sleep', 'flow[1].parallel[2] retry f', 'flow[1].parallel[3] child asks'];
const ITEMS = [0, 1].map((item) => `flow[1].parallel[4].foreach[${item}].steps[0] signal item`);

export const WAIT_FLOWS: readonly Flow[] = [
  {
    title: 'waitingFor: a signal, a sleep, a retry and a child, in branches and items',
    ensemble: ensemble([
      echo('a', 1),
      {
        parallel: [
          { wait: 'go' },
          { if: true, then: [{ sleep: '45s' }] },
          flaky('f', 2, { maxAttempts: 2, backoff: 'fixed', delay: 45_000 }),
          { ensemble: 'asks' },
          { foreach: '${[1, 2]}', concurrency: 2, steps: [{ wait: 'item' }] },
        ],
      },
      { wait: 'last' },
    ]),
    options: { ensembles: [ASKS] },
    signals: [
      { ms: LATER, id: '1', name: 'go', waitingFor: ['flow[1].parallel[0] signal go', ...OTHERS, ...ITEMS] },
      { ms: 2 * LATER, id: '2', name: 'item', waitingFor: [...OTHERS, ...ITEMS] },
      { ms: 3 * LATER, id: '3', name: 'item', waitingFor: [...OTHERS, ITEMS[1] as string] },
      { ms: 4 * LATER, id: '4', name: 'unused', waitingFor: OTHERS },
      { ms: 80_000, id: '5', name: 'last', waitingFor: ['flow[2] signal last'] },
    ],
    status: 'completed',
    output: {},
    agents: ['a', 'f'],
    inProgress: 2,
  },
  {
    title: 'wait: signals before and after the wait begins, each taken once, in the order in which they came',
    ensemble: ensemble(
      [
        { sleep: '2s' },
        { wait: 'go', name: 'first' },
        echo('a', '${first.output}'),
        { wait: 'go', name: 'second' },
        { wait: 'other', timeout: '1h', name: 'third' },
        { wait: 'go', condition: false, name: 'never' },
        echo('b', { first: '${a.output}', second: '${second.output.n}', third: '${third.output}', at: '${now() > 0}' }),
      ],
      { b: '${b.output}', never: '${never.executed}' },
    ),
    signals: [
      { ms: 100, id: '1', name: 'go', payload: { n: 1 } },
      { ms: LATER, id: '1', name: 'go', payload: 'another one' },
      { ms: LATER, id: '2', name: 'unused' },
      { ms: LATER, id: '3', name: 'go', payload: { n: 3 } },
      { ms: LATER, id: '4', name: 'go', payload: { n: 4 } },
      { ms: 2 * LATER, id: '5', name: 'other', payload: ['x'] },
    ],
    status: 'completed',
    output: { b: { first: { n: 1 }, second: 3, third: ['x'], at: true }, never: false },
    agents: ['a', 'b'],
  },
  {
    title: 'wait: in branches and items, each of which takes its own signal',
    ensemble: ensemble(
      [
        {
          parallel: [
            { wait: 'go', name: 'x' },
            { if: true, then: [{ wait: 'go', name: 'y' }, echo('a', '${y.output}')] },
            { wait: 'go', timeout: '2s', onTimeout: 'continue', name: 'z' },
            { if: true, then: [{ sleep: '3s' }, echo('b', 1)] },
          ],
        },
        { foreach: '${[1, 2, 3]}', concurrency: 2, steps: [{ wait: 'item' }], name: 'each' },
        echo('end', { pair: '${x.output + a.output}', z: '${z.output}', each: '${sum(each.output)}' }),
      ],
      { end: '${end.output}' },
    ),
    signals: [
      { ms: LATER, id: '1', name: 'go', payload: 1 },
      { ms: LATER, id: '2', name: 'go', payload: 10 },
      { ms: LATER, id: '3', name: 'item', payload: 100 },
      { ms: 2 * LATER, id: '4', name: 'item', payload: 200 },
      { ms: 2 * LATER, id: '5', name: 'item', payload: 300 },
    ],
    status: 'completed',
    output: { end: { pair: 11, z: null, each: 600 } },
    agents: ['a', 'b', 'end'],
    inProgress: 2,
  },
  {
    title: 'wait: a signal that comes too late, or for a branch that was stopped, is left to the next wait',
    ensemble: ensemble(
      [
        {
          try: [{ wait: 'approved', timeout: '${2 * 1000}', name: 'approval' }],
          catch: [echo('late', { code: '${error.code}', agent: '${error.agent}', failed: '${approval.failed}' })],
        },
        { parallel: [{ wait: 'approved', name: 'lost' }, { sleep: '1.5s' }], waitFor: 'first', name: 'race' },
        { wait: 'approved', name: 'taken' },
        echo('end', { taken: '${taken.output}', winner: '${race.output.winner}', lost: '${lost.executed}' }),
      ],
      { late: '${late.output}', end: '${end.output}' },
    ),
    signals: [{ ms: LATER, id: '1', name: 'approved', payload: 'at last' }],
    status: 'completed',
    output: {
      late: { code: 'TIMEOUT', agent: 'approval', failed: true },
      end: { taken: 'at last', winner: '1', lost: false },
    },
    agents: ['late', 'end'],
  },
  {
    title: 'wait: no signal comes before the deadline',
    ensemble: ensemble(
      [{ try: [echo('a', 1), { wait: 'go' }, echo('never', 1)], finally: [echo('b', '${a.output}')] }],
      { b: '${b.output}' },
      { timeout: 7000 },
    ),
    signals: [{ ms: 3000, id: '1', name: 'stop' }],
    status: 'timed_out',
    output: { b: 1 },
    error: { code: 'TIMEOUT' },
    agents: ['a', 'b'],
  },
  {
    title: 'wait: in a run that does not store its steps (durability none)',
    ensemble: ensemble(
      [echo('a', 1), { wait: 'go', name: 'first' }, echo('b', '${first.output}'), { wait: 'go', name: 'second' }],
      { all: ['${b.output}', '${second.output}'] },
      { execution: { durability: 'none' } },
    ),
    signals: [
      { ms: 3000, id: '1', name: 'go', payload: 1 },
      { ms: LATER, id: '2', name: 'go', payload: 2 },
    ],
    status: 'completed',
    output: { all: [1, 2] },
    agents: ['a', 'b'],
    inProgress: 2,
  },
];
