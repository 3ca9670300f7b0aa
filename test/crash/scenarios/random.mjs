/** T3: processes killed at any moment, and started again at once; all that was accepted ends, and is taken up soon. */

import { setTimeout as sleep } from 'node:timers/promises';

/** Executions that are queued or at work at a time: few enough for each to be taken up at once. */
const OUTSTANDING = 30;
const KINDS = ['five', 'five', 'order', 'patient'];
/** What is promised for a process that has died, and what a busy machine may add. */
const RESUMED_MS = 2000;
const TOLERANCE_MS = 1000;

export const random = {
  name: 'random',
  about: 'T3: kills at any moment',
  stores: ['sqlite', 'postgres'],
  async play(stage, { seconds, random: numbers }) {
    const until = performance.now() + seconds * 1000;
    const width = stage.at.kind === 'sqlite' ? 1 : 4;
    const workers = Array.from({ length: width }, () => stage.startWorker());
    const produced = produce(stage, until, numbers);
    let kills = 0;
    while (performance.now() < until) {
      await sleep(numbers.from(200, 800));
      // The first one is let live for longer, to see when it goes on with what others left.
      const at = numbers.from(0, 4) === 0 ? 0 : numbers.from(Math.min(1, width - 1), width - 1);
      await stage.kill(workers[at]);
      kills += 1;
      workers[at] = stage.startWorker();
    }
    await produced;
    await stage.untilEnded(60_000);
    const { accepted, effects, repeats } = await stage.check();
    const waits = waitsBehindKills(stage.tail.lines());
    const watched = sorted(waits.filter((one) => one.watched));
    const late = watched.filter((ms) => ms > RESUMED_MS + TOLERANCE_MS);
    if (late.length > 0)
      stage.problems.push(`taken up later than ${RESUMED_MS} ms behind a kill: ${late.map(Math.round)}`);
    const figures = `${kills} kills, ${accepted} executions, ${effects} effects, ${repeats} repeated`;
    return `${figures}; taken up again ${describe(sorted(waits))}, where another process stayed ${describe(watched)}`;
  },
};

async function produce(stage, until, numbers) {
  while (performance.now() < until) {
    if ((await stage.countUnended()) < OUTSTANDING) await stage.queue(numbers.one(KINDS));
    else await sleep(20);
  }
}

const sorted = (waits) => waits.map(({ ms }) => ms).sort((a, b) => a - b);

function describe(all) {
  if (all.length === 0) return '-';
  return `${all.length} times, ${Math.round(all[Math.floor(all.length / 2)])} ms (at most ${Math.round(all.at(-1))})`;
}

/**
 * How long each execution that a killed process held waited for its next owner, ms; `watched`: another process was there all
 * that time, so that it could see that the first one was gone.
 */
function waitsBehindKills(lines) {
  const holders = new Map();
  const orphaned = new Map();
  const joinedAt = new Map();
  const waits = [];
  for (const { what, at, pid, target, all } of lines) {
    if (what === 'joined') joinedAt.set(pid, at);
    else if (what === 'killed') {
      joinedAt.delete(target);
      for (const [id, holder] of holders) if (holder === target && !orphaned.has(id)) orphaned.set(id, at);
    } else if (what === 'claimed') {
      for (const { id } of all) {
        const since = orphaned.get(id);
        if (since !== undefined) waits.push({ ms: at - since, watched: Math.min(...joinedAt.values()) <= since });
        orphaned.delete(id);
        holders.set(id, pid);
      }
    } else if (what === 'wrote') {
      for (const { id, result, end, release } of all)
        if (result === 'stored' && (end !== undefined || release)) holders.delete(id);
    }
  }
  return waits;
}
