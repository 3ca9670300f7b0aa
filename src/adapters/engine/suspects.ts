/**
 * Executions that bear the blame for the death of a process: they are resumed apart from all others, so that the next death tells
 * more. The less blame each one bears, the more of them are resumed together; one that bears much is resumed alone.
 */

import type { Clock } from '../../engine/ports/clock.ts';
import type { ActiveRun } from './active-run.ts';
import { createSetbacks } from './setbacks.ts';

export interface Suspects {
  /** While one is at work, nothing else is claimed here, and what may be queued is queued. */
  readonly areAtWork: boolean;
  /** How many runs of them are at work. */
  readonly running: number;
  /**
   * Asks for a place apart from others.
   * @param othersAtWork - how many work here that are no suspects, or are about to
   * @returns its place; a number when it has to wait for so many ms, and ask again then
   */
  enter(id: string, blame: number, othersAtWork: number): Place | number;
}

export interface Place {
  /** It is at work: it leaves its place when it is over, has stored something, or has lived for a while. */
  watch(run: ActiveRun): void;
  leave(): void;
}

/** A process that dies within so many ms of claiming an execution may have died of it. */
export const SOON_MS = 60_000;
/** One that bears more than the mark of a first death is a suspect: two processes in a row died soon after they had claimed it. */
export const MARK = 1;
/** The blame that those share of whom a process died: see `recover` of the storage. */
const WHOLE = 1000;
/** Suspects that work together bear no more blame than this: at most a quarter of those that died together. */
const MOST_TOGETHER = WHOLE / 4;
/** For one that was alone each time, after three deaths. */
export const TOO_MUCH_BLAME = 2 * WHOLE;
const LOOK_MS = 250;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 2000;
/** For so long it waits for others to end; then it is resumed beside them. */
const WAITS_MS = 60_000;

/** @param onLeft - called when nothing is at work apart from others any more */
export function createSuspects(clock: Clock, onLeft: () => void): Suspects {
  /** What each of those at work bears. */
  const atWork = new Set<{ readonly blame: number; isRunning: boolean }>();
  const waiting = createSetbacks(clock, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);

  const isFree = (blame: number, othersAtWork: number, waitedMs: number): boolean => {
    if (othersAtWork > 0 && waitedMs < WAITS_MS) return false;
    let together = blame;
    for (const other of atWork) together += other.blame;
    return atWork.size === 0 || together <= MOST_TOGETHER;
  };

  return {
    get areAtWork() {
      return atWork.size > 0;
    },
    get running() {
      let running = 0;
      for (const one of atWork) if (one.isRunning) running += 1;
      return running;
    },
    enter(id, blame, othersAtWork) {
      const { pauseMs, sinceMs } = waiting.add(id, 'it waits for others');
      // While others are at work apart, nothing is claimed: it is asked again when they have left.
      if (!isFree(blame, othersAtWork, sinceMs)) return atWork.size > 0 ? FIRST_PAUSE_MS : pauseMs;
      waiting.forget(id);
      const one = { blame, isRunning: false };
      atWork.add(one);
      let cancelTimer: (() => void) | undefined;
      const leave = () => {
        cancelTimer?.();
        if (atWork.delete(one) && atWork.size === 0) onLeft();
      };
      return {
        leave,
        watch(run) {
          one.isRunning = true;
          const { stored } = run;
          const end = clock.monotonic() + SOON_MS;
          const look = () => {
            if (run.stored > stored || clock.monotonic() >= end) leave();
            else cancelTimer = clock.setTimer(LOOK_MS, look, { background: true });
          };
          cancelTimer = clock.setTimer(LOOK_MS, look, { background: true });
          run.finished.then(leave, leave);
        },
      };
    },
  };
}
