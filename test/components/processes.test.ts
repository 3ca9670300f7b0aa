/** Four processes on one Postgres while a version is deployed again and again: each execution has one version, and a deployment counts within a second. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { createOrchestrator } from '../../src/index.ts';
import { scaled } from '../slowdown.ts';
import { buildChildren, startChild } from '../storage/postgres-children.ts';
import { createDatabase, findServer, type TestDatabase, until } from '../storage/postgres-server.ts';

interface Line {
  readonly began: number;
  readonly ended: number;
  readonly output: { readonly versions: readonly [string, string] };
  readonly used: readonly string[];
}

const hasServer = await findServer();
const MOVES = 8;

describe.skipIf(!hasServer)('four processes', () => {
  buildChildren('test/components/component-child.ts');
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database.drop());

  it('each execution has one version, and a deployment counts within a second in every process', async () => {
    const storage = postgresStorage({ pool: database.pool() });
    const { components } = createOrchestrator({ storage, logger: false });
    await components.register({ name: 'greet', kind: 'prompt' });
    for (const version of ['v1.0.0', 'v2.0.0']) await components.createVersion('greet', { version, content: version });
    await components.deploy('greet', { to: 'production', version: 'v1.0.0' });
    const children = Array.from({ length: 4 }, () => startChild(database.connectionString));
    await until(() => children.every(({ lines }) => lines.length > 0), 'all processes run');
    const moves: { readonly version: string; readonly at: number }[] = [{ version: 'v1.0.0', at: 0 }];
    for (let move = 0; move < MOVES; move++) {
      const version = move % 2 === 0 ? 'v2.0.0' : 'v1.0.0';
      await components.deploy('greet', { to: 'production', version });
      moves.push({ version, at: Date.now() });
      await sleep(1_500);
    }
    for (const child of children) await child.kill();
    /** The versions that were deployed at some instant from `from` to `to`. */
    const versionsIn = (from: number, to: number) =>
      moves
        .filter(({ at }, i) => at <= to && (moves[i + 1]?.at ?? Number.POSITIVE_INFINITY) >= from)
        .map(({ version }) => version);
    const lateMs = scaled(1_000);
    for (const { lines } of children) {
      const runs = lines.map((line) => JSON.parse(line) as Line);
      expect(runs.length).toBeGreaterThan(MOVES);
      for (const { began, ended, output, used } of runs) {
        const [first, second] = output.versions;
        expect([second, used]).toEqual([first, [first]]);
        // What was deployed at some instant of the second before it began, or while it ran.
        expect(versionsIn(began - lateMs, ended)).toContain(first);
      }
      expect(new Set(runs.map(({ output }) => output.versions[0]))).toEqual(new Set(['v1.0.0', 'v2.0.0']));
    }
  }, 60_000);
});
