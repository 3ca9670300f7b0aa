/** The line that the log gets for the end of an execution. */

import { toLoggedError } from '../../engine/interpreter/failure.ts';
import type { Execution } from '../../engine/model/execution.ts';
import type { Logger } from '../../engine/ports/logger.ts';

/** @param worker - the worker that ran it; undefined for an execution that was cancelled before it began */
export function logEnd(logger: Logger, record: Execution, worker: string | undefined): void {
  const { id: executionId, ensemble, status, error, duration, metrics, parentId } = record;
  const about = {
    ...{ executionId, ensemble, worker, parentId, duration, agents: metrics.agents },
    ...(error?.agent !== undefined && { agent: error.agent }),
  };
  if (status === 'completed') logger.info(about, 'execution completed');
  else if (status === 'cancelled') logger.info(about, 'execution cancelled');
  else {
    const failed = { ...about, details: error?.details, err: toLoggedError(error ?? { message: '' }) };
    if (status === 'timed_out') logger.warn(failed, 'execution timed out');
    else logger.warn(failed, 'execution failed');
  }
}
