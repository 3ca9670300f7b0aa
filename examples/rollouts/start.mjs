/** Plays each rollout for 1,000 users on a manual clock, and prints the shares of the texts, rounded to tens. */
import { memoryStorage } from 'ensemble-orchestrator';
import { loadProject } from 'ensemble-orchestrator/node';
import { createTestOrchestrator, manualClock } from 'ensemble-orchestrator/testing';
import { play, ROLLOUTS } from './rollouts.mjs';

const project = await loadProject(new URL('.', import.meta.url), { env: { STAGE: 'production' } });

for (const rollout of ROLLOUTS) {
  console.log(`\n${rollout.name}`);
  const clock = manualClock();
  const storage = memoryStorage();
  const opened = {};
  const open = (stage) =>
    (opened[stage] ??= createTestOrchestrator({ ...project, env: { STAGE: stage }, storage, clock, logger: false }));
  await play(rollout, { open, advance: (ms) => clock.advance(ms), users: () => 1_000 }, ({ title, counts }) => {
    const shares = Object.entries(counts ?? {}).map(([text, times]) => `${text}: ${Math.round(times / 100) * 10} %`);
    console.log(`  ${title.padEnd(32)}${shares.sort().join(', ')}`.trimEnd());
  });
}
