/** Rollouts: a guard advances the share of a version in steps, and rolls it back by itself. */

import { describe, expect, it } from 'vitest';
import type { WorldReader } from '../../src/conformance/engine-suite/world/engine-world.ts';
import { openStorageWorld } from '../../src/conformance/engine-suite/world/storage-world.ts';
import { inWorld } from '../../src/conformance/engine-suite/world/world.ts';
import type { StoredDocument } from '../../src/engine/storage/document-store.port.ts';
import { manualClock } from '../../src/entries/testing.ts';
import {
  createOrchestrator,
  defineOperation,
  embeddedEngine,
  memoryStorage,
  type NewDeployment,
  type Orchestrator,
  type OrchestratorOptions,
} from '../../src/index.ts';

/** Fails where the text of the component is that of a version in `broken`. */
const broken = new Set<string>();
const use = defineOperation({
  name: 'use',
  run({ config }) {
    const { text } = config as { readonly text: string };
    if (broken.has(text)) throw new Error(`${text} is broken`);
    return text;
  },
});
let kill = () => {};
/** Ends its process where the text is that of the new version. */
const deadly = defineOperation({
  name: 'use',
  run({ config }) {
    const { text } = config as { readonly text: string };
    if (text !== 'v1.1.0') return text;
    kill();
    return new Promise(() => {});
  },
});

async function allEnded({ executions }: WorldReader): Promise<boolean> {
  return (await executions.list({ limit: 50 })).every(({ finishedAt }) => finishedAt !== undefined);
}

const ENSEMBLE = `
name: e
flow:
  - { agent: a, operation: use, config: { text: "prompt://greet@production" } }
outputs: { text: "\${a.output}" }
`;

async function setUp() {
  broken.clear();
  const clock = manualClock();
  const storage = memoryStorage();
  const events: object[] = [];
  const warnings: string[] = [];
  const silent = () => undefined;
  const logger = {
    ...{ debug: silent, info: silent, error: silent },
    warn: (_fields: object, text = '') => void (text.startsWith('a component') && warnings.push(text)),
  };
  const open = () => {
    const orchestrator = createOrchestrator({ clock, storage, logger, operations: [use], ensembles: [ENSEMBLE] });
    orchestrator.on('component.rolledBack', ({ data }) => events.push(data));
    return orchestrator;
  };
  const orchestrator = open();
  const { components } = orchestrator;
  await components.register({ name: 'greet', kind: 'prompt' });
  for (const version of ['v1.0.0', 'v1.1.0']) await components.createVersion('greet', { version, content: version });
  await components.deploy('greet', { to: 'production', version: 'v1.0.0' });
  const rollOut = (more: Partial<NewDeployment> = {}) =>
    components.deploy('greet', {
      to: 'production',
      version: 'v1.1.0',
      guard: 'failureRate < 2%',
      actor: 'ada',
      ...more,
    });
  const run = async (times: number, by = orchestrator) => {
    const runs = await Promise.all(Array.from({ length: times }, () => by.execute('e')));
    return runs.filter(({ components: used }) => used?.[0]?.version === 'v1.1.0').length;
  };
  const now = async () => {
    const [deployment] = await components.deployments('greet');
    return deployment?.split?.['v1.1.0'] ?? deployment?.version;
  };
  return { clock, storage, open, orchestrator, components, events, warnings, rollOut, run, now };
}

const MINUTE = 60_000;

describe('a rollout', () => {
  it('advances through its steps while the guard holds, and then all executions get the version', async () => {
    const { clock, components, rollOut, run, now, events } = await setUp();
    const begun = await rollOut();
    expect(begun).toMatchObject({ split: { 'v1.0.0': 99, 'v1.1.0': 1 }, previous: 'v1.0.0', by: 'ada' });
    const seen = [await now()];
    for (let step = 0; step < 3; step++) {
      await run(1_000);
      await clock.advance(11 * MINUTE);
      seen.push(await now());
    }
    expect(seen).toEqual([1, 10, 50, 'v1.1.0']);
    expect(await run(20)).toBe(20);
    const [done] = await components.deployments('greet');
    expect([done?.rollout, done?.split, done?.previous, done?.by]).toEqual([undefined, undefined, 'v1.0.0', 'ada']);
    expect(events).toEqual([]);
  });

  it('is rolled back when more executions fail than the guard allows, with an event and a log line', async () => {
    const { clock, components, rollOut, run, events, warnings } = await setUp();
    broken.add('v1.1.0');
    await rollOut({ steps: [99, 100] });
    const failed = await run(20);
    await clock.advance(1_000);
    const [deployment] = await components.deployments('greet');
    expect(deployment).toMatchObject({ version: 'v1.0.0', by: 'guard' });
    // An operator who rolls back right after the guard does not bring the broken version to all.
    await expect(components.rollback('greet', { to: 'production' })).rejects.toMatchObject({ code: 'CONFLICT' });
    expect(deployment?.message).toBe(
      `v1.1.0 was rolled back: ${failed} of ${failed} executions failed, and the guard is failureRate < 2%`,
    );
    expect(events).toEqual([
      {
        ...{
          executionId: expect.stringMatching(/^exec_/),
          ensemble: 'e',
          component: 'greet',
          environment: 'production',
        },
        ...{ from: 'v1.1.0', to: 'v1.0.0', guard: 'failureRate < 2%', runs: failed, failures: failed },
      },
    ]);
    expect(warnings).toEqual(['a component was rolled back by its guard']);
    expect(await run(10)).toBe(0);
  });

  it('two failures among the first runs do not end it, and a third one does', async () => {
    const { clock, rollOut, run, now } = await setUp();
    await rollOut({ steps: [99, 100] });
    const fail = async () => {
      broken.add('v1.1.0');
      let failed = 0;
      while (failed === 0) failed = await run(1);
      broken.clear();
      await clock.advance(1_000);
    };
    await fail();
    await fail();
    expect(await now()).toBe(99);
    await fail();
    expect(await now()).toBe('v1.0.0');
  });

  it('counts the executions of all processes, and one of them rolls back', async () => {
    const { clock, open, orchestrator, rollOut, run, now, events } = await setUp();
    const others = [open(), open(), open()];
    broken.add('v1.1.0');
    await rollOut({ steps: [99, 100], guard: 'failureRate < 5%' });
    // Two failures in each of four processes: in none of them alone too many.
    for (const one of [orchestrator, ...others]) {
      let failed = 0;
      while (failed < 2) failed += await run(1, one);
    }
    await clock.advance(2_000);
    expect(await now()).toBe('v1.0.0');
    expect(events).toHaveLength(1);
  });

  it('counts over all its steps: too few failures for each step alone still end it', async () => {
    const { clock, rollOut, run, now, events } = await setUp();
    await rollOut({ steps: [60, 70, 80, 90, 100], every: '1m' });
    const seen = [await now()];
    for (let step = 0; step < 3; step++) {
      broken.add('v1.1.0');
      for (let failed = 0; failed === 0; ) failed = await run(1);
      broken.clear();
      await clock.advance(2 * MINUTE);
      seen.push(await now());
    }
    expect(seen).toEqual([60, 70, 80, 'v1.0.0']);
    expect(events).toEqual([expect.objectContaining({ runs: 3, failures: 3 })]);
    // The counts of an earlier rollout do not count.
    await rollOut({ steps: [99, 100] });
    broken.add('v1.1.0');
    for (let failed = 0; failed === 0; ) failed = await run(1);
    await clock.advance(MINUTE);
    expect(await now()).toBe(99);
  });

  it('that an earlier version of the library has counted continues', async () => {
    const { clock, storage, rollOut, run, now } = await setUp();
    await rollOut({ steps: [50, 100], every: '1m' });
    await run(20);
    await clock.advance(1_000);
    const [kind, key] = ['component-rollout', 'greet@production'];
    const stored = (await storage.documents.read(kind, key, clock.now())) as StoredDocument;
    const { earlier: _earlier, ...value } = stored.value;
    await storage.documents.write(kind, key, {
      ...{ expectedVersion: stored.version, now: clock.now() },
      document: { value, tag: '', updatedAt: clock.now() },
    });
    await clock.advance(2 * MINUTE);
    await run(20);
    await clock.advance(1_000);
    expect(await now()).toBe('v1.1.0');
  });

  it('counts a failure within 50 ms: a process that is killed after that takes none along', async () => {
    const { clock, open, rollOut, run, now } = await setUp();
    broken.add('v1.1.0');
    await rollOut({ steps: [99, 100] });
    for (let process = 0; process < 3; process++) {
      const one = open();
      await one.ready();
      for (let failed = 0; failed === 0; ) failed = await run(1, one);
      await clock.advance(50);
      // A process that ends in this way counts nothing more.
      await one.close({ grace: 0 });
    }
    await clock.advance(2_000);
    expect(await now()).toBe('v1.0.0');
  });

  it('of a version that ends its processes is rolled back', () =>
    inWorld(
      {
        createSubject: ((options: OrchestratorOptions) => {
          const { operations = [] } = options;
          return createOrchestrator({ ...options, operations: [...operations, deadly] });
        }) as never,
        openWorld: () => {
          const storage = memoryStorage({ shared: true });
          return openStorageWorld({
            create: () => ({ connect: () => ({ ...storage, close() {} }) }),
            engine: embeddedEngine,
          });
        },
      },
      async (world) => {
        const open = async (concurrency = 10) => {
          const process = await world.open({ ensembles: [ENSEMBLE as never], engine: { concurrency } });
          const orchestrator = process.subject as unknown as Orchestrator;
          kill = () => process.kill();
          await orchestrator.ready();
          return { process, orchestrator };
        };
        const { orchestrator } = await open(0);
        const { components } = orchestrator;
        await components.register({ name: 'greet', kind: 'prompt' });
        for (const version of ['v1.0.0', 'v1.1.0'])
          await components.createVersion('greet', { version, content: version });
        await components.deploy('greet', { to: 'production', version: 'v1.0.0' });
        await components.deploy('greet', {
          ...{ to: 'production', version: 'v1.1.0', guard: 'failureRate < 2%', steps: [99, 100] },
        });
        for (let i = 0; i < 5; i++) await orchestrator.start('e');
        for (let deaths = 0; deaths < 50; deaths++) {
          const next = await open();
          const isOver = async () => !next.process.control.alive || (await allEnded(world.reader));
          await world.until('a death, or the end of all', isOver);
          if (next.process.control.alive) break;
        }
        const last = await open();
        await world.advance(5_000);
        expect(await last.orchestrator.components.deployments('greet')).toMatchObject([
          { version: 'v1.0.0', by: 'guard' },
        ]);
        const { executions } = await last.orchestrator.executions.list({ ensemble: 'e', status: 'failed' });
        expect(executions[0]).toMatchObject({ components: [{ name: 'greet', version: 'v1.1.0' }] });
      },
    ));

  it('stays at a step that no execution has used', async () => {
    const { clock, rollOut, run, now } = await setUp();
    await rollOut({ steps: [50, 100], every: '1m' });
    await clock.advance(60 * MINUTE);
    expect(await now()).toBe(50);
    await run(40);
    await clock.advance(1_000);
    expect(await now()).toBe('v1.1.0');
  });

  it('ends with another deployment, and can be started again', async () => {
    const { clock, components, rollOut, run, now } = await setUp();
    await rollOut({ steps: [50, 100] });
    await components.rollback('greet', { to: 'production' });
    await run(10);
    await clock.advance(60 * MINUTE);
    expect(await now()).toBe('v1.0.0');
    await rollOut({ steps: [40, 100] });
    await rollOut({ steps: [30, 100] });
    expect(await now()).toBe(30);
  });

  it.each<[string, Partial<NewDeployment>, string]>([
    ['another measure', { guard: 'p95 < 2s' }, '`guard` must be a limit of the failure rate'],
    ['a limit of 0', { guard: 'failureRate < 0%' }, '`guard` must be a limit of the failure rate above 0'],
    ['falling steps', { steps: [10, 1, 100] }, '`steps` must be 2 to 20 rising shares that end with 100'],
    ['steps that end early', { steps: [1, 10] }, '`steps` must be 2 to 20 rising shares that end with 100'],
    ['one step', { steps: [100] }, '`steps` must be 2 to 20 rising shares'],
    ['a short step', { every: '10ms' }, '`every` must be a duration'],
    ['the version that is there', { version: 'v1.0.0' }, '`production` has v1.0.0: deploy v1.0.0 without it'],
    ['an empty environment', { to: 'staging' }, '`staging` has none: deploy v1.1.0 without it'],
    ['shares', { split: { 'v1.0.0': 1, 'v1.1.0': 99 }, version: undefined as never }, 'leave `version`, `guard`'],
  ])('%s is refused', async (_title, deployment, message) => {
    const { rollOut, now } = await setUp();
    await expect(rollOut(deployment)).rejects.toMatchObject({ message: expect.stringContaining(message) });
    expect(await now()).toBe('v1.0.0');
  });
});
