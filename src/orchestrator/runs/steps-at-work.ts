/** What the agents of an execution got, and which of them are at work: a run without effects over what is recorded finds it. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { cloneJson, type Json } from '../../engine/base/json/json.ts';
import type { MaybePromise } from '../../engine/base/maybe-promise.ts';
import { withTimeout } from '../../engine/base/time/with-timeout.ts';
import type { ExecutionSummary } from '../../engine/execution/execution.ts';
import type { StepRecord } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Turns } from '../../engine/interpreter/turns.ts';
import { StandingJournal, type StepAtWork } from '../../engine/running/standing-journal.ts';
import type { RecordReader, Storage, StoredDefinition } from '../../engine/storage/storage.port.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import type { ExecutionService } from './execution-service.ts';
import { readRecords } from './read-records.ts';

/** What the operation of an agent got. */
export interface StepInput {
  /** The position of the agent in the flow. */
  readonly key: string;
  /** Absent if it can't be computed. */
  readonly input?: Json;
  /** Why it can't be computed. */
  readonly reason?: string;
}

/** The agents of an execution that are at work, or were when it was stopped. */
export interface RunningSteps {
  readonly steps: readonly { readonly key: string; readonly name: string }[];
  /** Why this process can't find them. */
  readonly reason?: string;
}

interface Dependencies {
  readonly records: RecordReader;
  readonly turns: Turns;
  readonly clock: Clock;
  readonly follow: ExecutionService['follow'];
  readonly definitions: Storage['definitions'];
  restore(definition: StoredDefinition, ensemble: string): MaybePromise<LoadedEnsemble | string>;
}

/** How long the components of a config may take, ms. */
const PATIENCE_MS = 2_000;
// The agent ended at the instant at which the block around it was stopped.
const UNREACHED = 'the flow does not come to it over what is recorded';

const NOTHING: ReadonlyMap<string, StepAtWork> = new Map();

export function createStepsAtWork({ records, turns, clock, follow, definitions, restore }: Dependencies) {
  /** @param upTo - only what was recorded before the record of this key. @returns the agents that are at work then; a text says why they are not known */
  const find = async (
    { id, ensemble, version, finishedAt }: ExecutionSummary,
    upTo?: string,
  ): Promise<ReadonlyMap<string, StepAtWork> | string> => {
    const stored = await definitions.get(version);
    const loaded = stored ? await restore(stored, ensemble) : `its definition ${version} is not stored`;
    if (typeof loaded === 'string') return `this process can't follow its flow: ${loaded}`;
    const execution = await records.executions.getAccepted(id);
    if (!execution) throw new OrchestratorError('NOT_FOUND', `there is no execution ${id}`);
    const before: StepRecord[] = [];
    for await (const record of readRecords(records, turns, id)) {
      if (record.key === upTo) break;
      before.push(record);
    }
    const journal = new StandingJournal(before);
    follow(loaded, execution, journal, finishedAt);
    await journal.untilStill(() => turns.next());
    await withTimeout(journal.prepared(), PATIENCE_MS, clock.setTimer);
    return journal.atWork;
  };

  /** Nothing is stored of them: their attempt has not ended, or was dropped when the execution was stopped. */
  const atWork = async (summary: ExecutionSummary): Promise<ReadonlyMap<string, StepAtWork> | string> => {
    const { id, status } = summary;
    if (status === 'running') return find(summary);
    if (status !== 'cancelled' && status !== 'timed_out') return NOTHING;
    // It may have ended before its first run.
    const record = await records.executions.get(id, { agents: false });
    return record?.startedAt === undefined ? NOTHING : find(summary);
  };

  /** @throws NOT_FOUND */
  const inputOf = async (summary: ExecutionSummary, key: string): Promise<StepInput> => {
    const { executions } = records;
    const record = await executions.getStep(summary.id, key);
    const isKept = record !== undefined && !record.note;
    const retryOf =
      isKept && record.startedAt < summary.createdAt && (await executions.getAccepted(summary.id))?.retryOf;
    if (retryOf) {
      // The retry kept the result. It may have another input than the execution in which the agent ran.
      const earlier = await executions.getStatus(retryOf);
      return earlier ? inputOf(earlier, key) : { key, reason: `execution ${retryOf}, in which it ran, is deleted` };
    }
    const found = isKept ? await find(summary, key) : await atWork(summary);
    if (typeof found === 'string') return { key, reason: found };
    const at = found.get(key);
    if (!at && !isKept) throw new OrchestratorError('NOT_FOUND', `execution ${summary.id} has no agent run ${key}`);
    const { context, error } = at ?? {};
    return context ? { key, input: cloneJson(context.input) } : { key, reason: error?.message ?? UNREACHED };
  };

  return {
    inputOf,
    async running(summary: ExecutionSummary): Promise<RunningSteps> {
      const found = await atWork(summary);
      if (typeof found === 'string') return { steps: [], reason: found };
      return { steps: [...found].map(([key, { name }]) => ({ key, name })) };
    },
  };
}
