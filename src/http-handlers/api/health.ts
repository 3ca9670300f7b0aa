/** `GET /health`: whether the service can work, for load balancers. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { withTimeout } from '../../engine/base/time/with-timeout.ts';
import type { HttpCall } from '../call.ts';
import { errorReply } from '../reply/reply.ts';
import { Answer, call } from './define-call.ts';

const TIMEOUT_MS = 5_000;

async function health({ dependencies, requestId }: HttpCall): Promise<Answer<never> | { readonly status: 'ok' }> {
  try {
    const isReady = await withTimeout(
      dependencies.orchestrator.ready().then(() => true),
      TIMEOUT_MS,
      dependencies.setTimer,
    );
    if (isReady) return { status: 'ok' };
    dependencies.logger.warn({ requestId }, 'the storage responds slowly');
  } catch (thrown) {
    dependencies.logger.error({ err: thrown, requestId }, 'the storage does not respond');
  }
  return new Answer<never>(errorReply(new OrchestratorError('OVERLOADED', 'the storage does not respond')));
}

export const healthCalls = [
  call('GET /health', {
    id: 'health',
    summary: 'Whether the service and its storage work',
    scope: 'public',
    replies: { 200: 'Health' },
    run: ({ http }) => health(http),
  }),
] as const;
