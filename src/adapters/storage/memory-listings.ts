/** Executions, steps and deliveries in a memory storage: every way of reading. */

import type { Execution } from '../../engine/model/execution.ts';
import { toExecution } from '../../engine/model/execution-record.ts';
import type { Storage } from '../../engine/ports/storage.ts';
import { countRuns, type Held } from './memory-execution.ts';

/** The verbs of the storage port that stand here. */
export type MemoryListings = Pick<
  Storage,
  'countDescendants' | 'getAccepted' | 'getExecution' | 'listExecutions' | 'listSteps' | 'listDeliveries'
>;

export function memoryListings(executions: ReadonlyMap<string, Held>): MemoryListings {
  return {
    countDescendants(rootId, limit) {
      let count = 0;
      for (const { execution } of executions.values()) {
        if (count === limit) break;
        if (execution.trigger.rootId === rootId) count += 1;
      }
      return count;
    },
    getAccepted: (id) => executions.get(id)?.execution,
    getExecution(id) {
      const held = executions.get(id);
      return held && record(held);
    },
    listExecutions({ ensemble, status, parentId, limit, before }) {
      const found = [...executions.values()]
        .filter(({ execution, end, status: at }) => {
          if (ensemble !== undefined && execution.ensemble !== ensemble) return false;
          if (status !== undefined && (end?.status ?? at) !== status) return false;
          if (parentId !== undefined && execution.trigger.parentId !== parentId) return false;
          return before === undefined || execution.id < before;
        })
        .sort((a, b) => (a.execution.id < b.execution.id ? 1 : -1));
      return found.slice(0, limit).map((held) => ({ ...record(held), agents: [] }));
    },
    listSteps(id, { after, limit, notes = false }) {
      const held = executions.get(id);
      if (!held) return [];
      const steps = notes || held.notes === 0 ? held.steps : held.steps.filter(({ note }) => !note);
      return steps.slice(after, after + limit);
    },
    listDeliveries: (executionId) =>
      (executions.get(executionId)?.deliveries ?? []).map((delivery) => ({
        ...delivery,
        executionId,
        status: 'pending',
        attempts: 0,
      })),
  };
}

function record({ execution, status, startedAt, end, steps, notes }: Held): Execution {
  const runs = notes > 0 ? steps.filter(({ note }) => !note) : steps;
  return toExecution(execution, { status, startedAt }, end, runs, end ? end.agents : countRuns(runs));
}
