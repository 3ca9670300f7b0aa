/** An execution that kills every process that runs it fails after a few deaths. The other executions complete. */

const OTHERS = 12;
const MAX_DEATHS = 30;
/** Only this execution can have caused three of the deaths. Before those, it runs with others, then with a quarter of them. */
const EXPECTED_DEATHS = [3, 8];

export const poison = {
  name: 'poison',
  about: 'an execution that kills its process',
  stores: ['sqlite', 'postgres'],
  async run(bed) {
    const deadly = await bed.queue('poison');
    for (let i = 0; i < OTHERS; i++) await bed.queue(i % 2 === 0 ? 'five' : 'order');
    let deaths = 0;
    for (; deaths < MAX_DEATHS; deaths++) {
      const worker = bed.startWorker({ leaseMs: 300, sweepMs: 50 });
      const ended = bed.untilEnded(20_000).then(
        () => 'all',
        () => 'late',
      );
      const first = await Promise.race([ended, worker.ended]);
      if (first === 'all') break;
      if (first === 'late') throw new Error('executions did not end, and no process died');
      bed.record('killed', { target: worker.pid });
    }
    const [min, max] = EXPECTED_DEATHS;
    if (deaths < min || deaths > max) bed.problems.push(`${deaths} processes died, not ${min} to ${max}`);
    const statusOf = ({ id }) => (id === deadly ? 'failed' : 'completed');
    const { accepted, claims } = await bed.check({ statusOf });
    return `${deaths} processes died, ${accepted} executions, ${claims} claims`;
  },
};
