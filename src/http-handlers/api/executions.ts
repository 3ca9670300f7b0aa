/** `GET /executions...`: lists executions, and shows one, its agent runs and its events. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { readEventId } from '../../engine/model/cursor.ts';
import { type ExecutionStatus, isFinal } from '../../engine/model/execution.ts';
import { agentAlone, NAME_PATTERN } from '../../engine/model/name.ts';
import type { ListOrder } from '../../engine/ports/storage.ts';
import { isStillAllowed } from '../authenticate.ts';
import type { HttpCall } from '../call.ts';
import { known, readExecutionId, readId } from '../read-id.ts';
import { readCount, readFlag, readInstantParameter, readLimit, readQuery } from '../read-query.ts';
import { EVENT_STREAM, type Reply } from '../reply.ts';
import { eventStream } from './event-stream.ts';

export const EXECUTION_FILTERS = [
  ...(['ensemble', 'status', 'parentId', 'retryOf', 'tag', 'since', 'until', 'search', 'limit', 'cursor'] as const),
  ...(['errorCode', 'unresolved', 'order', 'values'] as const),
] as const;

export async function listExecutions({ parts, request }: HttpCall): Promise<Reply> {
  const {
    ensemble,
    status,
    parentId: parent,
    retryOf: retried,
    tag,
    search,
    errorCode,
    order,
    cursor,
    ...query
  } = readQuery(request.query, EXECUTION_FILTERS);
  if (ensemble !== undefined && !NAME_PATTERN.test(agentAlone(ensemble) ?? ensemble)) {
    throw new OrchestratorError('INVALID_REQUEST', '`ensemble` must be the name of an ensemble');
  }
  const parentId = readExecutionId(parent, 'parentId');
  const retryOf = readExecutionId(retried, 'retryOf');
  const since = readInstantParameter(query.since, 'since');
  const until = readInstantParameter(query.until, 'until');
  // `list()` refuses an unknown status or order, and texts that are no tags.
  const filter = {
    ensemble,
    status: status as ExecutionStatus | undefined,
    parentId,
    retryOf,
    tag,
    since,
    until,
    search,
    errorCode,
    order: order as ListOrder | undefined,
    unresolved: readFlag(query.unresolved, 'unresolved'),
    values: readFlag(query.values, 'values'),
  };
  const page = { ...filter, limit: readLimit(query.limit), cursor };
  return { status: 200, json: await parts.orchestrator.executions.list(page) };
}

/** How many executions have not ended, by status. */
export async function getOpen({ parts }: HttpCall): Promise<Reply> {
  return { status: 200, json: await parts.orchestrator.executions.open() };
}

export async function getExecution(call: HttpCall): Promise<Reply> {
  const id = readId(call, 'execution');
  const { executions } = call.parts.orchestrator;
  return { status: 200, json: await known(isHead(call) ? executions.status(id) : executions.get(id)) };
}

export async function listAgentRuns(call: HttpCall): Promise<Reply> {
  const id = readId(call, 'execution');
  return { status: 200, json: await known(call.parts.orchestrator.executions.agents(id, pageOf(call))) };
}

export async function listSteps(call: HttpCall): Promise<Reply> {
  const id = readId(call, 'execution');
  const query = readQuery(call.request.query, ['limit', 'cursor', 'maxOutput']);
  const maxOutput = readCount(query.maxOutput, 'maxOutput');
  const page = { limit: isHead(call) ? 1 : readLimit(query.limit), cursor: query.cursor, maxOutput };
  return { status: 200, json: await known(call.parts.orchestrator.executions.steps(id, page)) };
}

export async function getStep(call: HttpCall): Promise<Reply> {
  const id = await knownExecution(call);
  return { status: 200, json: await call.parts.orchestrator.executions.step(id, call.params.key ?? '') };
}

export async function getStepInput(call: HttpCall): Promise<Reply> {
  const id = await knownExecution(call);
  return { status: 200, json: await call.parts.orchestrator.executions.stepInput(id, call.params.key ?? '') };
}

/** The agents that are at work. */
export async function getRunning(call: HttpCall): Promise<Reply> {
  const id = readId(call, 'execution');
  return { status: 200, json: await known(call.parts.orchestrator.executions.running(id)) };
}

/** The definition with which the execution began. */
export async function getDefinition(call: HttpCall): Promise<Reply> {
  return { status: 200, json: await call.parts.orchestrator.executions.definition(await knownExecution(call)) };
}

/** The path's `:id`, so that what is missing below it is not mistaken for the execution. @throws NOT_FOUND */
async function knownExecution(call: HttpCall): Promise<string> {
  const id = readId(call, 'execution');
  await known(call.parts.orchestrator.executions.status(id));
  return id;
}

export async function getAgentRun(call: HttpCall): Promise<Reply> {
  const id = await knownExecution(call);
  return { status: 200, json: await call.parts.orchestrator.executions.agent(id, call.params.key ?? '') };
}

/** Server-sent events. `Last-Event-ID`, or `?after`, continues after the event with this id. */
export async function streamEvents(call: HttpCall): Promise<Reply> {
  const { parts, request } = call;
  const id = readId(call, 'execution');
  const query = readQuery(request.query, ['after', 'ticket']);
  const after = request.header('last-event-id') ?? query.after;
  // Checked before the response begins: its status can't change once the stream is open.
  readEventId(after);
  const { status } = await known(parts.orchestrator.executions.status(id));
  // An EventSource reconnects when a stream ends. Status 204 makes it stop.
  if (after !== undefined && isFinal(status) && !(await hasMore(parts, id, after))) return { status: 204 };
  const headers = { 'x-accel-buffering': 'no', 'content-type': EVENT_STREAM };
  if (isHead(call)) return { status: 200, headers };
  const reader = {
    stillAllowed: () => isStillAllowed(call, call),
    release: parts.streams.take(call.principal?.tokenId ?? ''),
  };
  return { status: 200, stream: eventStream(parts, id, after, reader), headers };
}

/** A response to HEAD has no body, so less is read for it. */
function isHead({ request }: HttpCall): boolean {
  return request.method === 'HEAD';
}

function pageOf(call: HttpCall) {
  const { limit, cursor } = readQuery(call.request.query, ['limit', 'cursor']);
  return { limit: isHead(call) ? 1 : readLimit(limit), cursor };
}

/** Whether an execution that has ended has events after this one. */
async function hasMore({ orchestrator }: HttpCall['parts'], id: string, after: string): Promise<boolean> {
  const events = orchestrator.executions.events(id, { after });
  const { done } = await events.next();
  await events.return?.();
  return !done;
}
