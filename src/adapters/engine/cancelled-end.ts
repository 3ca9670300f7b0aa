/** How an execution ends that is cancelled before it has begun. */

import type { ExecutionEnd } from '../../engine/model/stored-execution.ts';

export function cancelledEnd(now: number): ExecutionEnd {
  const error = { code: 'EXECUTION_CANCELLED', message: 'the execution was cancelled before it began' };
  return { status: 'cancelled', output: null, error, finishedAt: now, duration: 0, agents: 0 };
}
