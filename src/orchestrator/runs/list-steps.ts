/** Lists the steps of an execution in pages, in the order in which they began to be known. */

import { cloneJson, type Json } from '../../engine/base/json/json.ts';
import { jsonTextBytes } from '../../engine/base/json/measure-json.ts';
import {
  type ExecutionStep,
  recordOfEnd,
  type StepContext,
  toExecutionStep,
} from '../../engine/ensemble/execution-step.ts';
import { keysOfStep, markKey, roleOf, type StepKind } from '../../engine/ensemble/step-kind.ts';
import { type ExecutionSummary, isFinal } from '../../engine/execution/execution.ts';
import type { StepRecord } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import { decodeCursor, encodeCursor, pageLimit } from '../../engine/storage/cursor.ts';
import type { RecordReader } from '../../engine/storage/storage.port.ts';

export interface StepPage {
  readonly steps: readonly ExecutionStep[];
  readonly nextCursor?: string;
}

export interface StepPageOptions {
  /** How many steps a page has at most. Default 100, at most 250. */
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  /** The size of the largest outputs that are listed, in bytes of JSON. A step with a larger one has `outputOmitted`. Default: no limit. */
  readonly maxOutput?: number | undefined;
}

/** The form of a cursor's entry. */
export const STEP_KEY = /^.+$/s;
/** What a step is inside of, if something may stop it before its end. */
const AROUND = /\.(foreach|parallel)\[\d+\]/g;

type Reads = Pick<RecordReader['executions'], 'getStep'>;

/** @returns a function that makes the step of a record; undefined if the record does not stand for a step */
function stepsOf(executions: Reads, clock: Clock, { id, status, finishedAt }: ExecutionSummary) {
  const now = clock.now();
  const context: StepContext = isFinal(status) ? { isOver: true, at: finishedAt ?? now } : { isOver: false, at: now };
  const ends = new Map<string, Promise<StepRecord | undefined>>();
  const read = async (key: string) => executions.getStep(id, key);

  /** A step that has not ended was stopped if a block around it has ended. */
  const contextOf = async (record: StepRecord): Promise<StepContext> => {
    const { step = '' } = roleOf(record) ?? {};
    for (const { index, 1: kind } of step.matchAll(AROUND)) {
      const key = markKey(step.slice(0, index), kind as StepKind, 'ended');
      const end = ends.get(key) ?? read(key);
      ends.set(key, end);
      const ended = await end;
      if (ended) return { isOver: true, at: ended.startedAt };
    }
    return context;
  };
  return async (record: StepRecord): Promise<ExecutionStep | undefined> => {
    const otherKey = recordOfEnd(record);
    if (otherKey === undefined) return undefined;
    const other = otherKey === null ? undefined : await read(otherKey);
    const hasEnded = other !== undefined || (otherKey === null && record.retryAt === undefined);
    return toExecutionStep(record, other, hasEnded || context.isOver ? context : await contextOf(record));
  };
}

/** @throws INVALID_CURSOR, INVALID_REQUEST */
export async function listSteps(
  { executions }: RecordReader,
  clock: Clock,
  summary: ExecutionSummary,
  { limit, cursor, maxOutput }: StepPageOptions,
): Promise<StepPage> {
  const { id } = summary;
  const size = pageLimit(limit);
  const filter = `${id} steps`;
  const toStep = stepsOf(executions, clock, summary);
  const steps: ExecutionStep[] = [];
  let last = '';
  let after = cursor === undefined ? undefined : decodeCursor(cursor, filter, STEP_KEY);
  for (;;) {
    const records = await executions.listSteps(id, { after, limit: size + 1, notes: true });
    const found = await Promise.all(records.map(toStep));
    for (const [i, step] of found.entries()) {
      if (!step) continue;
      if (steps.length === size) return { steps, nextCursor: encodeCursor(last, filter) };
      steps.push(cloneJson(withinSize(step, maxOutput)));
      last = (records[i] as StepRecord).key;
    }
    after = records.at(-1)?.key;
    if (after === undefined) return { steps };
    // The outputs that were read have the size of a page, or there are no more.
    if (records.length > size || steps.length === 0) continue;
    const isAll = (await executions.listSteps(id, { after, limit: 1, notes: true })).length === 0;
    return isAll ? { steps } : { steps, nextCursor: encodeCursor(last, filter) };
  }
}

/** @returns undefined if the execution has no such step */
export async function readStep(
  { executions }: RecordReader,
  clock: Clock,
  summary: ExecutionSummary,
  key: string,
): Promise<ExecutionStep | undefined> {
  const toStep = stepsOf(executions, clock, summary);
  for (const own of keysOfStep(key)) {
    const record = await executions.getStep(summary.id, own);
    const step = record && (await toStep(record));
    if (step?.key === key) return cloneJson(step);
  }
  return undefined;
}

function withinSize(step: ExecutionStep, maxOutput: number | undefined): ExecutionStep {
  const { output, ...rest } = step;
  return maxOutput === undefined || output === undefined || jsonTextBytes(output as Json, maxOutput) <= maxOutput
    ? step
    : { ...rest, outputOmitted: true };
}
