/** The ways to bring a new version of a component to users, and back. Each is a list of steps: what is done, then who gets what. */

export const VERSIONS = { 'v1.0.0': 'Good day', 'v1.1.0': 'Hello', 'v1.2.0': 'broken greeting' };

/** @param components - `orchestrator.components` */
export async function register(components) {
  await components.register({ name: 'greet', kind: 'prompt' });
  for (const [version, content] of Object.entries(VERSIONS))
    await components.createVersion('greet', { version, content });
  await components.register({ name: 'live', kind: 'config' });
  for (const [i, colour] of ['blue', 'green'].entries())
    await components.createVersion('live', { version: `v1.0.${i}`, content: colour });
}

const deploy = (to, version, more) => ({
  title: `deploy ${version ?? 'a split'} to ${to}`,
  run: (components) => components.deploy('greet', { to, ...(version && { version }), ...more }),
});
const rollback = (to) => ({
  title: `roll ${to} back`,
  run: (components) => components.rollback('greet', { to }),
});
const switchTo = (colour) => ({
  title: `switch to ${colour}`,
  run: (components) =>
    components.deploy('live', { to: 'production', version: colour === 'green' ? 'v1.0.1' : 'v1.0.0' }),
});

/** `expect`: the share of each text, in percent. Without it, nothing is measured after the step. */
export const ROLLOUTS = [
  {
    name: 'direct',
    steps: [
      { ...deploy('production', 'v1.0.0'), expect: { 'Good day': 100 } },
      { ...deploy('production', 'v1.1.0'), expect: { Hello: 100 } },
      { ...rollback('production'), expect: { 'Good day': 100 } },
    ],
  },
  {
    name: 'staged',
    steps: [
      deploy('staging', 'v1.0.0'),
      { ...deploy('production', 'v1.0.0'), expect: { 'Good day': 100 } },
      { ...deploy('staging', 'v1.1.0'), stage: 'staging', expect: { Hello: 100 } },
      { title: 'production is as before', run: () => {}, expect: { 'Good day': 100 } },
      { ...deploy('production', 'v1.1.0'), expect: { Hello: 100 } },
      { ...rollback('production'), expect: { 'Good day': 100 } },
    ],
  },
  {
    name: 'canary',
    steps: [
      deploy('production', 'v1.0.0'),
      { ...deploy('canary', 'v1.1.0'), expect: { 'Good day': 90, Hello: 10 } },
      { ...deploy('canary', 'v1.0.0'), expect: { 'Good day': 100 } },
    ],
  },
  {
    name: 'blue-green',
    steps: [
      deploy('blue', 'v1.0.0'),
      deploy('green', 'v1.1.0'),
      { ...switchTo('blue'), expect: { 'Good day': 100 } },
      { ...switchTo('green'), expect: { Hello: 100 } },
      { ...switchTo('blue'), expect: { 'Good day': 100 } },
    ],
  },
  {
    name: 'ab',
    steps: [
      deploy('a', 'v1.0.0'),
      { ...deploy('b', 'v1.1.0'), expect: { 'Good day': 50, Hello: 50 } },
      { ...deploy('b', 'v1.0.0'), expect: { 'Good day': 100 } },
    ],
  },
  {
    name: 'split',
    ensemble: 'direct',
    steps: [
      deploy('production', 'v1.0.0'),
      {
        ...deploy('production', undefined, { split: { 'v1.0.0': 70, 'v1.1.0': 30 }, by: '${input.user}' }),
        expect: { 'Good day': 70, Hello: 30 },
      },
      { ...rollback('production'), expect: { 'Good day': 100 } },
    ],
  },
  {
    name: 'guard',
    ensemble: 'direct',
    steps: [
      deploy('production', 'v1.0.0'),
      {
        ...deploy('production', 'v1.2.0', { guard: 'failureRate < 2%', steps: [20, 100] }),
        expect: { 'Good day': 80, failed: 20 },
      },
      { title: 'a second later', wait: 1_000, run: () => {}, expect: { 'Good day': 100 } },
    ],
  },
];

/** Runs an ensemble for this many users. @returns how many of them got each text */
export async function count(orchestrator, ensemble, users) {
  const counts = {};
  for (let user = 0; user < users; user++) {
    const { output, status } = await orchestrator.execute(ensemble, {
      user: `user ${user}`,
      group: user % 2 === 0 ? 'a' : 'b',
    });
    const text = output?.text ?? status;
    counts[text] = (counts[text] ?? 0) + 1;
  }
  return counts;
}

/**
 * Does the steps of a rollout.
 * @param open - opens an orchestrator for a stage
 * @param users - for how many users a step with these shares is measured
 * @param each - called after each step with the counts, if something is measured
 */
export async function play({ name, ensemble = name, steps }, { open, advance, users }, each) {
  const { components } = open('production');
  await register(components);
  for (const { title, run, expect, stage = 'production', wait = 0 } of steps) {
    await run(components);
    await advance(wait);
    each({ title, expect, counts: expect && (await count(open(stage), ensemble, users(expect))) });
  }
}
