/** `POST /executions/:id/...`: stops an execution, tries one again, and tells one something. */

import * as z from 'zod';
import type { Execution } from '../../engine/model/execution.ts';
import { hasScope } from '../../engine/model/token.ts';
import { readShape } from '../../engine/read-shape.ts';
import { refuseWithout } from '../admit-route.ts';
import type { Call } from '../call.ts';
import { readId } from '../read-id.ts';
import { readJson } from '../read-json.ts';
import type { Reply } from '../reply.ts';
import { locationOf } from './accepted.ts';
import { known } from './executions.ts';

const emptyBody = z.strictObject({});

/** Tells how the execution stands after that: a run at work stops at its next step boundary. */
export async function cancelExecution(call: Call): Promise<Reply> {
  const id = readId(call, 'execution');
  const refusal = await refuseAgent(call, id);
  if (refusal) return refusal;
  await refuseContent(call);
  return { status: 200, json: shown(call, await known(call.parts.orchestrator.executions.cancel(id))) };
}

/** Answers as an asynchronous start does. */
export async function retryExecution(call: Call): Promise<Reply> {
  const { parts, host, requestId } = call;
  const { executions } = parts.orchestrator;
  const id = readId(call, 'execution');
  const refusal = await refuseAgent(call, id);
  if (refusal) return refusal;
  await refuseContent(call);
  const run = await known(executions.retry(id));
  // On a Worker only what the host was told of goes on behind the answer.
  host.waitUntil?.(
    run.result().catch((err: unknown) => {
      parts.logger.error({ err, requestId, executionId: run.id }, 'the end of a run was lost');
    }),
  );
  return { status: 202, json: shown(call, await executions.get(run.id)), headers: locationOf(call, run.id) };
}

/** The body is the payload; the same `Idempotency-Key` again changes nothing. Tells how the execution stands then. */
export async function signalExecution(call: Call): Promise<Reply> {
  const { parts, request, params } = call;
  const id = readId(call, 'execution');
  const refusal = await refuseAgent(call, id);
  if (refusal) return refusal;
  const payload = await readJson(call, null);
  const idempotencyKey = request.header('idempotency-key');
  const options = idempotencyKey === undefined ? {} : { idempotencyKey };
  const { executions } = parts.orchestrator;
  return { status: 200, json: shown(call, await known(executions.signal(id, params.signal ?? '', payload, options))) };
}

/** The record of an execution, or where it stands alone for who may not read executions. */
function shown({ principal }: Call, record: Execution<unknown>): object {
  if (principal && hasScope(principal, 'read:executions')) return record;
  return { executionId: record.id, status: record.status };
}

/** An agent that ran alone is an execution too: it is controlled by who may run agents. @throws NOT_FOUND */
async function refuseAgent({ parts, principal }: Call, id: string): Promise<Reply | undefined> {
  const refusal = principal && refuseWithout('execute:agents', principal);
  if (!refusal) return undefined;
  const { ensemble } = await known(parts.orchestrator.executions.get(id));
  return ensemble.startsWith('agent:') ? refusal : undefined;
}

/** Both say everything in their path. */
async function refuseContent(call: Call): Promise<void> {
  readShape(emptyBody, await readJson(call), 'the body does not fit');
}
