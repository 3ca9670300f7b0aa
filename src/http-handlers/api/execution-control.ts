/** Routes of one execution: cancels an execution, retries one, deletes one, sends one a signal, and creates a ticket for its events. */

import { agentAlone } from '../../engine/model/name.ts';
import * as z from 'zod/mini';
import type { Execution } from '../../engine/model/execution.ts';
import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import { hasScope } from '../../engine/model/token.ts';
import { once } from '../../engine/base/once.ts';
import { readShape } from '../../engine/base/read-shape.ts';
import { requireScope } from '../authorize.ts';
import { objectField } from '../body-fields.ts';
import type { HttpCall } from '../call.ts';
import { known, readId } from '../read-id.ts';
import { readJson } from '../read-json.ts';
import { locationOf } from '../location.ts';
import type { Reply } from '../reply.ts';
import { deliver } from '../await-end.ts';
import { refuseContent } from './refuse-content.ts';

/** Replies with the record after the call. A running execution stops at its next step boundary, so it may still be `running`. */
export async function cancelExecution(call: HttpCall): Promise<Reply> {
  const id = readId(call, 'execution');
  const refusal = await refuseAgent(call, id);
  if (refusal) return refusal;
  await refuseContent(call);
  return { status: 200, json: shown(call, await known(call.parts.orchestrator.executions.cancel(id))) };
}

/** Only an execution that has ended is deleted. */
export async function deleteExecution(call: HttpCall): Promise<Reply> {
  const id = readId(call, 'execution');
  return { status: 200, json: await known(call.parts.orchestrator.executions.delete(id)) };
}

/** The body of a retry. */
export const retryBody = once(() =>
  z.strictObject({
    newKeys: z.optional(z.boolean({ error: 'must be true or false' })),
    input: objectField(),
  }),
);

/** Replies 202, as an asynchronous start does, with the record of the newest execution of the chain. */
export async function retryExecution(call: HttpCall): Promise<Reply> {
  const { parts, host, requestId } = call;
  const { executions } = parts.orchestrator;
  const id = readId(call, 'execution');
  const refusal = await refuseAgent(call, id);
  if (refusal) return refusal;
  const { principal } = call;
  const { newKeys = false, input } = readShape(retryBody(), await readJson(call), 'the body is not valid');
  const options = { newKeys, ...(input && { input }), ...(principal && { principal }) };
  const run = await known(executions.retry(id, options));
  // After the response, a Worker continues only what was passed to `waitUntil`.
  host.waitUntil?.(
    run
      .result()
      .catch((err: unknown) => {
        parts.logger.error({ err, requestId, executionId: run.id }, 'the end of an execution could not be read');
      })
      .then(() => deliver(call)),
  );
  return {
    status: 202,
    json: shown(call, await executions.get(run.id)),
    headers: locationOf(call, `/executions/${run.id}`),
  };
}

/** Replies 201 with a ticket for the event stream. If the caller has an API token, the ticket ends together with this token. */
export async function createTicket(call: HttpCall): Promise<Reply> {
  const id = readId(call, 'execution');
  await refuseContent(call);
  const { tokenId: holder } = call.principal ?? {};
  const options = holder === undefined ? {} : { holder };
  return { status: 201, json: await known(call.parts.orchestrator.executions.ticket(id, options)) };
}

/** The body is the payload. A second request with the same `Idempotency-Key` changes nothing. Replies with the record after the call. */
export async function signalExecution(call: HttpCall): Promise<Reply> {
  const { parts, request, params } = call;
  const id = readId(call, 'execution');
  const refusal = await refuseAgent(call, id);
  if (refusal) return refusal;
  const payload = await readJson(call, null);
  const idempotencyKey = request.header('idempotency-key');
  const options = idempotencyKey === undefined ? {} : { idempotencyKey };
  const { executions } = parts.orchestrator;
  const sent = known(executions.signal(id, params.signal ?? '', payload, options));
  return { status: 200, json: shown(call, await sent.catch((thrown) => Promise.reject(withoutWaits(thrown, call)))) };
}

// Only a caller that may read definitions or records sees the names of the waits.
function withoutWaits(thrown: unknown, { principal }: HttpCall): unknown {
  if (!isOrchestratorError(thrown, 'INVALID_INPUT') || !thrown.details.waits || !principal) return thrown;
  if (hasScope(principal, 'read:ensembles') || hasScope(principal, 'read:executions')) return thrown;
  return new OrchestratorError('INVALID_INPUT', 'no `wait` of this execution takes a signal of this name');
}

/** The record of an execution, or only its id and status for a caller that may not read executions. */
function shown({ principal }: HttpCall, record: Execution<unknown>): object {
  if (principal && hasScope(principal, 'read:executions')) return record;
  return { executionId: record.id, status: record.status };
}

/** An agent that ran alone is an execution too, but controlling it needs `execute:agents`. @throws NOT_FOUND */
async function refuseAgent({ parts, principal }: HttpCall, id: string): Promise<Reply | undefined> {
  const refusal = principal && requireScope('execute:agents', principal);
  if (!refusal) return undefined;
  const { ensemble } = await known(parts.orchestrator.executions.status(id));
  return agentAlone(ensemble) === undefined ? undefined : refusal;
}
