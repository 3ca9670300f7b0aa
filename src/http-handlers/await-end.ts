/** Waits for the end of an execution that a request started, up to the limits of the caller and the host. */

import { withTimeout } from '../engine/base/time/with-timeout.ts';
import type { Execution } from '../engine/execution/execution.ts';
import type { ExecutionHandle } from '../orchestrator/runs/handles.ts';
import type { HttpCall } from './call.ts';

/** A caller gets 202 when its execution has nothing to do but wait for longer than this, in ms. */
const MAX_WAIT_MS = 10_000;

/**
 * @param isAsync - the caller does not wait for the end, which may be weeks away
 * @returns undefined if the execution continues after the response. Never rejects
 */
export async function awaitEnd(
  call: HttpCall,
  run: ExecutionHandle,
  isAsync: boolean,
): Promise<Execution<unknown> | undefined> {
  const { dependencies, host } = call;
  const ended = !isAsync || host.waitUntil ? endOf(call, run) : undefined;
  // The execution continues when the caller disconnects. A Worker continues only what was passed to `waitUntil`.
  if (ended) host.waitUntil?.(ended.then(() => deliver(call)));
  return ended && !isAsync ? withTimeout(ended, dependencies.syncTimeoutMs, dependencies.setTimer) : undefined;
}

/** Sends the notifications of the execution. Never rejects: what is not sent now is sent later. */
export async function deliver({ dependencies, requestId }: HttpCall): Promise<void> {
  try {
    await dependencies.deliver?.();
  } catch (thrown) {
    dependencies.logger.warn(
      { err: thrown, requestId },
      'deliveries could not be sent; they are sent later, and none is lost',
    );
  }
}

/** The finished record; undefined when the execution waits for longer than `MAX_WAIT_MS`, or when this process can't see its end. Never rejects. */
async function endOf(
  { dependencies, requestId }: HttpCall,
  run: ExecutionHandle,
): Promise<Execution<unknown> | undefined> {
  try {
    return await run.resultUnlessWaiting(MAX_WAIT_MS);
  } catch (thrown) {
    dependencies.logger.error(
      { err: thrown, requestId, executionId: run.id },
      'the end of an execution could not be read',
    );
    return undefined;
  }
}
