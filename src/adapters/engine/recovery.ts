/**
 * Looks which owners are dead, so that others go on with what they held. It stands beside the turns of the work loop: what makes
 * a takeover wait, such as rows that a process holds which hangs in the midst of one, must not make new work wait.
 */

import type { Clock } from '../../engine/ports/clock.ts';
import type { Logger } from '../../engine/ports/logger.ts';
import type { Storage } from '../../engine/ports/storage.ts';

export interface Recovery {
  /** Looks in the background, unless that is done already. */
  beat(): void;
  /** Looks if no beat did so of late, or waits for the look that is made. @throws what the storage throws */
  lookIfDue(): Promise<void>;
  /** Resolves when the look that is made is over. */
  stop(): Promise<void>;
}

export function createRecovery(parts: {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  /** From beat to beat. */
  readonly beatMs: number;
  /** From when on what a dead process had claimed may be what it died of (Unix ms). */
  blameFrom(): number;
  /** Who looks; undefined while nobody does. */
  owner(): Promise<string | undefined>;
  /** Called when executions were freed. */
  onFreed(): void;
}): Recovery {
  const { storage, clock, logger, beatMs } = parts;
  let looking: Promise<void> | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let isStopped = false;
  let cancelTimer: (() => void) | undefined;

  const look = async (): Promise<void> => {
    cancelTimer?.();
    lookedAt = clock.monotonic();
    const owner = await parts.owner();
    if (owner === undefined || isStopped) return;
    const { freed, againInMs = beatMs } = await storage.recover(owner, clock.now(), parts.blameFrom());
    if (againInMs < beatMs && !isStopped) cancelTimer = clock.setTimer(againInMs, beat, { background: true });
    if (freed > 0) parts.onFreed();
  };

  const lookOnce = (): Promise<void> => {
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  };

  const beat = () => {
    lookOnce().catch((error: unknown) => {
      logger.warn({ err: error }, 'the storage could not be asked which processes are dead; it is asked again');
    });
  };

  return {
    beat,
    async lookIfDue() {
      if (looking || clock.monotonic() - lookedAt >= beatMs) await lookOnce();
    },
    async stop() {
      isStopped = true;
      cancelTimer?.();
      await looking?.catch(() => undefined);
    },
  };
}
