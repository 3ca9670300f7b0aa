/** Waits of any length and number. They have no timers of their own. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { code, echo } from '../../src/conformance/engine-suite/steps.ts';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { PLACES, timed } from './timed-place.ts';

const DAY = 86_400_000;
const SIXTY_DAYS = 60 * DAY;
/** The timers of a process on a shared storage: the lease, the beat, and the look for jobs of processes that died. */
const OWN_TIMERS = 3;

const later = [code('a', 'later', { input: { ms: '${input.ms}' }, retry: { maxAttempts: 2 } }), echo('b', 1)];

describe.each(PLACES)('in %s', (name, create) => {
  const own = name === 'memory' ? 0 : OWN_TIMERS;
  // Days pass here, so the beats are rare.
  const engine = { leaseMs: DAY, renewMs: DAY / 4, sweepMs: 3_600_000 };

  it('a wait of 60 days ends at 60 days, with one timer for it', async () => {
    const { orchestrator, clock, began, advance, ended } = timed(create, later, { engine });
    const { id } = await orchestrator.start('e', { ms: SIXTY_DAYS });
    await advance(1000);
    expect((await orchestrator.executions.get(id)).status).toBe('waiting');
    expect(clock.timers).toBeLessThanOrEqual(1 + own);
    await advance(SIXTY_DAYS - 2000);
    expect([began.length, clock.timers <= 1 + own]).toEqual([1, true]);
    const record = await ended(id, 2000);
    const at = began[1]?.[1] ?? 0;
    expect(Math.abs(at - SIXTY_DAYS)).toBeLessThanOrEqual(1000);
    expect([record.status, record.duration]).toEqual(['completed', SIXTY_DAYS]);
    // An asynchronous storage has a timer for each active call.
    if (name !== 'a shared store that answers later') expect(clock.mostTimers).toBeLessThanOrEqual(2 + own);
  });

  it('a deadline in 60 days, during a longer wait, is on time', async () => {
    const { orchestrator, clock, ended } = timed(create, { timeout: SIXTY_DAYS, flow: later }, { engine });
    const { id } = await orchestrator.start('e', { ms: 90 * DAY });
    const record = await ended(id, SIXTY_DAYS);
    expect([record.status, clock.monotonic()]).toEqual(['timed_out', SIXTY_DAYS]);
  });

  it('10,000 executions that wait have no timers of their own, and each continues at its instant', async () => {
    const { orchestrator, clock, began, advance, storage } = timed(create, later, { engine });
    const started: string[] = [];
    for (let i = 0; i < 10_000; i++) {
      // A hundred instants, a second apart, in descending order.
      const { id } = await orchestrator.start('e', { ms: 60_000 + (99 - (i % 100)) * 1000 }, { events: false });
      started.push(id);
    }
    await advance(10);
    expect((await orchestrator.executions.list({ status: 'waiting', limit: 250 })).executions.length).toBe(250);
    expect(clock.timers).toBeLessThanOrEqual(1 + own);
    await advance(59_000);
    expect(began.length).toBe(10_000);
    await advance(101_000);
    expect(began.length).toBe(30_000);
    const resumed = began.slice(10_000).filter(([agent]) => agent === 'a');
    const instants = new Set(resumed.map(([, at]) => at));
    expect([...instants].sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => 60_000 + i * 1000));
    expect(await storage.executions.findEnded(started)).toHaveLength(10_000);
    expect(clock.timers).toBeLessThanOrEqual(own);
  }, 60_000);
});

describe('on the system clock', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('a wait of 60 days has one platform timer at a time, and ends at 60 days', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
    const at: number[] = [];
    const begin = Date.now();
    const orchestrator = createOrchestrator({
      ensembles: [
        {
          name: 'e',
          flow: [{ agent: 'a', operation: 'code', config: { script: 'later' }, retry: { maxAttempts: 2 } }],
        },
      ],
      scripts: {
        later({ execution }) {
          at.push(Date.now() - begin);
          if (execution.attempt > 1) return 'done';
          throw new OrchestratorError('AGENT_FAILED', 'later', {
            retryable: true,
            details: { retryAfterMs: SIXTY_DAYS },
          });
        },
      },
      storage: memoryStorage(),
      clock: systemClock(),
    });
    const run = orchestrator.execute('e');
    const seen: number[] = [];
    for (let day = 0; day < 60; day++) {
      await vi.advanceTimersByTimeAsync(DAY);
      await new Promise((resolve) => setImmediate(resolve));
      seen.push(vi.getTimerCount());
      if (day < 59) expect(at).toEqual([0]);
    }
    expect([(await run).status, at]).toEqual(['completed', [0, SIXTY_DAYS]]);
    expect(Math.max(...seen)).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
    await orchestrator.close();
  });
});
