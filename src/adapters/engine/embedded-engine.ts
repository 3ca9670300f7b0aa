/** The embedded engine: runs executions in this process, over the storage that the host configured. */

import { OrchestratorError } from '../../engine/errors.ts';
import type { Execution } from '../../engine/model/execution.ts';
import { toExecution } from '../../engine/model/execution-record.ts';
import type { ExecutionEnd, NewExecution } from '../../engine/model/stored-execution.ts';
import type {
  AcceptedRun,
  EngineHost,
  ExecutionEngine,
  ExecutionOutcome,
  InterpretedRun,
  RunningEngine,
} from '../../engine/ports/execution-engine.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import { createEmbeddedJournal } from './embedded-journal.ts';

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
    const journal = createEmbeddedJournal(storage, clock, execution, durability);
    const began = clock.monotonic();
    const run = host.interpret(execution, journal);
    active.add(run);

    const finish = async (outcome: ExecutionOutcome): Promise<Execution> => {
      const { status, output, error } = outcome;
      const duration = Math.round(clock.monotonic() - began);
      const end: ExecutionEnd = { status, output, ...(error && { error }), finishedAt: clock.now(), duration };
      const stored = journal.end(end);
      if (stored instanceof Promise) await stored;
      return toExecution(execution, end, journal.records, journal.agents);
    };
    const finished = (async () => {
      try {
        return await finish(run.outcome instanceof Promise ? await run.outcome : run.outcome);
      } finally {
        leave(run);
      }
    })();
    return { finished, cancel: () => run.stop('cancelled') };
  };

  return {
    get active() {
      return active.size;
    },
    begin(execution, { durability }): MaybePromise<AcceptedRun> {
      if (closed) throw new OrchestratorError('OVERLOADED', 'the orchestrator is closed and takes no new executions');
      const accepted = storage.accept(execution);
      return accepted instanceof Promise ? accepted.then(() => start(execution, durability)) : start(execution, durability);
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
