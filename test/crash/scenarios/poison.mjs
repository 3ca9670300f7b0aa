/** T5: an execution that brings down whoever runs it is ended as failed after a few deaths; the others end as they should. */

const OTHERS = 12;
const MOST_LIVES = 30;
/** It is alone to blame in three of them; before, it is among others, and among a quarter of them. */
const WANTED_LIVES = [3, 8];

export const poison = {
  name: 'poison',
  about: 'T5: an execution that kills its process',
  stores: ['sqlite', 'postgres'],
  async play(stage) {
    const deadly = await stage.queue('poison');
    for (let i = 0; i < OTHERS; i++) await stage.queue(i % 2 === 0 ? 'five' : 'order');
    let lives = 0;
    for (; lives < MOST_LIVES; lives++) {
      const worker = stage.startWorker({ leaseMs: 300, sweepMs: 50 });
      const ended = stage.untilEnded(20_000).then(
        () => 'all',
        () => 'late',
      );
      const first = await Promise.race([ended, worker.ended]);
      if (first === 'all') break;
      if (first === 'late') throw new Error('executions did not end, and nothing died');
      stage.ledger('killed', { target: worker.pid });
    }
    const [least, most] = WANTED_LIVES;
    if (lives < least || lives > most) stage.problems.push(`${lives} processes died of it, not ${least} to ${most}`);
    const statusOf = ({ id }) => (id === deadly ? 'failed' : 'completed');
    const { accepted, claims } = await stage.check({ statusOf });
    return `${lives} processes died, ${accepted} executions, ${claims} claims`;
  },
};
