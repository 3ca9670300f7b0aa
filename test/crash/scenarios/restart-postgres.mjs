/** The database server stops and starts every few seconds under load. That may delay accepted executions, but loses none. */

import { setTimeout as sleep } from 'node:timers/promises';

const WORKERS = 3;
const OUTSTANDING = 40;
/** SIGINT breaks every connection. SIGQUIT is a crash, after which the server recovers from its log. */
const SIGNALS = ['SIGINT', 'SIGQUIT'];

export const restartPostgres = {
  name: 'restart-postgres',
  about: 'the server stops and starts',
  stores: ['postgres'],
  async run(bed, { seconds, random }) {
    const { server } = bed.at;
    const until = performance.now() + seconds * 1000;
    for (let i = 0; i < WORKERS; i++) await bed.untilReady(bed.startWorker());
    const produced = produce(bed, until, random);
    let restarts = 0;
    while (performance.now() < until) {
      await sleep(random.from(1500, 4000));
      await server.stop(random.one(SIGNALS));
      bed.record('server', { is: 'down' });
      await sleep(random.from(0, 2000));
      await server.start();
      bed.record('server', { is: 'up' });
      restarts += 1;
    }
    const refused = await produced;
    await bed.untilEnded(90_000);
    // A refused start may still have been stored. Then it is cancelled.
    const accepted = new Set(
      bed.tail
        .lines()
        .filter(({ what }) => what === 'accepted')
        .map(({ id }) => id),
    );
    const statusOf = ({ id, status }) => (!accepted.has(id) && status === 'cancelled' ? 'cancelled' : 'completed');
    const figures = await bed.check({ statusOf });
    return `${restarts} restarts, ${figures.accepted} executions (${refused} starts refused), ${figures.effects} effects, ${figures.repeats} repeated`;
  },
};

/** @returns the number of refused starts */
async function produce(bed, until, random) {
  let refused = 0;
  while (performance.now() < until) {
    try {
      if ((await bed.countUnended()) < OUTSTANDING) await bed.queue(random.one(['five', 'order', 'suspending']));
      else await sleep(20);
    } catch (error) {
      if (error.code !== 'OVERLOADED') throw error;
      refused += 1;
      await sleep(50);
    }
  }
  return refused;
}
