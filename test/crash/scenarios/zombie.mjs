/** T11: a process that stood still beyond its lease wakes up when others have gone on: what it stores is refused, and it works on. */

import { setTimeout as sleep } from 'node:timers/promises';

const ENGINE = { leaseMs: 300, sweepMs: 50 };
const PATIENCE_MS = 15_000;

export const zombie = {
  name: 'zombie',
  about: 'T11: processes that stand still beyond their lease',
  stores: ['postgres'],
  async play(stage, { cycles, random }) {
    const { tail, ledger, problems } = stage;
    const workers = [stage.startWorker(ENGINE), stage.startWorker(ENGINE)];
    for (const worker of workers) await stage.untilReady(worker);
    for (let cycle = 0; cycle < cycles && problems.length === 0; cycle++) {
      const from = tail.lines().length;
      const held = await stage.queue('held');
      // Half of them stand still in the midst of a step, the others at any moment, with more at work.
      const inStep = cycle % 2 === 0;
      const others = inStep ? [] : await Promise.all(['five', 'order', 'five'].map((name) => stage.queue(name)));
      const pid = await tail.until('somebody begins it', PATIENCE_MS, from, (lines) => holder(lines, held, inStep));
      if (!inStep) await sleep(random.from(0, 150));
      const worker = workers.find((one) => one.pid === pid);
      worker.child.kill('SIGSTOP');
      const stopped = tail.lines().length;
      ledger('stopped', { target: pid });
      const takenOver = () =>
        tail.until('another takes it over', PATIENCE_MS, stopped, (lines) =>
          lines.find(({ what, all }) => what === 'claimed' && all.some(({ id }) => id === held)),
        );
      try {
        // It wakes up while another is at the same step, or behind the end.
        if (inStep) await takenOver();
        else await sleep(ENGINE.leaseMs * 2);
        if (!inStep || cycle % 4 === 0) await stage.untilEnded(PATIENCE_MS, [held, ...others]);
      } finally {
        ledger('continued', { target: pid });
        worker.child.kill('SIGCONT');
      }
      // It finds out that it was forgotten, and joins anew.
      await tail.until('it joins again', PATIENCE_MS, stopped, (lines) =>
        lines.find(({ what, pid: by }) => what === 'joined' && by === pid),
      );
    }
    await stage.untilEnded(PATIENCE_MS);
    const { accepted, refused, late, claims } = await stage.check();
    if (problems.length === 0 && refused === 0) problems.push('no late write was ever made, so none was refused');
    return `${cycles} times, ${accepted} executions, ${claims} claims; ${refused} late writes refused, ${late} steps begun late`;
  },
};

/** Who begins an execution, as far as it has come: its second agent is the one that takes time. */
function holder(lines, id, inStep) {
  const begins = lines.filter((line) => line.what === 'begin' && line.id === id);
  return begins[inStep ? 1 : 0]?.pid;
}
