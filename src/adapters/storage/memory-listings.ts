/** Executions, steps and deliveries in a memory storage: every way of reading. */

import { jsonBytes } from '../../engine/json-bytes.ts';
import { type AgentRun, type Execution, PAGE_BYTES } from '../../engine/model/execution.ts';
import { toAgentRuns, toExecution, toListed, toSummary } from '../../engine/model/execution-record.ts';
import type { StepRecord } from '../../engine/model/stored-execution.ts';
import type { StepQuery, Storage } from '../../engine/ports/storage.ts';
import { countRuns, findStep, type Held } from './memory-execution.ts';

/** The verbs of the storage port that stand here. */
export type MemoryListings = Pick<
  Storage,
  | 'countDescendants'
  | 'getAccepted'
  | 'getStatus'
  | 'getExecution'
  | 'listExecutions'
  | 'listSteps'
  | 'getStep'
  | 'skipRuns'
  | 'listEndedWaits'
  | 'listDeliveries'
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
    getStatus(id) {
      const held = executions.get(id);
      return held && toSummary(held.execution, held.end?.status ?? held.status, held.end?.finishedAt);
    },
    getExecution(id, { agents = true } = {}) {
      const held = executions.get(id);
      return held && record(held, agents ? toAgentRuns(runsOf(held)) : []);
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
      return found.slice(0, limit).map((held) => toListed(record(held, [])));
    },
    listSteps(id, query) {
      const held = executions.get(id);
      return held ? page(held, query) : [];
    },
    getStep(executionId, key) {
      const held = executions.get(executionId);
      return held?.steps[findStep(held, key)];
    },
    skipRuns(executionId, count) {
      const held = executions.get(executionId);
      const runs = held ? runsOf(held) : [];
      const skipped = Math.min(runs.length, count);
      const last = runs[skipped - 1];
      return last ? { skipped, key: last.key } : { skipped };
    },
    listEndedWaits: (executionId, signal, behind) =>
      (executions.get(executionId)?.steps ?? [])
        .filter(({ note, name, startedAt }) => note === true && name !== '' && name === signal && startedAt > behind)
        .map(({ key, startedAt }) => ({ key, at: startedAt })),
    listDeliveries: (executionId) =>
      (executions.get(executionId)?.deliveries ?? []).map((delivery) => ({
        ...delivery,
        executionId,
        status: 'pending',
        attempts: 0,
      })),
  };
}

function runsOf({ steps, notes }: Held): readonly StepRecord[] {
  return notes > 0 ? steps.filter(({ note }) => !note) : steps;
}

function record(held: Held, runs: readonly AgentRun[]): Execution {
  const { execution, status, startedAt, end } = held;
  return toExecution(execution, { status, startedAt }, end, runs, end ? end.agents : countRuns(runsOf(held)));
}

function page(held: Held, { after, limit, notes = false, bytes = PAGE_BYTES }: StepQuery): readonly StepRecord[] {
  const { steps } = held;
  const behind = after === undefined ? -1 : findStep(held, after);
  if (after !== undefined && behind < 0) return [];
  const found: StepRecord[] = [];
  let left = bytes;
  for (let at = behind + 1; at < steps.length && found.length < limit; at++) {
    const step = steps[at] as StepRecord;
    if (step.note && !notes) continue;
    if (left !== Number.POSITIVE_INFINITY) left -= jsonBytes(step.output, PAGE_BYTES);
    if (left < 0 && found.length > 0) break;
    found.push(step);
  }
  return found;
}
