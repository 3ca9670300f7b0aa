/** The ensembles that the processes run, and scripts whose effects are lines of the ledger. */

import { randomBytes } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const code = (agent, script = 'act', more = {}) => ({ agent, operation: 'code', config: { script }, ...more });

/**
 * Every way of storing: results, a `foreach`, a retry, a guard that reads the state, a change of the state, a step that takes
 * its time, and an end.
 */
const flow = ({ concurrency, delay }) => [
  code('reserve'),
  { foreach: '${input.items}', concurrency, steps: [code('pack', 'act', { input: { item: '${item}' } })] },
  code('charge', 'flaky', { retry: { maxAttempts: 5, backoff: 'fixed', delay } }),
  { if: '${state.count % 2 == 0}', then: [code('even')], else: [code('odd')] },
  code('count', 'act', { setState: { count: '${state.count + 1}' } }),
  code('slow', 'slow'),
  code('last'),
];

const ensemble = (name, options) => ({ name, state: { initial: { count: 0 } }, flow: flow(options) });

export const ENSEMBLES = [
  // One thing at a time: what is killed between two things may repeat nothing.
  ensemble('line', { concurrency: 1, delay: 20 }),
  ensemble('order', { concurrency: 3, delay: 20 }),
  // It waits for so long that it is given up meanwhile.
  ensemble('patient', { concurrency: 3, delay: 1500 }),
  { name: 'short', flow: [code('first'), code('last')] },
  { name: 'five', flow: ['a', 'b', 'c', 'd', 'e'].map((name) => code(name, name === 'c' ? 'slow' : 'act')) },
  { name: 'poison', flow: [code('before'), code('deadly', 'deadly')] },
  { name: 'held', flow: [code('before'), code('hold', 'hold'), code('after')] },
  { name: 'blocked', flow: [code('before'), code('hold', 'block'), code('after')] },
];

/** The agents that a finished execution must have run, in order; `even` stands for `odd` too. */
const CHAIN = ['charge', 'count', 'even', 'last', 'pack', 'pack', 'pack', 'reserve', 'slow'];
export const AGENTS = {
  line: CHAIN,
  order: CHAIN,
  patient: CHAIN,
  short: ['first', 'last'],
  five: ['a', 'b', 'c', 'd', 'e'],
  held: ['after', 'before', 'hold'],
  blocked: ['after', 'before', 'hold'],
};
export const COUNTED = ['line', 'order', 'patient'];
export const INPUT = { items: [1, 2, 3] };

/**
 * @param ledger - where begins and effects are written
 * @param hit - told of the points inside scripts
 */
export function createScripts(ledger, hit = () => {}) {
  const begin = ({ execution: { id, attempt }, idempotencyKey: key }) => {
    ledger('begin', { id, key, attempt });
    hit('script:begin');
  };
  /** The output tells which of several effects is the stored one. */
  const effect = ({ execution: { id, attempt }, idempotencyKey: key }) => {
    const nonce = randomBytes(6).toString('hex');
    ledger('effect', { id, key, attempt, nonce });
    hit('script:effect');
    return { nonce };
  };
  const after = (ms) => async (context) => {
    begin(context);
    await sleep(ms);
    return effect(context);
  };
  return {
    act: (context) => {
      begin(context);
      return effect(context);
    },
    slow: after(30),
    hold: after(250),
    flaky: (context) => {
      begin(context);
      const done = effect(context);
      if (context.execution.attempt === 1) throw new Error('busy');
      return done;
    },
    deadly: (context) => {
      begin(context);
      dieNow();
    },
    /** Lets nothing else run for a while, in the first process that runs it. */
    block: (context) => {
      begin(context);
      const { blockMs, flag } = context.input;
      const end = isFirst(flag) ? performance.now() + blockMs : 0;
      while (performance.now() < end);
      return effect(context);
    },
  };
}

/** @param flag - a file that is made by whoever comes first */
function isFirst(flag) {
  try {
    closeSync(openSync(flag, 'wx'));
    return true;
  } catch {
    return false;
  }
}

/** Ends this process as a kill from outside does; nothing runs behind it. */
export function dieNow() {
  process.kill(process.pid, 'SIGKILL');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}
