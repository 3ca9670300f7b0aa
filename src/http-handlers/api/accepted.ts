/** The 202 response for executions that continue after the response: their status and location. */

import { type ExecutionStatus, isFinal } from '../../engine/model/execution.ts';
import type { HttpCall } from '../call.ts';
import { locationOf } from '../location.ts';
import type { Reply } from '../reply.ts';

/**
 * Never rejects: the execution was accepted, so no error may make the caller start it again.
 *
 * @param id - of an execution that was accepted
 */
export async function acceptedReply(call: HttpCall, id: string): Promise<Reply> {
  return {
    status: 202,
    json: { executionId: id, status: await statusOf(call, id) },
    headers: locationOf(call, `/executions/${id}`),
  };
}

/** An execution that has ended in the meantime is reported as `running`: only its record says how it ended. */
async function statusOf({ parts, requestId }: HttpCall, id: string): Promise<ExecutionStatus> {
  try {
    const { status } = await parts.orchestrator.executions.status(id);
    return isFinal(status) ? 'running' : status;
  } catch (thrown) {
    parts.logger.warn(
      { err: thrown, requestId, executionId: id },
      'the status of an accepted execution could not be read',
    );
    return 'running';
  }
}
