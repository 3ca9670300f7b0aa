/** Keeps the rate of a batch: when the next send may begin. */

import type { Clock } from '../../engine/host/clock.port.ts';

export interface Pace {
  /** Waits until a send may begin. @throws the reason of the signal */
  wait(signal: AbortSignal): Promise<void>;
  /** A send has ended now. */
  ended(): void;
  /** A send ended before this attempt. @param at - Unix ms */
  endedBefore(at: number): void;
}

const SECOND = 1_000;

/**
 * A server may receive a mail at any moment of its send. So a send begins only when fewer than `rate` of the sends before it can have
 * been received within the last second: those that ended in it. A rate below 1 has one mail in a longer window.
 *
 * The process of this execution may have died in a send that is stored nowhere, so the attempt counts as the end of one.
 *
 * @param rate - mails per second. Undefined: no limit
 */
export function createPace(rate: number | undefined, clock: Clock): Pace {
  if (rate === undefined) return { wait: async () => {}, ended() {}, endedBefore() {} };
  const count = Math.max(1, Math.floor(rate));
  const windowMs = rate < 1 ? SECOND / rate : SECOND;
  const began = { wall: clock.now(), monotonic: clock.monotonic() };
  /** Monotonic instants, in their order. */
  const ends: number[] = [began.monotonic];
  const add = (at: number) => {
    ends.push(at);
    ends.sort((a, b) => a - b);
    if (ends.length > count) ends.shift();
  };
  return {
    async wait(signal) {
      for (;;) {
        const first = ends[0] as number;
        const rest = ends.length < count ? 0 : first + windowMs - clock.monotonic();
        if (rest <= 0) return;
        await clock.sleep(Math.ceil(rest), signal);
      }
    },
    ended: () => add(clock.monotonic()),
    // A wall clock that was set back must not make the wait longer than one window.
    endedBefore: (at) => add(began.monotonic - Math.max(0, began.wall - at)),
  };
}
