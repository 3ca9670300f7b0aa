/** An execution that a step of another one started: its limits, how it tells its parent of its end, and what is noted of it. */

import type { Json } from '../json.ts';
import type { Execution, ExecutionError, FinalStatus } from './execution.ts';
import type { ExecutionEnd, NewExecution, NewSignal, StepRecord } from './stored-execution.ts';

/** How many executions may lead to one. */
export const MOST_DEPTH = 16;
/** How many executions one that was not started by another may lead to, at all depths together. */
export const MOST_DESCENDANTS = 1000;

/** How a child came out, as its parent keeps it. */
export interface ChildEnd {
  readonly status: FinalStatus;
  readonly output: Json;
  readonly error?: ExecutionError;
}

/** The signal by which a child's end reaches its parent; no caller can send one of that name. */
export function childSignalName(childId: string): string {
  return `child:${childId}`;
}

/** @param ended - an end, or the record of an execution that has ended */
export function toChildEnd({ status, output, error }: Pick<Execution, 'status' | 'output' | 'error'>): ChildEnd {
  const end = { status: status as FinalStatus, output };
  return error ? { ...end, error } : end;
}

/** What is stored together with a child's end; nothing for an execution that nobody waits for. */
export function signalsOfEnd(
  { id, trigger }: Pick<NewExecution, 'id' | 'trigger'>,
  end: ExecutionEnd,
): readonly NewSignal[] | undefined {
  const { parentId, detached } = trigger;
  if (parentId === undefined || detached) return undefined;
  const name = childSignalName(id);
  return [
    { id: name, executionId: parentId, name, payload: toChildEnd(end) as unknown as Json, createdAt: end.finishedAt },
  ];
}

/** Whether a record is the note of a child that completed: for the same steps it stands as their results do. */
export function isCompletedChild({ key, note, output }: StepRecord): boolean {
  const { payload } = (output ?? {}) as { readonly payload?: { readonly status?: unknown } | null };
  return note === true && key.endsWith('.ensemble') && payload?.status === 'completed';
}
