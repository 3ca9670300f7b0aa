/** A database server that is stopped and started every few seconds under load: at most it delays what was accepted. */

import { setTimeout as sleep } from 'node:timers/promises';

const WORKERS = 3;
const OUTSTANDING = 40;
/** SIGINT breaks every connection off; SIGQUIT is a crash, behind which the server recovers from its log. */
const SIGNALS = ['SIGINT', 'SIGQUIT'];

export const restartPostgres = {
  name: 'restart-postgres',
  about: 'the server stops and starts',
  stores: ['postgres'],
  async play(stage, { seconds, random }) {
    const { server } = stage.at;
    const until = performance.now() + seconds * 1000;
    for (let i = 0; i < WORKERS; i++) await stage.untilReady(stage.startWorker());
    const produced = produce(stage, until, random);
    let restarts = 0;
    while (performance.now() < until) {
      await sleep(random.from(1500, 4000));
      await server.stop(random.one(SIGNALS));
      stage.ledger('server', { is: 'down' });
      await sleep(random.from(0, 2000));
      await server.start();
      stage.ledger('server', { is: 'up' });
      restarts += 1;
    }
    const refused = await produced;
    await stage.untilEnded(90_000);
    // A start that was refused may have been stored all the same: it is cancelled then.
    const accepted = new Set(
      stage.tail
        .lines()
        .filter(({ what }) => what === 'accepted')
        .map(({ id }) => id),
    );
    const statusOf = ({ id, status }) => (!accepted.has(id) && status === 'cancelled' ? 'cancelled' : 'completed');
    const figures = await stage.check({ statusOf });
    return `${restarts} restarts, ${figures.accepted} executions (${refused} starts refused), ${figures.effects} effects, ${figures.repeats} repeated`;
  },
};

/** @returns how many starts were refused */
async function produce(stage, until, random) {
  let refused = 0;
  while (performance.now() < until) {
    try {
      if ((await stage.countUnended()) < OUTSTANDING) await stage.queue(random.one(['five', 'order', 'patient']));
      else await sleep(20);
    } catch (error) {
      if (error.code !== 'OVERLOADED') throw error;
      refused += 1;
      await sleep(50);
    }
  }
  return refused;
}
