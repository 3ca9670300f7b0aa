/** Child executions: their limits, the signal that reports their end to the parent, and the decision that records this end. */

import type { Json } from '../base/json/json.ts';
import type { Execution, ExecutionError, FinalStatus } from './execution.ts';
import { withoutStack } from './execution-error.ts';
import type { ExecutionEnd, NewExecution, NewSignal, StepRecord } from './stored-execution.ts';

/** The longest allowed chain of parents above an execution. */
export const MAX_DEPTH = 16;
/** The largest number of descendants, at all depths together, of an execution that has no parent. */
export const MAX_DESCENDANTS = 1000;

/** The end of a child execution, as its parent stores it. */
export interface ChildEnd {
  readonly status: FinalStatus;
  readonly output: Json;
  readonly error?: ExecutionError;
  /** It was not started. */
  readonly refused?: true;
}

/** The name of the signal that reports the end of a child to its parent. Callers can't send a signal of this name. */
export function childSignalName(childId: string): string {
  return `child:${childId}`;
}

export function isChildSignalName(name: string): boolean {
  return name.startsWith('child:');
}

/** @param ended - an end, or the record of an execution that has ended */
export function toChildEnd({ status, output, error }: Pick<Execution, 'status' | 'output' | 'error'>): ChildEnd {
  const end = { status: status as FinalStatus, output: status === 'completed' ? output : null };
  return error ? { ...end, error: withoutStack(error) } : end;
}

/** The signals that are stored together with an end. @returns undefined if no parent waits for the execution */
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

/** Whether a record is the decision of an `ensemble` step whose child completed. A retry of the same flow keeps it like a result. */
export function isCompletedChild({ key, note, output }: StepRecord): boolean {
  const { payload } = (output ?? {}) as { readonly payload?: { readonly status?: unknown } | null };
  return note === true && key.endsWith('.ensemble') && payload?.status === 'completed';
}
