/** Closes an engine: waits for what is at work, then gives it back, or cancels it where nobody could go on with it. */

import type { Clock } from '../../engine/ports/clock.ts';
import type { Logger } from '../../engine/ports/logger.ts';
import type { Orphans } from './orphans.ts';
import type { Owner } from './owner.ts';
import type { Runs } from './runs.ts';
import type { Waiters } from './waiters.ts';
import type { WorkLoop } from './work-loop.ts';

export interface ClosingParts {
  readonly runs: Runs;
  readonly loop: WorkLoop;
  readonly orphans: Orphans;
  readonly waiters: Waiters;
  readonly owner: Owner;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Cancels an execution that is not at work. */
  cancel(id: string): void;
}

/** How long a close waits, behind its grace, for what was cancelled or given back to be stored. */
const LAST_WRITES_MS = 30_000;

/** @param graceMs - for so long it waits for what is at work */
export async function closeEngine(parts: ClosingParts, graceMs: number): Promise<void> {
  const { runs, loop, orphans, waiters, owner, clock, logger, cancel } = parts;
  const { pending } = runs;
  let cancelPatience: (() => void) | undefined;
  if (!pending) await loop.stop();
  const cancelTimer = clock.setTimer(graceMs, () => {
    for (const run of runs.all()) {
      if (pending) run.cancel();
      else void run.giveBack();
    }
    for (const id of [...(pending?.keys() ?? [])]) cancel(id);
  });
  const patience = new Promise<void>((resolve) => {
    cancelPatience = clock.setTimer(graceMs + LAST_WRITES_MS, () => {
      const message = 'the storage stored nothing: what was at work is left to whoever opens it next';
      logger.error({ active: runs.size }, message);
      resolve();
    });
  });
  await Promise.race([runs.idle(true), patience]);
  cancelPatience?.();
  cancelTimer();
  if (pending) await loop.stop();
  orphans.close();
  waiters.close();
  await owner.leave();
}
