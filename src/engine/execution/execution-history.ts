/** The stored data of one execution as JSON, from which a test replays it. */

import type { ExecutionStatus } from './execution.ts';
import type { ExecutionEnd, NewExecution, StepRecord } from './stored-execution.ts';

/** What is stored of an execution. The inputs of its steps are not stored. */
export interface ExecutionHistory {
  /** The version of this form. */
  readonly format: 1;
  readonly execution: NewExecution;
  readonly status: ExecutionStatus;
  /** Results of agents and decisions, in the order in which they were stored. */
  readonly steps: readonly StepRecord[];
  /** Absent while the execution has not ended. */
  readonly end?: Pick<ExecutionEnd, 'status' | 'output' | 'error' | 'finishedAt'>;
}
