/** The ensembles that the processes run, and scripts that record their effects in the history. */

import { randomBytes } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const code = (agent, script = 'act', more = {}) => ({ agent, operation: 'code', config: { script }, ...more });

/**
 * Uses every kind of stored data: results, a `foreach`, a retry, a condition that reads the state, a change of the state, a
 * slow step, and an end.
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
  // One step at a time: a kill between two steps may repeat nothing.
  ensemble('line', { concurrency: 1, delay: 20 }),
  ensemble('order', { concurrency: 3, delay: 20 }),
  // The retry waits long enough for the execution to be suspended.
  ensemble('suspending', { concurrency: 3, delay: 1500 }),
  { name: 'short', flow: [code('first'), code('last')] },
  { name: 'five', flow: ['a', 'b', 'c', 'd', 'e'].map((name) => code(name, name === 'c' ? 'slow' : 'act')) },
  { name: 'poison', flow: [code('before'), code('deadly', 'deadly')] },
  { name: 'held', flow: [code('before'), code('hold', 'hold'), code('after')] },
  { name: 'blocked', flow: [code('before'), code('hold', 'block'), code('after')] },
];

/** The agents that a completed execution must have run, sorted. `even` stands for `odd`, too. */
const CHAIN = ['charge', 'count', 'even', 'last', 'pack', 'pack', 'pack', 'reserve', 'slow'];
export const AGENTS = {
  line: CHAIN,
  order: CHAIN,
  suspending: CHAIN,
  short: ['first', 'last'],
  five: ['a', 'b', 'c', 'd', 'e'],
  held: ['after', 'before', 'hold'],
  blocked: ['after', 'before', 'hold'],
};
export const COUNTED = ['line', 'order', 'suspending'];
export const INPUT = { items: [1, 2, 3] };

/**
 * @param record - writes the begin and the effect of a script to the history
 * @param hit - called at the points inside scripts
 */
export function createScripts(record, hit = () => {}) {
  const begin = ({ execution: { id, attempt }, idempotencyKey: key }) => {
    record('begin', { id, key, attempt });
    hit('script:begin');
  };
  /** The output identifies the effect, so that a stored result can be matched with its effect. */
  const effect = ({ execution: { id, attempt }, idempotencyKey: key }) => {
    const nonce = randomBytes(6).toString('hex');
    record('effect', { id, key, attempt, nonce });
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
    /** Blocks the event loop for a while, in the first process that runs it. */
    block: (context) => {
      begin(context);
      const { blockMs, flag } = context.input;
      const end = isFirst(flag) ? performance.now() + blockMs : 0;
      while (performance.now() < end);
      return effect(context);
    },
  };
}

/** @param flag - a file that the first caller creates */
function isFirst(flag) {
  try {
    closeSync(openSync(flag, 'wx'));
    return true;
  } catch {
    return false;
  }
}

/** Ends this process as a kill from outside does; no code runs after it. */
export function dieNow() {
  process.kill(process.pid, 'SIGKILL');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}
