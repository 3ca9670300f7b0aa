/**
 * A process hangs while it reclaims the executions of a dead process, with its transaction open. Other processes resume those
 * executions within the time that is guaranteed for hung processes. New executions run meanwhile.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

const HUNG_MS = 35_000;
const NEW_MS = 3000;
const PAUSE_MS = 500;

export const hung = {
  name: 'hung',
  about: 'a process that hangs while it reclaims executions',
  stores: ['postgres'],
  async run(bed) {
    const { tail, problems } = bed;
    const dead = bed.startWorker();
    await bed.untilReady(dead);
    const id = await bed.queue('held');
    const hasBegun = (lines) => lines.find((line) => line.what === 'begin' && line.id === id);
    await tail.until('the execution to begin', 10_000, 0, hasBegun);
    await bed.kill(dead);
    const hanging = new pg.Client({ connectionString: bed.at.server.url });
    // The server may end the connection that hangs.
    hanging.on('error', () => {});
    await hanging.connect();
    await hanging.query('BEGIN');
    // Every reclaim begins with these statements.
    await hanging.query(`SELECT set_config('idle_in_transaction_session_timeout', '5s', true)`);
    await hanging.query(`DELETE FROM ${bed.store.schema}.owners`);
    await bed.untilReady(bed.startWorker());
    const began = performance.now();
    let slowest = 0;
    const ended = bed.untilEnded(HUNG_MS, [id]).then(
      () => `resumed after ${Math.round(performance.now() - began)} ms`,
      (error) => {
        problems.push(`the execution of the dead process: ${error.message}`);
        return 'not resumed';
      },
    );
    let isOver = false;
    const outcome = ended.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      const queuedAt = performance.now();
      const next = await bed.queue('short', {});
      await bed.untilEnded(HUNG_MS, [next]);
      slowest = Math.max(slowest, performance.now() - queuedAt);
      await sleep(PAUSE_MS);
    }
    await hanging.end();
    if (slowest > NEW_MS) problems.push(`a new execution took ${Math.round(slowest)} ms`);
    const figures = `${await outcome}, new executions ended within ${Math.round(slowest)} ms`;
    await bed.untilEnded(20_000);
    await bed.check();
    return figures;
  },
};
