/** The line that the log gets for the end of an execution. */

import type { Execution } from '../../engine/execution/execution.ts';
import { type Logger, NO_LINE } from '../../engine/host/logger.port.ts';
import type { LoggedTrace } from '../../engine/host/telemetry.port.ts';
import { toLoggedError } from '../../engine/interpreter/failure.ts';

/** @param worker - the worker that ran it; undefined for an execution that was cancelled before it began */
export function logEnd(logger: Logger, record: Execution, worker: string | undefined): void {
  const { id: executionId, ensemble, status, error, duration, metrics, parentId, trigger } = record;
  // A dry run that fails is not a failure of the app.
  const level = record.dryRun || status === 'completed' || status === 'cancelled' ? 'info' : 'warn';
  if (logger[level] === NO_LINE) return;
  const about = {
    ...{ executionId, ensemble, worker, parentId, duration, agents: metrics.agents },
    ...(error?.agent !== undefined && { agent: error.agent }),

    ...(trigger.traceparent !== undefined && idsOf(trigger.traceparent)),
  };
  const failure = level === 'warn' && { details: error?.details, err: toLoggedError(error ?? { message: '' }) };
  const ended = { ...about, ...failure };
  if (record.dryRun) logger.info({ ...ended, status }, 'dry run ended');
  else if (status === 'completed') logger.info(ended, 'execution completed');
  else if (status === 'cancelled') logger.info(ended, 'execution cancelled');
  else if (status === 'timed_out') logger.warn(ended, 'execution timed out');
  else logger.warn(ended, 'execution failed');
}

/** The run has ended: the line has the span of the start. */
function idsOf(traceparent: string): LoggedTrace {
  const [, trace_id = '', span_id = ''] = traceparent.split('-');
  return { trace_id, span_id };
}
