/**
 * T11: a process that hangs in the midst of a takeover, with its transaction open: what it was to take over is taken over by
 * others in the time that is promised for hung processes, and what is new goes on meanwhile.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

const HUNG_MS = 35_000;
const NEW_MS = 3000;
const PAUSE_MS = 500;

export const hung = {
  name: 'hung',
  about: 'T11: a process that hangs in a takeover',
  stores: ['postgres'],
  async play(stage) {
    const { tail, problems } = stage;
    const dead = stage.startWorker();
    await stage.untilReady(dead);
    const id = await stage.queue('held');
    const isAtWork = (lines) => lines.find((line) => line.what === 'begin' && line.id === id);
    await tail.until('it is at work', 10_000, 0, isAtWork);
    await stage.kill(dead);
    const hanging = new pg.Client({ connectionString: stage.at.server.url });
    // The server may end what hangs.
    hanging.on('error', () => {});
    await hanging.connect();
    await hanging.query('BEGIN');
    // What every takeover begins with.
    await hanging.query(`SELECT set_config('idle_in_transaction_session_timeout', '5s', true)`);
    await hanging.query(`DELETE FROM ${stage.store.schema}.owners`);
    await stage.untilReady(stage.startWorker());
    const began = performance.now();
    let slowest = 0;
    const ended = stage.untilEnded(HUNG_MS, [id]).then(
      () => `taken over behind ${Math.round(performance.now() - began)} ms`,
      (error) => {
        problems.push(`what the dead process held: ${error.message}`);
        return 'not taken over';
      },
    );
    let isOver = false;
    const said = ended.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      const queuedAt = performance.now();
      const next = await stage.queue('short', {});
      await stage.untilEnded(HUNG_MS, [next]);
      slowest = Math.max(slowest, performance.now() - queuedAt);
      await sleep(PAUSE_MS);
    }
    await hanging.end();
    if (slowest > NEW_MS) problems.push(`what was new waited for ${Math.round(slowest)} ms`);
    const figures = `${await said}, what was new ended within ${Math.round(slowest)} ms`;
    await stage.untilEnded(20_000);
    await stage.check();
    return figures;
  },
};
