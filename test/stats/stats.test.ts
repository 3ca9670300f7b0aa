/** The numbers of executions: `executions.stats()`, over every storage and over HTTP. */

import { describe, expect, it } from 'vitest';
import { foldMessage } from '../../src/engine/events/tallies/end-line.ts';
import { bucketOf, percentilesOf } from '../../src/engine/events/tallies/histogram.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { manualClock } from '../../src/entries/testing.ts';
import { createHandler, createOrchestrator, memoryStorage, type Storage } from '../../src/index.ts';

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];
const T0 = Date.UTC(2026, 10, 1, 12);

const STORAGES: Readonly<Record<string, () => Storage>> = {
  memory: memoryStorage,
  SQLite: () => sqliteStorage({ path: ':memory:' }),
};

function open(storage: Storage) {
  const clock = manualClock({ now: T0 });
  const orchestrator = createOrchestrator({
    ...{ storage, clock, logger: false },
    ensembles: [
      'name: import\nflow:\n  - { agent: read, operation: code, config: { script: read }, input: "${input}" }',
      'name: nightly\nflow:\n  - { ensemble: import, input: { fail: "${input.fail}" } }',
    ],
    scripts: {
      read: ({ input }) => {
        const { fail } = input as { fail?: string };
        if (fail) throw new Error(fail);
        return 1;
      },
    },
  });
  const run = (ensemble: string, input = {}) => orchestrator.execute(ensemble, input);
  return { clock, orchestrator, run };
}

describe('executions.stats', () => {
  it.each(Object.entries(STORAGES))(
    'counts ends by status, ensemble, version and error, and says when each error was first and last seen: %s',
    async (_, storage) => {
      const { clock, orchestrator, run } = open(storage());
      await run('import');
      const first = await run('import', { fail: 'row 17 of "a.csv" is empty' });
      await clock.advance(2 * MINUTE);
      const last = await run('import', { fail: 'row 4 of "b.csv" is empty' });
      await run('import', { fail: 'no space' });
      await run('nightly', { fail: 'row 9 of "c.csv" is empty' });

      const stats = await orchestrator.executions.stats({ since: T0 - HOUR });
      expect(stats.counts).toEqual({ completed: 1, failed: 5, timed_out: 0, cancelled: 0 });
      expect(stats.ensembles.map(({ ensemble, counts }) => [ensemble, counts.failed])).toEqual([
        ['import', 4],
        ['nightly', 1],
      ]);
      const [group] = stats.errors;
      expect(group).toMatchObject({
        ...{ ensemble: 'import', code: 'AGENT_FAILED', count: 3, children: 1 },
        message: expect.stringContaining('row ‹number› of ‹text› is empty'),
        ...{ firstSeen: T0, lastSeen: T0 + 2 * MINUTE, firstId: first.id },
      });
      expect(group?.lastId).not.toBe(last.id);
      expect(stats.errors.map(({ ensemble, count }) => `${ensemble} ${count}`).sort()).toEqual([
        'import 1',
        'import 3',
        'nightly 1',
      ]);
      const { versions, lastCompleted } = stats.ensembles[0] ?? {};
      expect(versions).toEqual([{ version: expect.any(String), ended: 5, failed: 4 }]);
      expect((await orchestrator.executions.get(lastCompleted?.id ?? '')).status).toBe('completed');
      expect(stats.open).toMatchObject({ unresolved: { count: 5 } });
      await orchestrator.close();
    },
  );

  it('has a bucket for each period of the span, whole, with the errors in it', async () => {
    const { clock, orchestrator, run } = open(memoryStorage());
    await run('import', { fail: 'no' });
    await clock.advance(MINUTE);
    await run('import');
    await run('import', { fail: 'no' });
    const stats = await orchestrator.executions.stats({ since: T0 - 90_000, until: T0 + 90_000, bucket: 'minute' });
    expect([stats.since, stats.until]).toEqual([T0 - 2 * MINUTE, T0 + 2 * MINUTE]);
    expect(stats.buckets.map(({ at, counts }) => [(at - T0) / MINUTE, counts.completed, counts.failed])).toEqual([
      [-2, 0, 0],
      [-1, 0, 0],
      [0, 0, 1],
      [1, 1, 1],
    ]);
    expect(stats.errors.map(({ buckets }) => buckets)).toEqual([[0, 0, 1, 1]]);
    await orchestrator.close();
  });

  it('counts the same after hours, when minutes have become hours, and after weeks', async () => {
    const { clock, orchestrator, run } = open(memoryStorage());
    for (const fail of ['no', '', 'no']) await run('import', { fail });
    for (const [later, bucket] of [
      [HOUR, 'minute'],
      [4 * HOUR, 'hour'],
      [20 * DAY, 'day'],
    ] as const) {
      await clock.advance(later);
      await run('nightly');
      const stats = await orchestrator.executions.stats({ since: T0, ensemble: 'import' });
      expect([stats.bucket, stats.counts.failed, stats.errors[0]?.count]).toEqual([bucket, 2, 2]);
    }
    await orchestrator.close();
  });

  it('says how long executions took and waited, and leaves it out when none ended', async () => {
    const { orchestrator } = open(memoryStorage());
    const none = await orchestrator.executions.stats();
    expect([none.duration, none.wait, none.buckets.length, none.bucket]).toEqual([undefined, undefined, 25, 'hour']);
    await orchestrator.close();
  });

  it.each([
    [{ bucket: 'week' }, '`bucket` must be one of minute, hour, day, not "week"'],
    [{ since: T0, until: T0 }, '`since` must be before `until`'],
    [{ since: 1.5 }, '`since` must be a whole number of ms since 1970, or a valid Date'],
    [
      { since: T0 - 400 * MINUTE, bucket: 'minute', until: T0 + 400 * MINUTE },
      'the span has more than 400 minutes: ask for a shorter one',
    ],
    [
      { since: T0 - 4 * HOUR, bucket: 'minute' },
      '`bucket: minute` is for the last hour, and `since` is before that: leave `bucket` out, or ask for a later `since`',
    ],
    [{ since: 0 }, 'the span has more than 400 days: ask for a shorter one'],
  ])('refuses %j', async (filter, message) => {
    const { orchestrator } = open(memoryStorage());
    await expect(orchestrator.executions.stats(filter as never)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message,
    });
    await expect(orchestrator.executions.stats({ ensemble: 'imports' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await orchestrator.close();
  });

  it('is answered over HTTP to callers who may read executions', async () => {
    const { orchestrator, run } = open(memoryStorage());
    await run('import', { fail: 'no' });
    const handler = createHandler(orchestrator);
    const ask = async (query: string, scope: 'read:executions' | 'read:state') => {
      const { token } = await orchestrator.tokens.create({ name: 'ops', scopes: [scope] });
      const headers = { authorization: `Bearer ${token}` };
      return handler.fetch(new Request(`http://x.example/api/v1/stats${query}`, { headers }));
    };
    expect((await ask('', 'read:state')).status).toBe(403);
    const response = await ask(`?since=${T0 - HOUR}&bucket=minute&ensemble=import`, 'read:executions');
    expect([response.status, await response.json()]).toMatchObject([
      200,
      { counts: { failed: 1 }, errors: [{ count: 1 }] },
    ]);
    const wrong = await ask('?bucket=week', 'read:executions');
    expect([wrong.status, await wrong.json()]).toMatchObject([400, { error: { code: 'INVALID_REQUEST' } }]);
    await orchestrator.close();
  });
});

describe('a folded message', () => {
  it.each([
    ['order 17 of "x 1" failed after 2.5 s', 'order ‹number› of ‹text› failed after ‹number› s'],
    ['exec_00000000000000000000000001 is gone', '‹id› is gone'],
    ['key 550e8400-e29b-41d4-a716-446655440000 and 8f14e45fceea167a', 'key ‹id› and ‹id›'],
    ["it's 5 o'clock", 'it‹text›clock'],
    ['HTTP 503 from api.example after 12 ms', 'HTTP 503 from api.example after ‹number› ms'],
    ['x'.repeat(300), `${'x'.repeat(199)}…`],
  ])('has the kind of what it names: %s', (message, folded) => expect(foldMessage(message)).toBe(folded));

  it('takes time in proportion to its length', () => {
    const begun = performance.now();
    foldMessage(`"${'a1_'.repeat(1_000_000)}`);
    expect(performance.now() - begun).toBeLessThan(1000);
  });
});

describe('percentiles', () => {
  it('are a tenth off at most', () => {
    const histogram: Record<string, number> = {};
    for (let ms = 1; ms <= 10_000; ms++) histogram[bucketOf(ms)] = (histogram[bucketOf(ms)] ?? 0) + 1;
    const { p50 = 0, p95 = 0, p99 = 0 } = percentilesOf(histogram) ?? {};
    for (const [found, exact] of [
      [p50, 5000],
      [p95, 9500],
      [p99, 9900],
    ] as const)
      expect(Math.abs(found / exact - 1)).toBeLessThanOrEqual(0.1);
    expect(percentilesOf({})).toBeUndefined();
    expect(percentilesOf({ [bucketOf(0.2)]: 3 })).toEqual({ p50: 0, p95: 0, p99: 0 });
  });
});
