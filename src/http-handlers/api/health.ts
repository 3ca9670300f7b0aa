/** `GET /health`: whether the service can work, for load balancers. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { HttpCall } from '../call.ts';
import { errorReply, type Reply } from '../reply.ts';
import { withTimeout } from '../../engine/base/with-timeout.ts';

const TIMEOUT_MS = 5_000;

export async function health({ parts, requestId }: HttpCall): Promise<Reply> {
  try {
    const isReady = await withTimeout(
      parts.orchestrator.ready().then(() => true),
      TIMEOUT_MS,
      parts.setTimer,
    );
    if (isReady) return { status: 200, json: { status: 'ok' } };
    parts.logger.warn({ requestId }, 'the storage responds slowly');
  } catch (thrown) {
    parts.logger.error({ err: thrown, requestId }, 'the storage does not respond');
  }
  return errorReply(new OrchestratorError('OVERLOADED', 'the storage does not respond'));
}
