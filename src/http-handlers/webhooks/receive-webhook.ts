/** One request of an inbound webhook: checks its sender, reads its body, and starts its ensemble. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import type { Execution } from '../../engine/execution/execution.ts';
import type { PlainRequest } from '../../engine/host/host.port.ts';
import type { ServedWebhook, WebhookRequest } from '../../orchestrator/webhooks/webhooks.ts';
import { countWebhookRequest, refuseExcess, setLimitHeaders } from '../access/rate-limit.ts';
import { awaitEnd } from '../await-end.ts';
import type { HttpCall } from '../call.ts';
import { errorReply, type Reply } from '../reply/reply.ts';
import { STATUS } from '../reply/status.ts';
import { readCallChain } from '../request/read-call-chain.ts';
import { fieldsOf, type Payload, payloadReader } from './read-payload.ts';

/** Headers that may hold a credential: no execution reads them. */
const HIDDEN: readonly string[] = ['authorization', 'proxy-authorization', 'cookie'];

export async function receiveWebhook(call: HttpCall, webhook: ServedWebhook): Promise<Reply> {
  if (!webhook.isPublic) return receive(call, webhook);
  const limit = await countWebhookRequest(call, 'public');
  const reply = refuseExcess(limit) ?? (await receive(call, webhook));
  const headers = { ...reply.headers };
  setLimitHeaders(headers, limit, call.dependencies.orchestrator.limits.standardHeaders);
  return { ...reply, headers };
}

async function receive(call: HttpCall, webhook: ServedWebhook): Promise<Reply> {
  const { dependencies, requestId } = call;
  const request = toWebhookRequest(call, webhook);
  const payload = payloadReader(call, webhook);
  const sender = await webhook.check(request, payload.bytes);
  if ('problem' in sender) {
    dependencies.logger.info({ requestId, path: call.request.path, problem: sender.problem }, 'a webhook was refused');
    const refusal = errorReply(
      new OrchestratorError('UNAUTHORIZED', sender.problem),
      webhook.challenge === undefined ? {} : { 'www-authenticate': webhook.challenge },
    );
    // The right secret is accepted all the same: behind a proxy, many senders may have one address.
    return refuseExcess(await countWebhookRequest(call, 'refused')) ?? refusal;
  }
  const { input, body, rawBody } = await readInput(call.request, payload.read);
  const { identity } = sender;
  const chain = readCallChain(call.request);
  const run = await webhook.receive({ ...request, input, body: () => body, rawBody: () => rawBody, identity, chain });
  call.held.release();
  if ('signal' in run)
    return { status: 200, json: { received: true, executionId: run.executionId, signal: run.signal } };
  const finished = await awaitEnd(call, run, webhook.isAsync);
  if (finished) return finishedReply(finished);
  return { status: 202, json: { received: true, queued: true, executionId: run.id } };
}

/** The input is the body as it is, or the query of a request that has no body by its method. */
async function readInput(
  request: PlainRequest,
  read: () => Promise<Payload>,
): Promise<Payload & { readonly input: Json }> {
  if (request.method === 'GET' || request.method === 'HEAD')
    return { input: fieldsOf(request.query), body: null, rawBody: '' };
  const payload = await read();
  return { ...payload, input: payload.rawBody === '' ? {} : payload.body };
}

function toWebhookRequest({ dependencies, request }: HttpCall, webhook: ServedWebhook): WebhookRequest {
  const host = request.header('host') ?? '';
  const target = `${request.mount}${request.path}${request.query === '' ? '' : `?${request.query}`}`;
  return {
    method: request.method,
    header: (name) => request.header(name),
    urls: () => [`https://${host}${target}`, `http://${host}${target}`],
    brand: dependencies.orchestrator.brand,
    query: () => fieldsOf(request.query),
    headers: () => readHeaders(request, [...HIDDEN, dependencies.apiKeyHeader, ...webhook.credentialHeaders]),
  };
}

function readHeaders(request: PlainRequest, hidden: readonly string[]): JsonObject {
  const headers = [...request.withoutBody().headers].filter(([name]) => !hidden.includes(name));
  return Object.fromEntries(headers);
}

function finishedReply({ id: executionId, status, output, metrics }: Execution<unknown>): Reply {
  if (status === 'completed') {
    const { totalDuration, agents } = metrics;
    return { status: 200, json: { received: true, executionId, status, output, metrics: { totalDuration, agents } } };
  }
  // The sender may be anyone. Why it failed is in the record of the execution.
  return { status: ENDS[status] ?? 500, json: { error: `execution ${executionId} ${ENDED[status] ?? 'failed'}` } };
}

const ENDS: Readonly<Record<string, number>> = {
  timed_out: STATUS.EXECUTION_TIMEOUT,
  cancelled: STATUS.EXECUTION_CANCELLED,
};
const ENDED: Readonly<Record<string, string>> = { timed_out: 'timed out', cancelled: 'was cancelled' };
