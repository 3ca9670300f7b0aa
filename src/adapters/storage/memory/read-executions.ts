/** Reads executions and steps in the memory storage. */

import { jsonTextBytes } from '../../../engine/base/json/measure-json.ts';
import {
  type AgentResult,
  type Execution,
  isFinal,
  MAX_MATCHES,
  type OpenCount,
  type OpenCounts,
  PAGE_BYTES,
} from '../../../engine/execution/execution.ts';
import {
  isUnresolved,
  toAgentResults,
  toExecution,
  toListed,
  tooManyMatches,
  toSummary,
} from '../../../engine/execution/execution-record.ts';
import { retryKeyOf } from '../../../engine/execution/start-once.ts';
import type { StepRecord } from '../../../engine/execution/stored-execution.ts';
import type {
  ExecutionPosition,
  ExecutionQuery,
  ExecutionReader,
  StepQuery,
} from '../../../engine/storage/storage.port.ts';
import type { MemoryState } from './memory-state.ts';
import { countRuns, findStep, runsOf, type StoredExecution } from './stored-execution.ts';

/** The methods of the storage port in this file. */
export type ReadExecutions = Omit<ExecutionReader, 'findEnded' | 'limitWaits'>;

export function readExecutions({ executions, keys }: Pick<MemoryState, 'executions' | 'keys'>): ReadExecutions {
  const isFailed = (stored: StoredExecution) =>
    isUnresolved({
      status: statusOf(stored),
      trigger: stored.execution.trigger,
      ...{ retriedBy: keys.get(retryKeyOf(stored.execution.id)) },
    } as Pick<Execution, 'status' | 'retriedBy' | 'trigger'>);
  return {
    countDescendants(rootId, limit) {
      let count = 0;
      for (const { execution } of executions.values()) {
        if (count === limit) break;
        if (execution.trigger.rootId === rootId) count += 1;
      }
      return count;
    },
    countOpen(limit) {
      const counts: Record<keyof OpenCounts, OpenCount> = {
        queued: { count: 0 },
        running: { count: 0 },
        waiting: { count: 0 },
        paused: { count: 0 },
        unresolved: { count: 0 },
      };
      for (const stored of executions.values()) {
        const ended = statusOf(stored);
        const status = isFinal(ended) ? isFailed(stored) && 'unresolved' : ended;
        if (!status) continue;
        const { createdAt } = stored.execution;
        const { count, oldestAt = createdAt } = counts[status];
        counts[status] = { count: Math.min(limit, count + 1), oldestAt: Math.min(oldestAt, createdAt) };
      }
      return counts;
    },
    countAccepted(since, limit) {
      let count = 0;
      for (const { execution } of executions.values()) {
        if (count === limit) break;
        if (execution.createdAt >= since) count += 1;
      }
      return count;
    },
    findByKey: (key) => keys.get(key),
    getAccepted: (id) => executions.get(id)?.execution,
    getStatus(id) {
      const stored = executions.get(id);
      return stored && toSummary(stored.execution, statusOf(stored), stored.end?.finishedAt);
    },
    get(id, { agents = true } = {}) {
      const stored = executions.get(id);
      return stored && toRecord(stored, agents ? toAgentResults(runsOf(stored)) : [], keys);
    },
    list(query) {
      const { limit, search } = query;
      const all = [...executions.values()];
      const matches = search === undefined ? all : withBeginning(all, search);
      const found = matches
        .filter((stored) => isListed(stored, query) && (query.unresolved !== true || isFailed(stored)))
        .sort((a, b) => directionOf(query) * compare(a.execution, b.execution));
      return found.slice(0, limit).map((stored) => toListed(toRecord(stored, [], keys)));
    },
    listSteps(id, query) {
      const stored = executions.get(id);
      return stored ? pageOf(stored, query) : [];
    },
    getStep(executionId, key) {
      const stored = executions.get(executionId);
      return stored?.steps[findStep(stored, key)];
    },
    getSteps(executionId, keys) {
      const stored = executions.get(executionId);
      if (!stored) return [];
      const places = keys.map((key) => findStep(stored, key)).filter((at) => at >= 0);
      return places.sort((a, b) => a - b).map((at) => stored.steps[at] as StepRecord);
    },
    skipSteps(executionId, count) {
      const { steps = [] } = executions.get(executionId) ?? {};
      const skipped = Math.min(steps.length, count);
      const last = steps[skipped - 1];
      return last ? { skipped, key: last.key } : { skipped };
    },
    listEndedWaits: (executionId, signal, since) =>
      (executions.get(executionId)?.steps ?? [])
        .filter(({ note, name, startedAt }) => note === true && name !== '' && name === signal && startedAt > since)
        .map(({ key, startedAt }) => ({ key, at: startedAt })),
  };
}

function isListed(stored: StoredExecution, query: ExecutionQuery): boolean {
  const { ensemble, status, parentId, tag, since, until, before, errorCode } = query;
  const { execution, end } = stored;
  if (ensemble !== undefined && execution.ensemble !== ensemble) return false;
  if (status !== undefined && statusOf(stored) !== status) return false;
  if (parentId !== undefined && execution.trigger.parentId !== parentId) return false;
  if (tag !== undefined && !execution.tags?.includes(tag)) return false;
  if (since !== undefined && execution.createdAt < since) return false;
  if (until !== undefined && execution.createdAt >= until) return false;
  if (errorCode !== undefined && end?.error?.code !== errorCode) return false;
  return before === undefined || directionOf(query) * compare(execution, before) > 0;
}

function directionOf({ order }: ExecutionQuery): 1 | -1 {
  return order === 'oldest' ? 1 : -1;
}

function compare(a: ExecutionPosition, b: ExecutionPosition): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** The executions whose id, or one of whose tags, begins with a text. @throws INVALID_REQUEST for too many ids or tags */
function withBeginning(all: readonly StoredExecution[], text: string): readonly StoredExecution[] {
  const byId = all.filter(({ execution }) => execution.id.startsWith(text));
  const byTag = all.flatMap(
    (stored) => stored.execution.tags?.filter((tag) => tag.startsWith(text)).map(() => stored) ?? [],
  );
  if (byId.length > MAX_MATCHES || byTag.length > MAX_MATCHES) throw tooManyMatches(text);
  return [...new Set([...byId, ...byTag])];
}

function statusOf({ status, end }: StoredExecution) {
  return end?.status ?? status;
}

function toRecord(stored: StoredExecution, runs: readonly AgentResult[], keys: MemoryState['keys']): Execution {
  const { execution, end } = stored;
  if (!end) return toExecution(execution, stored, end, runs, countRuns(stored));
  const retriedBy = keys.get(retryKeyOf(execution.id));
  return toExecution(execution, retriedBy === undefined ? stored : { ...stored, retriedBy }, end, runs, end.agents);
}

/** A page of steps: at most `limit` steps and `bytes` of outputs, but at least one step. */
function pageOf(
  stored: StoredExecution,
  { after, limit, notes = false, bytes = PAGE_BYTES }: StepQuery,
): readonly StepRecord[] {
  const { steps } = stored;
  const last = after === undefined ? -1 : findStep(stored, after);
  if (after !== undefined && last < 0) return [];
  const found: StepRecord[] = [];
  let left = bytes;
  for (let at = last + 1; at < steps.length && found.length < limit; at++) {
    const step = steps[at] as StepRecord;
    if (step.note && !notes) continue;
    if (left !== Number.POSITIVE_INFINITY) left -= jsonTextBytes(step.output, PAGE_BYTES);
    if (left < 0 && found.length > 0) break;
    found.push(step);
  }
  return found;
}
