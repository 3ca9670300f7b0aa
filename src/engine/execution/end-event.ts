/** The event that reports the end of an execution. */

import type { OrchestratorEvent } from '../events/event.ts';
import type { Execution } from './execution.ts';

/** @param execution - the record of an execution that has ended */
export function endEvent(execution: Execution): OrchestratorEvent {
  const {
    id,
    ensemble,
    status,
    output,
    error,
    duration = 0,
    finishedAt = 0,
    createdAt,
    deadlineAt = finishedAt,
  } = execution;
  const timestamp = new Date(finishedAt).toISOString();
  const about = { executionId: id, ensemble, id };
  switch (status) {
    case 'completed':
      return { event: 'execution.completed', timestamp, data: { ...about, status, output, duration } };
    case 'timed_out':
      return { event: 'execution.timeout', timestamp, data: { ...about, duration, timeout: deadlineAt - createdAt } };
    case 'cancelled':
      return { event: 'execution.cancelled', timestamp, data: { ...about, duration } };
    default: {
      const message = error?.message ?? '';
      const failure = error?.details ? { message, details: error.details } : { message };
      return {
        event: 'execution.failed',
        timestamp,
        data: { ...about, status: 'failed', error: failure, duration },
      };
    }
  }
}
