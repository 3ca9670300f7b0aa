/** The embedded engine: runs executions in this process, over the storage that the host configured. */

import { OrchestratorError } from '../../engine/errors.ts';
import type { Execution } from '../../engine/model/execution.ts';
import { toExecution } from '../../engine/model/execution-record.ts';
import type { ExecutionEnd, NewExecution } from '../../engine/model/stored-execution.ts';
import type {
  AcceptedRun,
  BeginOptions,
  EngineHost,
  ExecutionEngine,
  InterpretedRun,
  RunningEngine,
} from '../../engine/ports/execution-engine.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { StoredDefinition } from '../../engine/ports/storage.ts';
import { EmbeddedJournal } from './embedded-journal.ts';

/** Runs executions in the process that accepts them. */
export function embeddedEngine(): ExecutionEngine {
  return { attach };
}

function attach(host: EngineHost): RunningEngine {
  const { storage, clock } = host;
  const active = new Set<InterpretedRun>();
  const storedDefinitions = new Set<string>();
  /** Executions on their way into the storage: they run once they are there. */
  let accepting = 0;
  let closed = false;
  let onIdle: (() => void) | undefined;

  const tellIdle = () => {
    if (active.size === 0 && accepting === 0) onIdle?.();
  };

  const start = (execution: NewExecution, { durability, signal }: BeginOptions): AcceptedRun => {
    const journal = new EmbeddedJournal(storage, clock, execution, durability);
    const began = clock.monotonic();
    const run = host.interpret(execution, journal, signal);
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
      active.delete(run);
      tellIdle();
    }
  };

  /** Stores the definition, where that was not done yet, then the execution. */
  const accept = (execution: NewExecution, definition: StoredDefinition): MaybePromise<void> => {
    if (storedDefinitions.has(definition.version)) return storage.accept(execution);
    const put = storage.putDefinition(definition);
    const then = () => {
      storedDefinitions.add(definition.version);
      return storage.accept(execution);
    };
    return put instanceof Promise ? put.then(then) : then();
  };

  return {
    get active() {
      return active.size;
    },
    begin(execution, options): MaybePromise<AcceptedRun> {
      if (closed) throw new OrchestratorError('OVERLOADED', 'the orchestrator is closed and takes no new executions');
      const accepted = accept(execution, options.definition);
      if (!(accepted instanceof Promise)) return start(execution, options);
      accepting += 1;
      return accepted
        .then(() => start(execution, options))
        .finally(() => {
          accepting -= 1;
          tellIdle();
        });
    },
    async close(graceMs) {
      closed = true;
      if (active.size === 0 && accepting === 0) return;
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
