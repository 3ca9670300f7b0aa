/**
 * Suspects: executions that may have ended their process. They are resumed apart from all others, so that the next death shows more
 * about the cause. Suspects with little blame are resumed together; a suspect with much blame is resumed alone.
 */

import type { Clock } from '../../engine/host/clock.port.ts';
import type { ActiveRun } from '../../engine/running/active-run.ts';
import { createExecutionBackoff } from './execution-backoff.ts';

export interface Suspects {
  /** Whether a suspect has a place. Meanwhile this process claims nothing else, and queues what may be queued. */
  readonly areActive: boolean;
  /** How many suspects run. */
  readonly running: number;
  /**
   * Asks for a place apart from other executions.
   * @param othersActive - how many executions that are not suspects run here, or are about to
   * @returns the place, or a number of ms after which to ask again
   */
  enter(id: string, blame: number, othersActive: number): SuspectPlace | number;
}

export interface SuspectPlace {
  /** The suspect runs: it leaves its place when it ends, has stored a result, or has run for `BLAME_WINDOW_MS`. */
  watch(run: ActiveRun): void;
  leave(): void;
}

/** An execution may be the cause of a death when its process dies within this time after claiming it. */
export const BLAME_WINDOW_MS = 60_000;
/** The blame for a first death. An execution with more is a suspect: two processes in a row died soon after they claimed it. */
export const FIRST_DEATH_BLAME = 1;
/** The blame that all suspects of one death share: see `workers.reclaimFromDead` of the storage. */
const FULL_BLAME = 1000;
/** The largest blame of suspects that run together: at most a quarter of the suspects of one death. */
const MAX_BLAME_TOGETHER = FULL_BLAME / 4;
/** An execution reaches this blame after three deaths, when it ran alone each time. It is then ended. */
export const MAX_BLAME = 2 * FULL_BLAME;
const CHECK_MS = 250;
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 2000;
/** How long a suspect waits for other executions to end; then it is resumed alongside them. */
const MAX_WAIT_MS = 60_000;

/** @param onNoneActive - called when the last suspect has left its place */
export function createSuspects(clock: Clock, onNoneActive: () => void): Suspects {
  const active = new Set<{ readonly blame: number; isRunning: boolean }>();
  const waiting = createExecutionBackoff(clock, FIRST_PAUSE_MS, MAX_PAUSE_MS);

  const mayEnter = (blame: number, othersActive: number, waitedMs: number): boolean => {
    if (othersActive > 0 && waitedMs < MAX_WAIT_MS) return false;
    let together = blame;
    for (const other of active) together += other.blame;
    return active.size === 0 || together <= MAX_BLAME_TOGETHER;
  };

  return {
    get areActive() {
      return active.size > 0;
    },
    get running() {
      let running = 0;
      for (const { isRunning } of active) if (isRunning) running += 1;
      return running;
    },
    enter(id, blame, othersActive) {
      const { pauseMs, sinceMs } = waiting.next(id, 'it waits for other executions');
      // While suspects are active, nothing is claimed: this one is claimed again after they have left.
      if (!mayEnter(blame, othersActive, sinceMs)) return active.size > 0 ? FIRST_PAUSE_MS : pauseMs;
      waiting.forget(id);
      const suspect = { blame, isRunning: false };
      active.add(suspect);
      let cancelTimer: (() => void) | undefined;
      const leave = () => {
        cancelTimer?.();
        if (active.delete(suspect) && active.size === 0) onNoneActive();
      };
      return {
        leave,
        watch(run) {
          suspect.isRunning = true;
          const { stored } = run;
          const end = clock.monotonic() + BLAME_WINDOW_MS;
          const check = () => {
            if (run.stored > stored || clock.monotonic() >= end) leave();
            else cancelTimer = clock.setTimer(CHECK_MS, check, { background: true });
          };
          cancelTimer = clock.setTimer(CHECK_MS, check, { background: true });
          run.finished.then(leave, leave);
        },
      };
    },
  };
}
