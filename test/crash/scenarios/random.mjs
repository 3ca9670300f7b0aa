/** Processes are killed at any moment and restarted at once. All accepted executions end, and are resumed soon. */

import { setTimeout as sleep } from 'node:timers/promises';

/** The number of unended executions: small enough for each to be resumed at once. */
const OUTSTANDING = 30;
const KINDS = ['five', 'five', 'order', 'suspending'];
/** The guarantee for a process that has died, and a tolerance for a busy machine. */
const RESUMED_MS = 2000;
const TOLERANCE_MS = 1000;

export const random = {
  name: 'random',
  about: 'kills at any moment',
  stores: ['sqlite', 'postgres'],
  async run(bed, { seconds, random: numbers }) {
    const until = performance.now() + seconds * 1000;
    const width = bed.at.kind === 'sqlite' ? 1 : 4;
    const workers = Array.from({ length: width }, () => bed.startWorker());
    const produced = produce(bed, until, numbers);
    let kills = 0;
    while (performance.now() < until) {
      await sleep(numbers.from(200, 800));
      // The first process lives longer, to measure when it resumes what the others left.
      const at = numbers.from(0, 4) === 0 ? 0 : numbers.from(Math.min(1, width - 1), width - 1);
      await bed.kill(workers[at]);
      kills += 1;
      workers[at] = bed.startWorker();
    }
    await produced;
    await bed.untilEnded(60_000);
    const { accepted, effects, repeats } = await bed.check();
    const waits = waitsAfterKills(bed.tail.lines());
    const watched = sorted(waits.filter((one) => one.watched));
    const late = watched.filter((ms) => ms > RESUMED_MS + TOLERANCE_MS);
    if (late.length > 0) bed.problems.push(`resumed later than ${RESUMED_MS} ms after a kill: ${late.map(Math.round)}`);
    const figures = `${kills} kills, ${accepted} executions, ${effects} effects, ${repeats} repeated`;
    return `${figures}; resumed ${describe(sorted(waits))}, with another live process ${describe(watched)}`;
  },
};

async function produce(bed, until, numbers) {
  while (performance.now() < until) {
    if ((await bed.countUnended()) < OUTSTANDING) await bed.queue(numbers.one(KINDS));
    else await sleep(20);
  }
}

const sorted = (waits) => waits.map(({ ms }) => ms).sort((a, b) => a - b);

function describe(all) {
  if (all.length === 0) return '-';
  return `${all.length} times, ${Math.round(all[Math.floor(all.length / 2)])} ms (at most ${Math.round(all.at(-1))})`;
}

/**
 * The time in ms that each execution of a killed process waited for its next worker. `watched`: another process ran all that
 * time, so it could detect the death.
 */
function waitsAfterKills(lines) {
  const holders = new Map();
  const leftAt = new Map();
  const registeredAt = new Map();
  const waits = [];
  for (const { what, at, pid, target, all } of lines) {
    if (what === 'registered') registeredAt.set(pid, at);
    else if (what === 'killed') {
      registeredAt.delete(target);
      for (const [id, holder] of holders) if (holder === target && !leftAt.has(id)) leftAt.set(id, at);
    } else if (what === 'claimed') {
      for (const { id } of all) {
        const since = leftAt.get(id);
        if (since !== undefined) waits.push({ ms: at - since, watched: Math.min(...registeredAt.values()) <= since });
        leftAt.delete(id);
        holders.set(id, pid);
      }
    } else if (what === 'wrote') {
      for (const { id, result, end, release } of all)
        if (result === 'stored' && (end !== undefined || release)) holders.delete(id);
    }
  }
  return waits;
}
