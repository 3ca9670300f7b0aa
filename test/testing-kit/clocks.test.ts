/** The manual clock of tests and the system clock: one port, the same promises. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { manualClock } from '../../src/testing.ts';

describe('manualClock', () => {
  it('stands still until it is moved, and begins on 2026-01-01 or where it is told to', async () => {
    const clock = manualClock();
    expect([clock.now(), clock.monotonic(), clock.nextIn]).toEqual([Date.UTC(2026, 0, 1), 0, undefined]);
    await clock.advance(1500);
    expect([clock.now(), clock.monotonic()]).toEqual([Date.UTC(2026, 0, 1) + 1500, 1500]);
    expect(manualClock({ now: -5 }).now()).toBe(-5);
  });

  it('fires timers in the order of their instants, each at its own, equal ones by age', async () => {
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

  it('what a timer sets off runs before the next one fires: also timers that it sets, and promises behind promises', async () => {
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

  it('a timer that is cancelled never fires; cancelling again does nothing', async () => {
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

  it('advanceToNext() goes to the next timer, and says whether there was one', async () => {
    const clock = manualClock();
    clock.setTimer(86_400_000, () => {});
    expect(await clock.advanceToNext()).toBe(true);
    expect(clock.monotonic()).toBe(86_400_000);
    expect(await clock.advanceToNext()).toBe(false);
  });

  it('T16: setNow() moves wall time alone, either way', async () => {
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

  it('T17: NaN, a negative delay and none fire at once; 60 days fire after 60 days', async () => {
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

  it('time never goes back, also when two move it at once', async () => {
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

    it('resolves after its time, and at once when there is none to wait', async () => {
      const clock = make();
      const done: number[] = [];
      for (const ms of [50, 0, -1]) void clock.sleep(ms).then(() => done.push(ms));
      await pass(clock, 49);
      expect(done).toEqual([0, -1]);
      await pass(clock, 1);
      expect(done).toEqual([0, -1, 50]);
    });

    it("rejects with the signal's reason when it aborts first, and the timer is gone by then", async () => {
      const clock = make();
      const controller = new AbortController();
      const outcome = clock.sleep(1000, controller.signal).catch((reason: unknown) => reason);
      controller.abort('enough');
      expect(await outcome).toBe('enough');
      expect('nextIn' in clock ? clock.nextIn : vi.getTimerCount() || undefined).toBeUndefined();
    });

    it('rejects at once when the signal had aborted before', async () => {
      const clock = make();
      await expect(clock.sleep(1000, AbortSignal.abort('before'))).rejects.toBe('before');
      expect('nextIn' in clock ? clock.nextIn : vi.getTimerCount() || undefined).toBeUndefined();
    });

    it('I11: leaves no listener on a signal that outlives it', async () => {
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

  it("gives the platform's times", () => {
    const clock = systemClock();
    expect(clock.now()).toBe(Date.UTC(2026, 0, 1));
    const before = clock.monotonic();
    vi.advanceTimersByTime(25);
    expect(clock.monotonic() - before).toBeCloseTo(25);
  });

  it('T16: a wall clock that jumps back moves monotonic time nowhere', () => {
    const clock = systemClock();
    const before = clock.monotonic();
    vi.setSystemTime(0);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(before);
  });

  it('T17: a timer of 60 days, past what the platform takes, fires after 60 days, with one platform timer at a time', () => {
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

  it('T17: it can be cancelled in each of its parts', () => {
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

  it('T17: exactly 2^31 - 1 ms is one part; NaN fires at once', () => {
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
