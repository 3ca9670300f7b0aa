/** The embedded engine: runs executions in this process, over the storage that the host configured. */

import { OrchestratorError } from '../../engine/errors.ts';
import type { Execution } from '../../engine/model/execution.ts';
import { toExecution } from '../../engine/model/execution-record.ts';
import type { ExecutionEnd, NewExecution } from '../../engine/model/stored-execution.ts';
import type {
  AcceptedRun,
  EngineHost,
  ExecutionEngine,
  InterpretedRun,
  RunningEngine,
} from '../../engine/ports/execution-engine.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import { EmbeddedJournal } from './embedded-journal.ts';

/** Runs executions in the process that accepts them. */
export function embeddedEngine(): ExecutionEngine {
  return { attach };
}

function attach(host: EngineHost): RunningEngine {
  const { storage, clock } = host;
  const active = new Set<InterpretedRun>();
  let closed = false;
  let onIdle: (() => void) | undefined;

  const leave = (run: InterpretedRun) => {
    active.delete(run);
    if (active.size === 0) onIdle?.();
  };

  const start = (execution: NewExecution, durability: 'step' | 'none'): AcceptedRun => {
    const journal = new EmbeddedJournal(storage, clock, execution, durability);
    const began = clock.monotonic();
    const run = host.interpret(execution, journal);
    active.add(run);
    return { finished: finish(execution, run, journal, began), cancel: () => run.stop('cancelled') };
  };

  const finish = async (
    execution: NewExecution,
    run: InterpretedRun,
    journal: EmbeddedJournal,
    began: number,
  ): Promise<Execution> => {
    try {
      const { status, output, error } = await run.outcome;
      const duration = Math.round(clock.monotonic() - began);
      const finishedAt = clock.now();
      const end: ExecutionEnd = error
        ? { status, output, error, finishedAt, duration }
        : { status, output, finishedAt, duration };
      const stored = journal.end(end);
      if (stored instanceof Promise) await stored;
      return toExecution(execution, end, journal.records, journal.agents);
    } finally {
      leave(run);
    }
  };

  return {
    get active() {
      return active.size;
    },
    begin(execution, { durability }): MaybePromise<AcceptedRun> {
      if (closed) throw new OrchestratorError('OVERLOADED', 'the orchestrator is closed and takes no new executions');
      const accepted = storage.accept(execution);
      return accepted instanceof Promise
        ? accepted.then(() => start(execution, durability))
        : start(execution, durability);
    },
    async close(graceMs) {
      closed = true;
      if (active.size === 0) return;
      const idle = new Promise<void>((resolve) => {
        onIdle = resolve;
      });
      const cancelTimer = clock.setTimer(graceMs, () => {
        for (const run of active) run.stop('cancelled');
      });
      await idle;
      cancelTimer();
    },
  };
}
