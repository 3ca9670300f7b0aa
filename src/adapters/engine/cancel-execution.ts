/** Asks that executions be stopped, wherever they run, and those that they wait for. */

import { type ExecutionStatus, isFinal } from '../../engine/model/execution.ts';
import type { EngineHost } from '../../engine/ports/execution-engine.ts';
import { cancelledEnd } from './cancelled-end.ts';
import type { Patience } from './patience.ts';
import type { Runs } from './runs.ts';
import type { Waiters } from './waiters.ts';
import type { WorkLoop } from './work-loop.ts';

const PAGE = 250;

export function createCancel(parts: {
  readonly host: EngineHost;
  readonly patiently: Patience;
  readonly runs: Runs;
  readonly waiters: Waiters;
  readonly loop: WorkLoop;
}): (id: string) => Promise<ExecutionStatus | undefined> {
  const { host, patiently, runs, waiters, loop } = parts;
  const { storage, clock } = host;

  const cancelChildren = async (parentId: string): Promise<void> => {
    for (let before: string | undefined; ; ) {
      const query = { parentId, limit: PAGE, ...(before && { before }) };
      const page = await patiently(() => storage.listExecutions(query));
      for (const { id, status, trigger } of page) if (!isFinal(status) && !trigger.detached) await cancel(id);
      before = page.at(-1)?.id;
      if (page.length < PAGE) return;
    }
  };

  const cancel = async (id: string): Promise<ExecutionStatus | undefined> => {
    const run = runs.get(id);
    run?.cancel();
    // Where others may take over, it must outlive this process.
    if (run && !storage.capabilities.shared) return 'running';
    const end = cancelledEnd(clock.now());
    const status = await patiently(() => storage.requestCancel(id, end.finishedAt, end));
    loop.wake();
    // Its children hear of it at once: it may have to wait for a place itself, which they take.
    if (status === 'waiting') await cancelChildren(id);
    if (status !== 'cancelled') return status;
    // It ended without having begun: nobody else tells of it.
    const record = await patiently(() => storage.getExecution(id));
    if (record?.finishedAt === end.finishedAt && record.metrics.agents === 0) host.ended(record);
    waiters.settle(id, record);
    runs.settled(id);
    return status;
  };
  return cancel;
}
