/**
 * A synchronous loop blocks a worker for longer than its lease. Other workers continue, late writes are refused, no step begins
 * late, and the worker logs a warning.
 */

import { setTimeout as sleep } from 'node:timers/promises';

const ENGINE = { leaseMs: 300, sweepMs: 50 };
const BLOCK_MS = 1200;
const WARNING = /the lease was not renewed/;

export const blocked = {
  name: 'blocked',
  about: 'a loop that blocks the event loop',
  stores: ['sqlite', 'postgres'],
  async run(bed, { cycles }) {
    const isAlone = bed.at.kind === 'sqlite';
    const workers = Array.from({ length: isAlone ? 1 : 2 }, () => bed.startWorker(ENGINE));
    for (const worker of workers) await bed.untilReady(worker);
    for (let cycle = 0; cycle < cycles; cycle++) {
      const input = { blockMs: BLOCK_MS, flag: `${bed.historyPath}.${cycle}` };
      await bed.queue('blocked', input);
      for (const name of ['five', 'order']) await bed.queue(name);
      await bed.untilEnded(20_000);
      await sleep(BLOCK_MS / 4);
    }
    // A worker that is blocked at the end must log its warning before it is stopped.
    await sleep(BLOCK_MS);
    const { accepted, refused, repeats, late } = await bed.check({ noRepeats: isAlone });
    const warnings = bed.tail.lines().filter(({ what, message }) => what === 'log' && WARNING.test(message)).length;
    if (warnings < cycles) bed.problems.push(`${warnings} warnings were logged for ${cycles} loops`);
    if (late > 0) bed.problems.push(`${late} steps of executions that another process had claimed began late`);
    if (!isAlone && refused === 0) bed.problems.push('no late write was refused');
    return `${cycles} loops of ${BLOCK_MS} ms, ${accepted} executions, ${refused} late writes refused, ${repeats} effects repeated, ${warnings} warnings`;
  },
};
