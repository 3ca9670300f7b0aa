/** Answers 202 for executions that go on behind the answer: where they stand, and where they are found. */

import { type ExecutionStatus, isFinal } from '../../engine/model/execution.ts';
import type { Call } from '../call.ts';
import type { Reply } from '../reply.ts';

/** @param id - of an execution that was accepted: whatever goes wrong from here on, the caller must not try it again */
export async function acceptedReply(call: Call, id: string): Promise<Reply> {
  return { status: 202, json: { executionId: id, status: await progressOf(call, id) }, headers: locationOf(call, id) };
}

/** Where its record is. */
export function locationOf({ parts, request }: Call, id: string): { readonly location: string } {
  return { location: `${request.mount}${parts.basePath}/api/v1/executions/${id}` };
}

/** One that has ended meanwhile was running a moment ago; how it ended is told by its record alone. */
async function progressOf({ parts, requestId }: Call, id: string): Promise<ExecutionStatus> {
  try {
    const { status } = await parts.orchestrator.executions.status(id);
    return isFinal(status) ? 'running' : status;
  } catch (thrown) {
    parts.logger.warn({ err: thrown, requestId, executionId: id }, 'where an accepted execution stands is not known');
    return 'running';
  }
}
