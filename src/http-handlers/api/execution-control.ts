/** `POST /executions/:id/...`: stops an execution, tries one again, and tells one something. */

import * as z from 'zod';
import { readShape } from '../../engine/read-shape.ts';
import type { Call } from '../call.ts';
import { readId } from '../read-id.ts';
import { readJson } from '../read-json.ts';
import type { Reply } from '../reply.ts';
import { locationOf } from './accepted.ts';
import { known } from './executions.ts';

const emptyBody = z.strictObject({});

/** Answers with the record as it is behind that: a run at work stops at its next step boundary. */
export async function cancelExecution(call: Call): Promise<Reply> {
  const id = readId(call, 'execution');
  await refuseContent(call);
  return { status: 200, json: await known(call.parts.orchestrator.executions.cancel(id)) };
}

/** Answers as an asynchronous start does, with the record of the new execution. */
export async function retryExecution(call: Call): Promise<Reply> {
  const { parts, host, requestId } = call;
  const { executions } = parts.orchestrator;
  const id = readId(call, 'execution');
  await refuseContent(call);
  const run = await known(executions.retry(id));
  // On a Worker only what the host was told of goes on behind the answer.
  host.waitUntil?.(
    run.result().catch((err: unknown) => {
      parts.logger.error({ err, requestId, executionId: run.id }, 'the end of a run was lost');
    }),
  );
  return { status: 202, json: await executions.get(run.id), headers: locationOf(call, run.id) };
}

/** The body is the payload; the same `Idempotency-Key` again changes nothing. Answers with the record as it is then. */
export async function signalExecution(call: Call): Promise<Reply> {
  const { parts, request, params } = call;
  const id = readId(call, 'execution');
  const payload = await readJson(call, null);
  const idempotencyKey = request.header('idempotency-key');
  const options = idempotencyKey === undefined ? {} : { idempotencyKey };
  const { executions } = parts.orchestrator;
  return { status: 200, json: await known(executions.signal(id, params.signal ?? '', payload, options)) };
}

/** Both say everything in their path. */
async function refuseContent(call: Call): Promise<void> {
  readShape(emptyBody, await readJson(call), 'the body does not fit');
}
