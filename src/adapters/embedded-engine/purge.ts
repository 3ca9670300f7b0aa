/** Deletes old executions once an hour, in small batches with pauses between them, so that active executions come first. */

import { type EngineState, registerToClaim } from './engine-state.ts';

const INTERVAL_MS = 3_600_000;
const BATCH = 500;
const PAUSE_MS = 100;

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
  let after: string | undefined;
  do {
    if (worker === undefined || engine.isStopped) return;
    const before = clock.now() - host.retentionMs;
    const query = { worker, before, limit: BATCH, ...(after !== undefined && { after }) };
    after = (await storage.executions.purge(query))?.next;
    if (after !== undefined) await clock.sleep(PAUSE_MS);
  } while (after !== undefined);
}
