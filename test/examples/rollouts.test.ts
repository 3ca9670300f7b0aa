/** The rollouts: what the example prints, and the share of each text among 10,000 users. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadProject } from '../../src/entries/node.ts';
import { createTestOrchestrator, manualClock } from '../../src/entries/testing.ts';
import { memoryStorage } from '../../src/index.ts';
import { ensemble, ensureBuilt, ROOT } from '../cli/cli-process.ts';

beforeAll(ensureBuilt, 60_000);

const EXAMPLE = join(ROOT, 'examples/rollouts');
const { count, play, register, ROLLOUTS } = await import(pathToFileURL(join(EXAMPLE, 'rollouts.mjs')).href);

type Counts = Readonly<Record<string, number>>;
type Orchestrator = ReturnType<typeof createTestOrchestrator>;

const USERS = 10_000;

async function setUp() {
  const project = await loadProject(EXAMPLE, { env: { STAGE: 'production' } });
  const clock = manualClock();
  const storage = memoryStorage();
  const opened = new Map<string, Orchestrator>();
  const open = (stage: string) => {
    const known = opened.get(stage);
    if (known) return known;
    const made = createTestOrchestrator({ ...project, env: { STAGE: stage }, storage, clock, logger: false });
    opened.set(stage, made);
    return made;
  };
  return { open, advance: (ms: number) => clock.advance(ms) };
}

interface Rollout {
  readonly name: string;
}

interface Measured {
  readonly counts: Counts;
  readonly expect: Counts;
}

/** Where all get one text, few users show it. */
const users = (expected: Counts) => (Object.keys(expected).length > 1 ? USERS : 200);

async function sample(rollout: Rollout): Promise<readonly Measured[]> {
  const seen: Measured[] = [];
  await play(rollout, { ...(await setUp()), users }, (step: Measured) => step.expect && seen.push(step));
  return seen;
}

/** Whether each share is within 3 sigma of what is expected. */
const isNear = ({ counts, expect: expected }: Measured) =>
  Object.keys({ ...counts, ...expected }).every((text) => {
    const [share, total] = [(expected[text] ?? 0) / 100, users(expected)];
    return Math.abs((counts[text] ?? 0) - total * share) <= 3 * Math.sqrt(total * share * (1 - share));
  });

describe('the rollouts', () => {
  it('print what the README shows', async () => {
    const [, shown = ''] = /```text\n([\s\S]*?)```/.exec(readFileSync(join(EXAMPLE, 'README.md'), 'utf8')) ?? [];
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [
      '--no-warnings',
      join(EXAMPLE, 'start.mjs'),
    ]);
    expect([stdout.trim(), stderr]).toEqual([shown.trim(), '']);
  });

  it('are a project without problems for `ensemble validate`', async () => {
    const { code, stdout } = await ensemble(['validate', EXAMPLE]);
    expect([code, stdout]).toEqual([0, '✓ 8 files, no problems\n']);
  });

  it.each((ROLLOUTS as Rollout[]).map((rollout) => [rollout.name, rollout] as const))(
    '%s: of 10,000 users, each text has its share within 3 sigma, and all get the old one at the end',
    async (_name, rollout) => {
      const first = await sample(rollout);
      // One sample of 370 is farther off by chance, and two of 100,000.
      const seen = first.every(isNear) ? first : await sample(rollout);
      expect(seen.filter((step) => !isNear(step))).toEqual([]);
      expect(seen.at(-1)?.counts).toEqual({ 'Good day': 200 });
    },
  );

  it('a split gives a user the same text each time', async () => {
    const { open } = await setUp();
    const orchestrator = open('production');
    await register(orchestrator.components);
    await orchestrator.components.deploy('greet', {
      ...{ to: 'production', split: { 'v1.0.0': 50, 'v1.1.0': 50 }, by: '${input.user}' },
    });
    expect(await count(orchestrator, 'direct', 100)).toEqual(await count(orchestrator, 'direct', 100));
  });
});
