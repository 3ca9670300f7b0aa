/** Deletes old executions once an hour, in small batches with pauses between them, so that active executions come first. */

import { inPortions } from '../../engine/base/portions.ts';
import { type EngineState, registerToClaim } from './engine-state.ts';

const INTERVAL_MS = 3_600_000;
const BATCH = 500;
/** For each execution of a batch. */
const PAUSE_MS = 0.2;

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
