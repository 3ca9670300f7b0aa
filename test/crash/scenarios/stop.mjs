/** T33: SIGTERM under load: nothing new is taken, what runs is given back behind the grace, and others go on at once. */

import { setTimeout as sleep } from 'node:timers/promises';

const GRACE_MS = 60;
const LOAD = 24;
/** What is promised for what was given back, and for the end of the process, and what a busy machine may add. */
const RESUMED_MS = 1000;
const EXIT_MS = GRACE_MS + 1000;
const TOLERANCE_MS = 1000;

export const stop = {
  name: 'stop',
  about: 'T33: SIGTERM under load',
  stores: ['sqlite', 'postgres'],
  async play(stage, { cycles, random }) {
    const { tail, problems } = stage;
    const isAlone = stage.at.kind === 'sqlite';
    const start = async () => {
      const worker = stage.startWorker({}, { graceMs: GRACE_MS });
      await stage.untilReady(worker);
      return worker;
    };
    let workers = isAlone ? [await start()] : await Promise.all([start(), start()]);
    const waits = [];
    const exits = [];
    for (let cycle = 0; cycle < cycles && problems.length === 0; cycle++) {
      const [stopped, ...others] = workers;
      let from = tail.lines().length;
      for (let i = 0; i < LOAD; i++) await stage.queue(i % 2 === 0 ? 'five' : 'order');
      await tail.until('it works', 5000, from, (lines) =>
        lines.find((line) => line.what === 'begin' && line.pid === stopped.pid),
      );
      await sleep(random.from(0, 20));
      from = tail.lines().length;
      stopped.child.kill('SIGTERM');
      if (cycle % 2 === 0) stopped.child.kill('SIGTERM');
      const { pid } = stopped;
      const stopping = await tail.until('it stops', 5000, from, (lines) =>
        lines.find((line) => line.what === 'stopping' && line.pid === pid),
      );
      const late = setTimeout(() => stopped.child.kill('SIGKILL'), 20_000);
      const { signal } = await stopped.ended;
      clearTimeout(late);
      const exitedAt = performance.now();
      if (signal) problems.push('it did not end by itself');
      workers = [...others, await start()];
      await stage.untilEnded(30_000);
      const lines = tail.lines().slice(from);
      const closed = lines.find((line) => line.what === 'closed' && line.pid === pid);
      exits.push(closed.at - stopping.at);
      const behind = lines.slice(lines.indexOf(stopping));
      if (behind.some((line) => line.what === 'claimed' && line.pid === pid && line.askedAt > stopping.at))
        problems.push('it took something new while it stopped');
      const ready = isAlone ? lines.find((line) => line.what === 'joined' && line.pid === workers.at(-1).pid).at : 0;
      waits.push(...waitsOf(behind, pid, ready));
      if (performance.now() - exitedAt > 30_000) problems.push('what was given back did not end in time');
    }
    const { accepted, claims } = await stage.check();
    const recovered = tail
      .lines()
      .some(({ what, all }) => what === 'claimed' && all.some(({ recoveries }) => recoveries > 0));
    if (recovered) problems.push('what was given back was counted as a takeover from a dead process');
    const [slowest, longest] = [Math.max(0, ...waits), Math.max(...exits)];
    if (slowest > RESUMED_MS + TOLERANCE_MS) problems.push(`what was given back waited for ${Math.round(slowest)} ms`);
    if (longest > EXIT_MS + TOLERANCE_MS)
      problems.push(`closing took ${Math.round(longest)} ms with a grace of ${GRACE_MS}`);
    const figures = `${cycles} stops, ${accepted} executions, ${claims} claims, ${waits.length} given back`;
    return `${figures}, taken up within ${Math.round(slowest)} ms, closed within ${Math.round(longest)} ms`;
  },
};

/** How long what a process gave back waited for its next owner, ms; not before `ready`. */
function waitsOf(lines, pid, ready) {
  const givenAt = new Map();
  const waits = [];
  for (const { what, at, pid: by, all } of lines) {
    if (what === 'wrote' && by === pid) {
      for (const { id, result, release } of all)
        if (result === 'stored' && release === 'running') givenAt.set(id, Math.max(at, ready));
    } else if (what === 'claimed') {
      for (const { id } of all) {
        if (givenAt.has(id)) waits.push(at - givenAt.get(id));
        givenAt.delete(id);
      }
    }
  }
  return waits;
}
