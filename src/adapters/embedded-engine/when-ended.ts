/** Waits for the end of an execution, in whichever process it runs. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { type Execution, isFinal } from '../../engine/model/execution.ts';
import type { EngineState } from './engine-state.ts';
import { startPolling } from './poll.ts';

/** See `AttachedEngine.whenEnded`. */
export async function whenEnded(engine: EngineState, id: string, maxWaitMs: number): Promise<Execution | undefined> {
  const { runs, storage, clock, waiters } = engine;
  for (let run = runs.get(id); run; run = runs.get(id)) {
    const record = await run.finished;
    if (record) return record;
    if (run.dueAt !== undefined && run.dueAt - clock.now() > maxWaitMs) return undefined;
  }
  if (engine.isClosing && !runs.pending) {
    const known = await storage.executions.getStatus(id);
    if (!known || isFinal(known.status)) return known && storage.executions.get(id);
    throw new OrchestratorError(
      'OVERLOADED',
      `the orchestrator is closed; execution ${id} continues in another process`,
    );
  }
  startPolling(engine);
  return waiters.wait(id, maxWaitMs);
}
