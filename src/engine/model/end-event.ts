/** How a finished execution is told: the event of its end. */

import type { OrchestratorEvent } from './event.ts';
import type { Execution } from './execution.ts';

/** @param execution - a finished one */
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
  switch (status) {
    case 'completed':
      return { event: 'execution.completed', timestamp, data: { id, ensemble, status, output, duration } };
    case 'timed_out':
      return { event: 'execution.timeout', timestamp, data: { id, duration, timeout: deadlineAt - createdAt } };
    case 'cancelled':
      return { event: 'execution.cancelled', timestamp, data: { id, ensemble, duration } };
    default: {
      const failure = { message: error?.message ?? '' };
      return {
        event: 'execution.failed',
        timestamp,
        data: { id, ensemble, status: 'failed', error: failure, duration },
      };
    }
  }
}
