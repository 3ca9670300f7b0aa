/** Runs cycles of the engine's work: now, at the next instant at which an execution is due, or when a place becomes free. */

import { messageOf } from '../../engine/base/errors.ts';
import { nextTurn } from '../../engine/base/time/next-turn.ts';
import { NEVER } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';

/**
 * Runs one cycle.
 * @param limit - the largest number of executions to claim
 * @param reached - an instant (Unix ms) that counts as reached, even if the wall clock is earlier
 * @returns the next instant (Unix ms) at which an execution is due
 */
export type RunCycle = (limit: number, reached: number) => Promise<number | undefined>;

export interface Wakeups {
  /** More executions are due than places are free. */
  moreAreDue: boolean;
  /** Wakes from now on. Before that, only `cycle` runs cycles. */
  start(): void;
  /** An execution is due. @param dueAt - Unix ms; now by default */
  wake(dueAt?: number): void;
  /** Runs a cycle soon. */
  wakeSoon(): void;
  /** Runs a cycle after those in progress. */
  cycle(limit: number): Promise<number | undefined>;
  /** Resolves when no cycle is in progress. No cycle follows. */
  stop(): Promise<void>;
}

export interface WakeupDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long to wait after a cycle that failed, ms. */
  readonly retryMs: number;
  readonly run: RunCycle;
  isFull(): boolean;
  /** See `Storage.wakeAt`. With it, no timer waits for an instant at which an execution is due. */
  readonly wakeAt: ((instant: number) => MaybePromise<void>) | undefined;
}

export function createWakeups({ clock, logger, retryMs, run, isFull, wakeAt: callHost }: WakeupDependencies): Wakeups {
  let isStarted = false;
  let isStopped = false;
  /** The latest cycle; undefined when none is in progress. */
  let cycling: Promise<number | undefined> | undefined;
  /** Another cycle was requested during a cycle. */
  let again = false;
  let scheduled = false;
  let timer: { readonly at: number; readonly cancel: () => void } | undefined;
  /** The latest instant that the host was asked for; in the past when it could not be asked. */
  let hostWakesAt = Number.NEGATIVE_INFINITY;
  /** The instant for which the latest timer was set. */
  let firedFor = Number.NEGATIVE_INFINITY;
  /** The failures that were logged last, of cycles and of the host: each is logged once, and again after a success. */
  let cycleFailure: string | undefined;
  let hostFailure: string | undefined;

  const disarm = () => {
    timer?.cancel();
    timer = undefined;
  };

  const wakeByHost = (call: NonNullable<typeof callHost>, at: number) => {
    if (hostWakesAt <= at && hostWakesAt > clock.now()) return;
    hostWakesAt = at;
    Promise.resolve(call(at)).then(
      () => {
        hostFailure = undefined;
      },
      (err: unknown) => {
        hostWakesAt = Number.NEGATIVE_INFINITY;
        if (messageOf(err) !== hostFailure) logger.warn({ err }, 'the host could not be asked to wake this process');
        hostFailure = messageOf(err);
      },
    );
  };

  const wakeAt = (at: number) => {
    if (isStopped || !isStarted || at >= NEVER || (timer && timer.at <= at)) return;
    const leftMs = at - clock.now();
    if (leftMs <= 0) cycleSoon();
    else if (callHost) wakeByHost(callHost, at);
    else {
      timer?.cancel();
      const cancel = clock.setTimer(leftMs, () => {
        timer = undefined;
        // A wall clock that was set back meanwhile delays nothing that was waited for.
        firedFor = Math.max(firedFor, at);
        cycleNow();
      });
      timer = { at, cancel };
    }
  };

  const cycleNow = () => {
    if (cycling) again = true;
    else void cycleWhileNeeded();
  };

  const cycleSoon = () => {
    if (isStopped || !isStarted || scheduled) return;
    scheduled = true;
    nextTurn(() => {
      scheduled = false;
      cycleNow();
    });
  };

  const cycleWhileNeeded = async () => {
    try {
      do {
        again = false;
        const next = await afterCurrent(Number.POSITIVE_INFINITY);
        firedFor = Number.NEGATIVE_INFINITY;
        cycleFailure = undefined;
        if (next === undefined) disarm();
        else if (!(wakeups.moreAreDue && isFull())) wakeAt(next);
      } while (again && !isStopped);
    } catch (err) {
      const text = 'the storage could not be asked for due executions; it is asked again';
      if (messageOf(err) !== cycleFailure) logger.warn({ err }, text);
      cycleFailure = messageOf(err);
      wakeAt(clock.now() + retryMs);
    }
  };

  const afterCurrent = (limit: number): Promise<number | undefined> => {
    const latest = (cycling ?? Promise.resolve(undefined)).catch(() => undefined).then(() => run(limit, firedFor));
    cycling = latest;
    const done = () => {
      if (cycling === latest) cycling = undefined;
    };
    latest.then(done, done);
    return latest;
  };

  const wakeups: Wakeups = {
    moreAreDue: false,
    start() {
      isStarted = true;
    },
    wake(dueAt) {
      if (dueAt === undefined && isFull()) wakeups.moreAreDue = true;
      else wakeAt(dueAt ?? 0);
    },
    wakeSoon: cycleSoon,
    cycle: afterCurrent,
    async stop() {
      isStopped = true;
      disarm();
      await cycling?.catch(() => undefined);
    },
  };
  return wakeups;
}
