/** `GET /health`: whether the service can work, for load balancers. */

import { OrchestratorError } from '../../engine/errors.ts';
import type { Call } from '../call.ts';
import { errorReply, type Reply } from '../reply.ts';
import { within } from '../within.ts';

const PATIENCE_MS = 5_000;

export async function health({ parts, requestId }: Call): Promise<Reply> {
  try {
    const answered = await within(
      parts.orchestrator.ready().then(() => true),
      PATIENCE_MS,
      parts.setTimer,
    );
    if (answered) return { status: 200, json: { status: 'ok' } };
    parts.logger.warn({ requestId }, 'the storage is slow to answer');
  } catch (thrown) {
    parts.logger.error({ err: thrown, requestId }, 'the storage does not answer');
  }
  return errorReply(new OrchestratorError('OVERLOADED', 'the storage does not answer'));
}
