/** Work on executions that have ended: counts them once a second, and deletes old ones once an hour, in small batches with pauses between them. */

import { inPortions } from '../../engine/base/portions.ts';
import { type EngineState, registerToClaim } from './engine-state.ts';

const INTERVAL_MS = 3_600_000;
const BATCH = 500;
/** For each execution of a batch. */
const PAUSE_MS = 0.2;

const COUNT_INTERVAL_MS = 1000;
const COUNT_PAUSE_MS = 5;

/** Begins to add up what has ended, when a second has passed since the last time. */
export function countIfDue(engine: EngineState): void {
  const { clock, counts, logger } = engine;
  const now = clock.monotonic();
  if (!counts.hasEnded || now < counts.nextAt) return;
  counts.hasEnded = false;
  counts.nextAt = Number.POSITIVE_INFINITY;
  countEnds(engine)
    .catch((error: unknown) => {
      counts.hasEnded = true;
      logger.warn({ err: error }, 'ended executions could not be counted');
    })
    .finally(() => {
      counts.nextAt = clock.monotonic() + COUNT_INTERVAL_MS;
    });
}

async function countEnds(engine: EngineState): Promise<void> {
  const { clock, storage } = engine;
  while (!engine.isStopped && (await storage.tallies.fold(clock.now()))) await clock.sleep(COUNT_PAUSE_MS);
}

/** Begins to delete old executions, when an hour has passed since the last time. */
export function purgeIfDue(engine: EngineState): void {
  const { clock, storage, logger } = engine;
  const now = clock.monotonic();
  engine.purgeAt ??= storage.capabilities.shared ? now : now + INTERVAL_MS;
  if (now < engine.purgeAt) return;
  engine.purgeAt = now + INTERVAL_MS;
  purge(engine).catch((error: unknown) => logger.warn({ err: error }, 'old executions could not be deleted'));
}

async function purge(engine: EngineState): Promise<void> {
  const { clock, storage, host } = engine;
  const worker = await registerToClaim(engine);
  const portions = inPortions(clock, BATCH);
  let after: string | undefined;
  do {
    if (worker === undefined || engine.isStopped) return;
    const pauseMs = await portions.next(async (limit) => {
      const query = { worker, before: clock.now() - host.retentionMs, limit, ...(after !== undefined && { after }) };
      after = (await storage.executions.purge(query))?.next;
      return limit * PAUSE_MS;
    });
    if (after !== undefined) await clock.sleep(pauseMs);
  } while (after !== undefined);
}
