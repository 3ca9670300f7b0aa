/** The manual clock and the system clock follow the same port. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { joinClock } from '../../src/adapters/clock/manual-clock.ts';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { manualClock } from '../../src/entries/testing.ts';

describe('manualClock', () => {
  it('passes a stretch of sweeps in one step for one process; a sweep that another one cancels does not fire', async () => {
    const clock = manualClock();
    const leave = joinClock(clock);
    const fired: [string, number][] = [];
    const sweep = (name: string, ms: number, run = () => {}) =>
      clock.setTimer(
        ms,
        () => {
          fired.push([name, clock.monotonic()]);
          run();
        },
        { sweep: true, onHeldBack: (held) => fired.push([`${name} was held back`, held]) },
      );
    let cancel = () => {};
    sweep('a', 1000, () => cancel());
    cancel = sweep('b', 2000);
    clock.setTimer(3_600_000, () => fired.push(['due', clock.monotonic()]));
    await clock.advanceToNext();
    await clock.advanceToNext();
    expect(fired).toEqual([
      ['a was held back', 3_599_000],
      ['a', 3_600_000],
      ['due', 3_600_000],
    ]);
    leave();
    sweep('c', 1000);
    clock.setTimer(3_600_000, () => {});
    await clock.advanceToNext();
    expect(fired.at(-1)).toEqual(['c', 3_601_000]);
  });

  it('begins on 2026-01-01 or at `now`, and changes only when a test advances it', async () => {
    const clock = manualClock();
    expect([clock.now(), clock.monotonic(), clock.nextIn]).toEqual([Date.UTC(2026, 0, 1), 0, undefined]);
    await clock.advance(1500);
    expect([clock.now(), clock.monotonic()]).toEqual([Date.UTC(2026, 0, 1) + 1500, 1500]);
    expect(manualClock({ now: -5 }).now()).toBe(-5);
  });

  it('fires timers in the order of their instants, each at its own instant, and equal ones in the order in which they were set', async () => {
    const clock = manualClock();
    const fired: [string, number][] = [];
    for (const [name, ms] of [
      ['c', 300],
      ['a', 100],
      ['b1', 200],
      ['b2', 200],
      ['d', 301],
    ] as const) {
      clock.setTimer(ms, () => fired.push([name, clock.monotonic()]));
    }
    await clock.advance(300);
    expect(fired).toEqual([
      ['a', 100],
      ['b1', 200],
      ['b2', 200],
      ['c', 300],
    ]);
    expect([clock.monotonic(), clock.nextIn]).toEqual([300, 1]);
  });

  it('runs everything that a timer starts before the next timer fires: timers that it sets, and chains of promises', async () => {
    const clock = manualClock();
    const log: string[] = [];
    clock.setTimer(10, () => {
      log.push('first');
      clock.setTimer(5, () => log.push(`inner at ${clock.monotonic()}`));
      void (async () => {
        for (let i = 0; i < 20; i++) await Promise.resolve();
        log.push('follower');
      })();
    });
    clock.setTimer(20, () => log.push('second'));
    await clock.advance(20);
    expect(log).toEqual(['first', 'follower', 'inner at 15', 'second']);
  });

  it('never fires a cancelled timer; cancelling again does nothing', async () => {
    const clock = manualClock();
    let fired = 0;
    const cancel = clock.setTimer(10, () => {
      fired += 1;
    });
    clock.setTimer(10, () => {
      fired += 10;
    });
    cancel();
    cancel();
    await clock.advance(100);
    cancel();
    expect(fired).toBe(10);
  });

  it('advanceToNext() advances to the next timer, and returns whether there was one', async () => {
    const clock = manualClock();
    clock.setTimer(86_400_000, () => {});
    expect(await clock.advanceToNext()).toBe(true);
    expect(clock.monotonic()).toBe(86_400_000);
    expect(await clock.advanceToNext()).toBe(false);
  });

  it('setNow() sets wall time only, forward or back', async () => {
    const clock = manualClock();
    let fired = false;
    clock.setTimer(1000, () => {
      fired = true;
    });
    await clock.advance(400);
    clock.setNow(0);
    expect([clock.now(), clock.monotonic(), clock.nextIn, fired]).toEqual([0, 400, 600, false]);
    await clock.advance(600);
    expect([clock.now(), fired]).toEqual([600, true]);
  });

  it('fires a delay of NaN, below 0 or 0 at once, and a delay of 60 days after 60 days', async () => {
    const clock = manualClock();
    const fired: unknown[] = [];
    for (const ms of [Number.NaN, -5, 0, 60 * 86_400_000]) clock.setTimer(ms, () => fired.push(ms));
    await clock.advance(0);
    expect(fired).toEqual([Number.NaN, -5, 0]);
    await clock.advance(60 * 86_400_000 - 1);
    expect(fired.length).toBe(3);
    await clock.advance(1);
    expect(fired.length).toBe(4);
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])('advance(%s) is a TypeError', async (ms) => {
    await expect(manualClock().advance(ms)).rejects.toThrow(
      TypeError(`advance takes a number of milliseconds of at least 0, not ${ms}`),
    );
  });

  it('never moves time back, also with two concurrent calls', async () => {
    const clock = manualClock();
    clock.setTimer(5000, () => {});
    await Promise.all([clock.advance(10), clock.advanceToNext()]);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(5000);
  });
});

for (const [name, make] of [
  ['manualClock', () => manualClock()],
  ['systemClock', () => systemClock()],
] as const) {
  describe(`${name}: sleep`, () => {
    beforeEach(() => {
      vi.useFakeTimers();
    });
    afterEach(() => {
      vi.useRealTimers();
    });
    const pass = async (clock: ReturnType<typeof make>, ms: number) => {
      if ('advance' in clock) {
        vi.useRealTimers();
        await clock.advance(ms);
      } else await vi.advanceTimersByTimeAsync(ms);
    };

    it('resolves after its time, and at once for a time of 0 or less', async () => {
      const clock = make();
      const done: number[] = [];
      for (const ms of [50, 0, -1]) void clock.sleep(ms).then(() => done.push(ms));
      await pass(clock, 49);
      expect(done).toEqual([0, -1]);
      await pass(clock, 1);
      expect(done).toEqual([0, -1, 50]);
    });

    it('rejects with the reason of the signal when it aborts first, and removes the timer', async () => {
      const clock = make();
      const controller = new AbortController();
      const outcome = clock.sleep(1000, controller.signal).catch((reason: unknown) => reason);
      controller.abort('enough');
      expect(await outcome).toBe('enough');
      expect('nextIn' in clock ? clock.nextIn : vi.getTimerCount() || undefined).toBeUndefined();
    });

    it('rejects at once if the signal is already aborted', async () => {
      const clock = make();
      await expect(clock.sleep(1000, AbortSignal.abort('before'))).rejects.toBe('before');
      expect('nextIn' in clock ? clock.nextIn : vi.getTimerCount() || undefined).toBeUndefined();
    });

    it('leaves no listener on a signal that outlives it', async () => {
      const clock = make();
      const { signal } = new AbortController();
      let listeners = 0;
      const { addEventListener, removeEventListener } = signal;
      signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
        listeners += 1;
        addEventListener.apply(signal, args);
      };
      signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
        listeners -= 1;
        removeEventListener.apply(signal, args);
      };
      const sleeping = clock.sleep(10, signal);
      expect(listeners).toBe(1);
      await pass(clock, 10);
      await sleeping;
      expect(listeners).toBe(0);
    });
  });
}

describe('systemClock', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: Date.UTC(2026, 0, 1) });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('returns the times of the platform', () => {
    const clock = systemClock();
    expect(clock.now()).toBe(Date.UTC(2026, 0, 1));
    const before = clock.monotonic();
    vi.advanceTimersByTime(25);
    expect(clock.monotonic() - before).toBeCloseTo(25);
  });

  it('monotonic time does not change when the wall clock jumps back', () => {
    const clock = systemClock();
    const before = clock.monotonic();
    vi.setSystemTime(0);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(before);
  });

  it('a timer of 60 days, longer than the platform allows, fires after 60 days, with one platform timer at a time', () => {
    const clock = systemClock();
    let fired = false;
    clock.setTimer(60 * 86_400_000, () => {
      fired = true;
    });
    for (let day = 0; day < 60; day++) {
      expect([fired, vi.getTimerCount()]).toEqual([false, 1]);
      vi.advanceTimersByTime(86_400_000);
    }
    expect([fired, vi.getTimerCount()]).toEqual([true, 0]);
  });

  it('a long timer can be cancelled in each of its parts', () => {
    const clock = systemClock();
    let fired = false;
    const cancel = clock.setTimer(60 * 86_400_000, () => {
      fired = true;
    });
    vi.advanceTimersByTime(30 * 86_400_000);
    cancel();
    cancel();
    vi.advanceTimersByTime(60 * 86_400_000);
    expect([fired, vi.getTimerCount()]).toEqual([false, 0]);
  });

  it('a timer of exactly 2^31 - 1 ms is one part; NaN fires at once', () => {
    const clock = systemClock();
    const fired: number[] = [];
    clock.setTimer(2 ** 31 - 1, () => fired.push(1));
    clock.setTimer(Number.NaN, () => fired.push(2));
    vi.advanceTimersByTime(0);
    expect(fired).toEqual([2]);
    vi.advanceTimersByTime(2 ** 31 - 2);
    expect(fired).toEqual([2]);
    vi.advanceTimersByTime(1);
    expect(fired).toEqual([2, 1]);
  });
});
