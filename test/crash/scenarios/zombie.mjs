/** A process is paused beyond its lease, and resumes after others have continued its executions. Its late writes are refused, and it keeps working. */

import { setTimeout as sleep } from 'node:timers/promises';

const ENGINE = { leaseMs: 300, sweepMs: 50 };
const TIMEOUT_MS = 15_000;

export const zombie = {
  name: 'zombie',
  about: 'processes that are paused beyond their lease',
  stores: ['postgres'],
  async run(bed, { cycles, random }) {
    const { tail, record, problems } = bed;
    const workers = [bed.startWorker(ENGINE), bed.startWorker(ENGINE)];
    for (const worker of workers) await bed.untilReady(worker);
    for (let cycle = 0; cycle < cycles && problems.length === 0; cycle++) {
      const from = tail.lines().length;
      const held = await bed.queue('held');
      // Half of the pauses happen during a step, the others at any moment and with more executions running.
      const inStep = cycle % 2 === 0;
      const others = inStep ? [] : await Promise.all(['five', 'order', 'five'].map((name) => bed.queue(name)));
      const pid = await tail.until('a process to begin it', TIMEOUT_MS, from, (lines) => holder(lines, held, inStep));
      if (!inStep) await sleep(random.from(0, 150));
      const worker = workers.find((one) => one.pid === pid);
      worker.child.kill('SIGSTOP');
      const stopped = tail.lines().length;
      record('stopped', { target: pid });
      const claimedByAnother = () =>
        tail.until('another process to claim it', TIMEOUT_MS, stopped, (lines) =>
          lines.find(({ what, all }) => what === 'claimed' && all.some(({ id }) => id === held)),
        );
      try {
        // The process resumes while another process runs the same step, or after the end.
        if (inStep) await claimedByAnother();
        else await sleep(ENGINE.leaseMs * 2);
        if (!inStep || cycle % 4 === 0) await bed.untilEnded(TIMEOUT_MS, [held, ...others]);
      } finally {
        record('continued', { target: pid });
        worker.child.kill('SIGCONT');
      }
      // The process learns that it was removed, and registers again.
      await tail.until('it to register again', TIMEOUT_MS, stopped, (lines) =>
        lines.find(({ what, pid: by }) => what === 'registered' && by === pid),
      );
    }
    await bed.untilEnded(TIMEOUT_MS);
    const { accepted, refused, late, claims } = await bed.check();
    if (problems.length === 0 && refused === 0) problems.push('no late write happened, so none was refused');
    return `${cycles} times, ${accepted} executions, ${claims} claims; ${refused} late writes refused, ${late} steps began late`;
  },
};

/** The process that begins an execution's first agent or, with `inStep`, its second agent, which takes time. */
function holder(lines, id, inStep) {
  const begins = lines.filter((line) => line.what === 'begin' && line.id === id);
  return begins[inStep ? 1 : 0]?.pid;
}
