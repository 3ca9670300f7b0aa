/** The wall clock of a machine is set back by an hour while executions are queued, wait, retry and notify. */

import { describe, expect, it } from 'vitest';
import { hostTurn, type ManualClock, manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { code, echo } from '../../src/conformance/engine-suite/steps.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { steadyClock } from '../../src/orchestrator/timed/steady-clock.ts';
import { stubHttp } from '../../src/testing-kit/stub-http.ts';
import { PLACES } from './timed-place.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const START = Date.UTC(2026, 0, 1, 12);
const SECRET = 'a-secret-of-32-characters-or-more';
const STORES: readonly (readonly [name: string, create: () => Storage])[] = [
  ...PLACES,
  ['SQLite', () => sqliteStorage({ path: ':memory:' })],
];

async function pass(clock: ManualClock, ms: number): Promise<void> {
  const settle = async () => {
    for (let turn = 0; turn < 8; turn += 1) await hostTurn();
  };
  await settle();
  for (const end = clock.monotonic() + ms; clock.monotonic() < end; await settle())
    await clock.advance(Math.min(end - clock.monotonic(), clock.nextIn || 1));
}

function setUp(create: () => Storage) {
  const clock = manualClock({ now: START });
  const lines: { readonly text: string; readonly behindMs?: number }[] = [];
  const warn = (about: object, text = '') => void lines.push({ ...about, text });
  const http = stubHttp({ 'POST https://receiver.example/': [{ status: 503 }, { status: 503 }, { status: 200 }] });
  const failed = new Set<string>();
  const shared = { retry: { maxAttempts: 2, delay: '20s' } };
  const orchestrator = createOrchestrator({
    ensembles: [
      { name: 'one-by-one', flow: [code('a', 'slow')] },
      { name: 'retries', flow: [code('a', 'failsOnce', shared)] },
      { name: 'waits', flow: [{ sleep: '10m' }, echo('b', 1)] },
      { name: 'hangs', timeout: '5m', flow: [code('a', 'never')] },
      {
        name: 'notifies',
        flow: [echo('a', 1)],
        notifications: [
          {
            type: 'webhook',
            url: 'https://receiver.example/',
            events: ['execution.completed'],
            secret: '${env.SECRET}',
          },
        ],
      },
      { name: 'hourly', trigger: [{ type: 'schedule', cron: '30 * * * *' }], flow: [echo('a', 1)] },
    ] as never,
    secrets: { SECRET },
    scripts: {
      echo: ({ input }: { input: unknown }) => input,
      slow: async ({ signal }) => {
        await clock.sleep(SECOND, signal);
        return 1;
      },
      failsOnce({ execution }) {
        if (failed.has(execution.id)) return 1;
        failed.add(execution.id);
        throw new Error('once');
      },
      never: () => new Promise(() => {}),
    },
    ...{ storage: create(), http, clock, logger: { debug() {}, info() {}, warn, error: warn } },
    engine: embeddedEngine({ concurrency: 1, sweepMs: 500 }),
  });
  const list = async (ensemble: string) => (await orchestrator.executions.list({ ensemble, limit: 100 })).executions;
  const ended = async (ensemble: string) => (await list(ensemble)).map(({ status }) => status);
  return { clock, orchestrator, http, lines, list, ended, setBack: () => clock.setNow(clock.now() - HOUR) };
}

describe.each(STORES)('in %s, after the clock was set back by an hour', (_name, create) => {
  it('queued executions run at once, old and new ones in their order', async () => {
    const { clock, orchestrator, lines, list, ended, setBack } = setUp(create);
    const startFive = async () => {
      for (let i = 0; i < 5; i += 1) {
        await orchestrator.start('one-by-one');
        await clock.advance(10);
      }
    };
    await startFive();
    await pass(clock, 1_500);
    setBack();
    await startFive();
    await pass(clock, 12 * SECOND);
    expect(await ended('one-by-one')).toEqual(Array.from({ length: 10 }, () => 'completed'));
    const records = [...(await list('one-by-one'))].reverse();
    const starts = records.map(({ startedAt }) => startedAt ?? 0);
    expect(starts).toEqual([...starts].sort((a, b) => a - b));
    for (const { createdAt, startedAt = 0, finishedAt = 0 } of records)
      expect([createdAt <= startedAt, startedAt <= finishedAt]).toEqual([true, true]);
    expect(lines).toEqual([{ behindMs: expect.closeTo(HOUR, -4), text: expect.stringContaining('was set back') }]);
    await orchestrator.close({ grace: 0 });
  });

  it('retries, waits and timeouts keep their lengths, whether they began before it or after it', async () => {
    const { clock, orchestrator, ended, setBack } = setUp(create);
    await orchestrator.ready();
    await orchestrator.start('retries');
    await pass(clock, 5 * SECOND);
    await orchestrator.start('waits');
    await pass(clock, 5 * SECOND);
    setBack();
    await orchestrator.start('retries');
    await pass(clock, 30 * SECOND);
    expect(await ended('retries')).toEqual(['completed', 'completed']);
    await orchestrator.start('waits');
    await pass(clock, 9 * MINUTE);
    expect(await ended('waits')).toEqual(['waiting', 'waiting']);
    // A wait may last a twelfth longer.
    await pass(clock, 2 * MINUTE);
    expect(await ended('waits')).toEqual(['completed', 'completed']);
    await orchestrator.start('hangs');
    await pass(clock, 5 * MINUTE);
    expect(await ended('hangs')).toEqual(['timed_out']);
    await orchestrator.close({ grace: 0 });
  });

  it('notifications are sent and retried at their instants, and signed with the time of the machine', async () => {
    const { clock, orchestrator, http, setBack } = setUp(create);
    await orchestrator.ready();
    await orchestrator.start('notifies');
    await pass(clock, 200);
    expect(http.calls.length).toBe(1);
    setBack();
    await pass(clock, 2 * SECOND);
    expect(http.calls.length).toBe(2);
    await pass(clock, 6 * SECOND);
    expect(http.calls.length).toBe(3);
    const signedAt = Number(http.calls[2]?.headers?.['X-Service-Timestamp']);
    expect(Math.abs(signedAt * SECOND - clock.now())).toBeLessThan(10 * SECOND);
    await orchestrator.close({ grace: 0 });
  });

  it('a schedule ticks by the time of the machine, and repeats no tick', async () => {
    const { clock, orchestrator, list, setBack } = setUp(create);
    await orchestrator.ready();
    await pass(clock, SECOND);
    setBack();
    await pass(clock, 89 * MINUTE);
    expect((await list('hourly')).length).toBe(0);
    await pass(clock, 2 * MINUTE);
    expect((await list('hourly')).map(({ status, trigger }) => [status, trigger.scheduledAt])).toEqual([
      ['completed', START + 30 * MINUTE],
    ]);
    await orchestrator.close({ grace: 0 });
  });
});

describe('the steady clock', () => {
  const quiet = { debug() {}, info() {}, warn() {}, error() {} };

  it('comes back to the clock of the machine by five minutes an hour, and never goes back', async () => {
    const wall = manualClock({ now: START });
    const clock = steadyClock(wall, quiet);
    let before = clock.now();
    wall.setNow(START - HOUR);
    expect(clock.now()).toBe(START);
    for (let minutes = 0; minutes < 13 * 60; minutes += 1) {
      await wall.advance(MINUTE);
      const now = clock.now();
      expect(now).toBeGreaterThan(before);
      before = now;
      if (minutes === 59) expect(now - wall.now()).toBe(55 * MINUTE);
    }
    expect(clock.now()).toBe(wall.now());
  });

  it('stands still for less than a second, and logs nothing', async () => {
    const lines: string[] = [];
    const wall = manualClock({ now: START });
    const clock = steadyClock(wall, { ...quiet, warn: (_about, text) => void lines.push(text ?? '') });
    clock.now();
    wall.setNow(START - 900);
    expect(clock.now()).toBe(START);
    await wall.advance(1_000);
    expect([clock.now(), lines]).toEqual([START + 100, []]);
  });

  it('follows a clock that was wrong by more than a day', () => {
    const lines: string[] = [];
    const wall = manualClock({ now: START + 365 * 24 * HOUR });
    const clock = steadyClock(wall, { ...quiet, warn: (_about, text) => void lines.push(text ?? '') });
    clock.now();
    wall.setNow(START);
    expect([clock.now(), clock.now(), lines.length]).toEqual([START, START, 1]);
  });
});
