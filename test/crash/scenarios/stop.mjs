/** SIGTERM under load: the process claims nothing new, releases after its grace period what still runs, and others resume it at once. */

import { setTimeout as sleep } from 'node:timers/promises';

const GRACE_MS = 60;
const LOAD = 24;
/** The guarantees for released executions and for the end of the process, and a tolerance for a busy machine. */
const RESUMED_MS = 1000;
const EXIT_MS = GRACE_MS + 1000;
const TOLERANCE_MS = 1000;

export const stop = {
  name: 'stop',
  about: 'SIGTERM under load',
  stores: ['sqlite', 'postgres'],
  async run(bed, { cycles, random }) {
    const { tail, problems } = bed;
    const isAlone = bed.at.kind === 'sqlite';
    const start = async () => {
      const worker = bed.startWorker({}, { graceMs: GRACE_MS });
      await bed.untilReady(worker);
      return worker;
    };
    let workers = isAlone ? [await start()] : await Promise.all([start(), start()]);
    const waits = [];
    const exits = [];
    for (let cycle = 0; cycle < cycles && problems.length === 0; cycle++) {
      const [stopped, ...others] = workers;
      let from = tail.lines().length;
      for (let i = 0; i < LOAD; i++) await bed.queue(i % 2 === 0 ? 'five' : 'order');
      await tail.until('the process to begin a step', 5000, from, (lines) =>
        lines.find((line) => line.what === 'begin' && line.pid === stopped.pid),
      );
      await sleep(random.from(0, 20));
      from = tail.lines().length;
      stopped.child.kill('SIGTERM');
      if (cycle % 2 === 0) stopped.child.kill('SIGTERM');
      const { pid } = stopped;
      const stopping = await tail.until('the process to stop', 5000, from, (lines) =>
        lines.find((line) => line.what === 'stopping' && line.pid === pid),
      );
      const late = setTimeout(() => stopped.child.kill('SIGKILL'), 20_000);
      const { signal } = await stopped.ended;
      clearTimeout(late);
      const exitedAt = performance.now();
      if (signal) problems.push('the process did not end by itself');
      workers = [...others, await start()];
      await bed.untilEnded(30_000);
      const lines = tail.lines().slice(from);
      const closed = lines.find((line) => line.what === 'closed' && line.pid === pid);
      exits.push(closed.at - stopping.at);
      const afterStop = lines.slice(lines.indexOf(stopping));
      if (afterStop.some((line) => line.what === 'claimed' && line.pid === pid && line.askedAt > stopping.at))
        problems.push('the process claimed an execution while it stopped');
      const ready = isAlone
        ? lines.find((line) => line.what === 'registered' && line.pid === workers.at(-1).pid).at
        : 0;
      waits.push(...waitsOf(afterStop, pid, ready));
      if (performance.now() - exitedAt > 30_000) problems.push('released executions did not end in time');
    }
    const { accepted, claims } = await bed.check();
    const recovered = tail
      .lines()
      .some(({ what, all }) => what === 'claimed' && all.some(({ recoveries }) => recoveries > 0));
    if (recovered) problems.push('a released execution was counted as recovered from a dead process');
    const [slowest, longest] = [Math.max(0, ...waits), Math.max(...exits)];
    if (slowest > RESUMED_MS + TOLERANCE_MS) problems.push(`a released execution waited for ${Math.round(slowest)} ms`);
    if (longest > EXIT_MS + TOLERANCE_MS)
      problems.push(`closing took ${Math.round(longest)} ms with a grace of ${GRACE_MS}`);
    const figures = `${cycles} stops, ${accepted} executions, ${claims} claims, ${waits.length} released`;
    return `${figures}, resumed within ${Math.round(slowest)} ms, closed within ${Math.round(longest)} ms`;
  },
};

/** The time in ms that each released execution waited for its next worker, counted from `ready` at the earliest. */
function waitsOf(lines, pid, ready) {
  const releasedAt = new Map();
  const waits = [];
  for (const { what, at, pid: by, all } of lines) {
    if (what === 'wrote' && by === pid) {
      for (const { id, result, release } of all)
        if (result === 'stored' && release === 'running') releasedAt.set(id, Math.max(at, ready));
    } else if (what === 'claimed') {
      for (const { id } of all) {
        if (releasedAt.has(id)) waits.push(at - releasedAt.get(id));
        releasedAt.delete(id);
      }
    }
  }
  return waits;
}
