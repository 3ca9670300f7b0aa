/** T10: several processes on one store, and a long queue: each execution belongs to one of them at a time. */

import { inParallel } from '../processes.mjs';

const WORKERS = 4;

export const claims = {
  name: 'claims',
  about: 'T10: one queue, four processes',
  stores: ['postgres'],
  async play(stage, { executions }) {
    await inParallel(
      64,
      Array.from({ length: executions }, (_, i) => i + 1),
      () => stage.queue('short', {}),
    );
    const began = performance.now();
    const workers = Array.from({ length: WORKERS }, () => stage.startWorker({ concurrency: 200 }));
    await stage.untilEnded(120_000);
    const seconds = (performance.now() - began) / 1000;
    const lines = stage.tail.lines();
    const { effects, repeats, claims: claimed, refused } = await stage.check({ noRepeats: true });
    if (claimed !== executions) stage.problems.push(`${executions} executions were claimed ${claimed} times`);
    if (refused > 0) stage.problems.push(`${refused} writes were refused`);
    const shares = workers.map(({ pid }) =>
      lines.filter((line) => line.what === 'claimed' && line.pid === pid).reduce((sum, { all }) => sum + all.length, 0),
    );
    if (shares.some((share) => share === 0)) stage.problems.push(`a process got nothing: ${shares}`);
    const figures = `${claimed} claims (${shares.join(' + ')}), ${effects} effects, ${repeats} repeated`;
    return `${figures}, ${Math.round(executions / seconds)} executions/s with the processes' start`;
  },
};
