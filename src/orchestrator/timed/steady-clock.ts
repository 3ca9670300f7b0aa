/**
 * The time by which an orchestrator orders what it does. It follows the host's clock, but never goes back with it: otherwise what is due
 * at 12:00 would wait until 12:00 comes again, and an execution would end before it began.
 */

import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';

export interface SteadyClock extends Clock {
  /** The host's clock, by which the outside world lives: signatures, tokens of others, schedules. */
  readonly wall: Clock;
  /** The host's instant of an instant of this clock, both Unix ms. */
  toWall(instant: number): number;
}

/** With a smaller step back, it stands still until the host's clock has caught up. */
const STEP_MS = 1_000;
/** A clock that is set back further was wrong, and is followed. */
const MAX_STEP_MS = 24 * 60 * 60 * 1_000;
/** While it is ahead of the host's clock, it comes back by this part of the time that passes. */
const RETURNED = 1 / 12;

/** Never goes back, unless the host's clock is set back by more than a day. A step of a second and more is logged once. */
export function steadyClock(wall: Clock, logger: Logger): SteadyClock {
  let latest = Number.NEGATIVE_INFINITY;
  /** How far it was ahead of the host's clock at a monotonic instant, ms. */
  let ahead = 0;
  let aheadAt = 0;

  const lead = () => {
    if (ahead === 0) return 0;
    const left = Math.ceil(ahead - (wall.monotonic() - aheadAt) * RETURNED);
    if (left <= 0) ahead = 0;
    return Math.max(0, left);
  };

  const set = (ms: number) => {
    ahead = ms;
    aheadAt = wall.monotonic();
  };

  const afterStep = (host: number): number => {
    const behindMs = latest - (host + lead());
    if (behindMs < STEP_MS) return latest;
    const isFollowed = behindMs > MAX_STEP_MS;
    set(isFollowed ? 0 : latest - host);
    latest = host + ahead;
    if (isFollowed)
      logger.warn({ behindMs }, 'the clock of the machine was set back by more than a day; it is followed');
    else
      logger.warn(
        { behindMs },
        'the clock of the machine was set back; this process comes back to it by five minutes an hour',
      );
    return latest;
  };

  return {
    wall,
    toWall: (instant) => instant - lead(),
    now() {
      const host = wall.now();
      const now = ahead === 0 ? host : host + lead();
      if (now < latest) return afterStep(host);
      latest = now;
      return now;
    },
    monotonic: () => wall.monotonic(),
    sleep: (ms, signal) => wall.sleep(ms, signal),
    setTimer: (ms, callback, options) => wall.setTimer(ms, callback, options),
    ...(wall.turn && { turn: () => (wall.turn as () => Promise<void>)() }),
  };
}
