/** Storage in the memory of one process: the reference for every other one, and the default. */

import { OrchestratorError } from '../../engine/errors.ts';
import type { Execution } from '../../engine/model/execution.ts';
import { toExecution } from '../../engine/model/execution-record.ts';
import type { CommitEntry, ExecutionEnd, NewExecution, StepRecord } from '../../engine/model/stored-execution.ts';
import type { CommitResult, Storage, StoredDefinition, StoredState } from '../../engine/ports/storage.ts';
import { memoryKv, memoryObjects } from './memory-data.ts';
import { memoryTokens } from './memory-tokens.ts';

export interface MemoryStorageOptions {
  /** How many finished executions are kept, the newest first; those at work are always kept. Default 10,000. */
  readonly keep?: number;
}

interface Stored {
  readonly execution: NewExecution;
  steps: StepRecord[];
  /** Place of each key in `steps`, once there are many. */
  places: Map<string, number> | undefined;
  end: ExecutionEnd | undefined;
}

/** Up to so many records, walking over them is quicker than a map. */
const SCANNED_STEPS = 16;

/** @throws TypeError when `keep` is no whole number of at least 0 */
export function memoryStorage(options: MemoryStorageOptions = {}): Storage {
  const { keep = 10_000 } = options;
  if (!Number.isSafeInteger(keep) || keep < 0)
    throw new TypeError(`memoryStorage: keep must be a whole number of at least 0, not ${keep}`);
  const executions = new Map<string, Stored>();
  const definitions = new Map<string, StoredDefinition>();
  const states = new Map<string, StoredState>();
  // A ring, once it is full: taking the oldest key out of a Map walks over every entry deleted before it.
  const finished: string[] = [];
  let oldest = 0;

  const forgetOldest = (id: string) => {
    if (keep === 0) {
      executions.delete(id);
      return;
    }
    if (finished.length < keep) {
      finished.push(id);
      return;
    }
    executions.delete(finished[oldest] as string);
    finished[oldest] = id;
    oldest = (oldest + 1) % keep;
  };

  const commitOne = (entry: CommitEntry): CommitResult => {
    const stored = executions.get(entry.executionId);
    if (!stored || stored.end || stored.execution.epoch !== entry.epoch) return 'fenced';
    if (entry.state) {
      const { ensemble, expectedVersion, value, updatedAt } = entry.state;
      if ((states.get(ensemble)?.version ?? 0) !== expectedVersion) return 'state-conflict';
      states.set(ensemble, { value, version: expectedVersion + 1, updatedAt });
    }
    for (const step of entry.steps) putStep(stored, step);
    if (entry.end) {
      stored.end = entry.end;
      // An array that grew has room to spare, which would be kept for as long as the execution is.
      stored.steps = stored.steps.slice();
      stored.places = undefined;
      forgetOldest(entry.executionId);
    }
    return 'stored';
  };

  const record = ({ execution, end, steps }: Stored): Execution => toExecution(execution, end, steps, countRuns(steps));

  return {
    capabilities: { sharedCommits: true },
    tokens: memoryTokens(),
    kv: memoryKv(),
    objects: memoryObjects(),
    accept(execution) {
      if (executions.has(execution.id)) {
        throw new OrchestratorError('CONFLICT', `execution ${execution.id} is stored already`);
      }
      executions.set(execution.id, { execution, steps: [], places: undefined, end: undefined });
    },
    commit: (batch) => (batch.length === 1 ? [commitOne(batch[0] as CommitEntry)] : batch.map(commitOne)),
    getExecution(id) {
      const stored = executions.get(id);
      return stored && record(stored);
    },
    listExecutions({ ensemble, status, limit, before }) {
      const found = [...executions.values()]
        .filter(({ execution, end }) => {
          if (ensemble !== undefined && execution.ensemble !== ensemble) return false;
          if (status !== undefined && (end?.status ?? 'running') !== status) return false;
          return before === undefined || execution.id < before;
        })
        .sort((a, b) => (a.execution.id < b.execution.id ? 1 : -1));
      return found.slice(0, limit).map((stored) => ({ ...record(stored), agents: [] }));
    },
    listSteps: (id, { after, limit }) => (executions.get(id)?.steps ?? []).slice(after, after + limit),
    readState: (ensemble) => states.get(ensemble),
    putDefinition(definition) {
      if (!definitions.has(definition.version)) definitions.set(definition.version, definition);
    },
    getDefinition: (version) => definitions.get(version),
    close() {},
  };
}

// A record takes the place of one that announced another attempt; one that is final stays.
function putStep(stored: Stored, step: StepRecord): void {
  const { steps } = stored;
  const at = findStep(stored, step.key);
  if (at < 0) {
    stored.places?.set(step.key, steps.length);
    steps.push(step);
  } else if (steps[at]?.retryAt !== undefined) steps[at] = step;
}

function findStep(stored: Stored, key: string): number {
  const { steps } = stored;
  if (steps.length > SCANNED_STEPS) {
    stored.places ??= new Map(steps.map((step, at) => [step.key, at]));
    return stored.places.get(key) ?? -1;
  }
  for (let at = steps.length - 1; at >= 0; at--) if (steps[at]?.key === key) return at;
  return -1;
}

function countRuns(steps: readonly StepRecord[]): number {
  let count = 0;
  for (const step of steps) if (step.retryAt === undefined) count += 1;
  return count;
}
