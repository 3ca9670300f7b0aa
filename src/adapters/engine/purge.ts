/** Deletes old executions now and then, in small batches with room between them: executions at work come first. */

import type { Clock } from '../../engine/ports/clock.ts';
import type { Logger } from '../../engine/ports/logger.ts';
import type { Storage } from '../../engine/ports/storage.ts';

export interface Purge {
  /** Begins to delete what is old, if it is time to. */
  nowAndThen(): void;
  /** Begins no other batch. */
  stop(): void;
}

const EVERY_MS = 3_600_000;
const DELETED_AT_ONCE = 500;
const PAUSE_MS = 100;

export function createPurge(parts: {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly retentionMs: number;
  /** Who deletes; undefined while nobody does. */
  owner(): Promise<string | undefined>;
}): Purge {
  const { storage, clock, logger, retentionMs } = parts;
  let stopped = false;
  let nextAt: number | undefined;

  const purge = async () => {
    const owner = await parts.owner();
    let after: string | undefined;
    do {
      if (owner === undefined || stopped) return;
      const before = clock.now() - retentionMs;
      const query = { owner, before, limit: DELETED_AT_ONCE, ...(after !== undefined && { after }) };
      after = (await storage.purge(query))?.next;
      if (after !== undefined) await clock.sleep(PAUSE_MS);
    } while (after !== undefined);
  };

  return {
    nowAndThen() {
      const now = clock.monotonic();
      nextAt ??= storage.capabilities.shared ? now : now + EVERY_MS;
      if (now < nextAt) return;
      nextAt = now + EVERY_MS;
      purge().catch((error: unknown) => logger.warn({ err: error }, 'old executions could not be deleted'));
    },
    stop() {
      stopped = true;
    },
  };
}
