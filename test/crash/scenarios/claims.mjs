/** Several processes share one store with a long queue. Each execution belongs to one process at a time. */

import { inParallel } from '../processes.mjs';

const WORKERS = 4;

export const claims = {
  name: 'claims',
  about: 'one queue, four processes',
  stores: ['postgres'],
  async run(bed, { executions }) {
    await inParallel(
      64,
      Array.from({ length: executions }, (_, i) => i + 1),
      () => bed.queue('short', {}),
    );
    const began = performance.now();
    const workers = Array.from({ length: WORKERS }, () => bed.startWorker({ concurrency: 200 }));
    await bed.untilEnded(120_000);
    const seconds = (performance.now() - began) / 1000;
    const lines = bed.tail.lines();
    const { effects, repeats, claims: claimed, refused } = await bed.check({ noRepeats: true });
    if (claimed !== executions) bed.problems.push(`${executions} executions were claimed ${claimed} times`);
    if (refused > 0) bed.problems.push(`${refused} writes were refused`);
    const shares = workers.map(({ pid }) =>
      lines.filter((line) => line.what === 'claimed' && line.pid === pid).reduce((sum, { all }) => sum + all.length, 0),
    );
    if (shares.some((share) => share === 0)) bed.problems.push(`a process claimed nothing: ${shares}`);
    const figures = `${claimed} claims (${shares.join(' + ')}), ${effects} effects, ${repeats} repeated`;
    return `${figures}, ${Math.round(executions / seconds)} executions/s including the start of the processes`;
  },
};
