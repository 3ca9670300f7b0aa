/**
 * T12: a synchronous loop that lasts longer than the lease: others go on, what comes late is refused, nothing is begun late, and
 * the log tells it.
 */

import { setTimeout as sleep } from 'node:timers/promises';

const ENGINE = { leaseMs: 300, sweepMs: 50 };
const BLOCK_MS = 1200;
const TOLD = /the lease was not renewed/;

export const blocked = {
  name: 'blocked',
  about: 'T12: a loop that lets nothing else run',
  stores: ['sqlite', 'postgres'],
  async play(stage, { cycles }) {
    const isAlone = stage.at.kind === 'sqlite';
    const workers = Array.from({ length: isAlone ? 1 : 2 }, () => stage.startWorker(ENGINE));
    for (const worker of workers) await stage.untilReady(worker);
    for (let cycle = 0; cycle < cycles; cycle++) {
      const input = { blockMs: BLOCK_MS, flag: `${stage.ledgerPath}.${cycle}` };
      await stage.queue('blocked', input);
      for (const name of ['five', 'order']) await stage.queue(name);
      await stage.untilEnded(20_000);
      await sleep(BLOCK_MS / 4);
    }
    // Who is blocked at the end is to tell it before it is stopped.
    await sleep(BLOCK_MS);
    const { accepted, refused, repeats, late } = await stage.check({ noRepeats: isAlone });
    const told = stage.tail.lines().filter(({ what, message }) => what === 'log' && TOLD.test(message)).length;
    if (told < cycles) stage.problems.push(`the log told ${told} times of ${cycles} loops`);
    if (late > 0) stage.problems.push(`${late} steps were begun of executions that another process had`);
    if (!isAlone && refused === 0) stage.problems.push('no late write was refused');
    return `${cycles} loops of ${BLOCK_MS} ms, ${accepted} executions, ${refused} late writes refused, ${repeats} effects repeated, told ${told} times`;
  },
};
