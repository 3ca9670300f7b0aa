/** `GET /executions...`: what ran and how it went. */

import { isOrchestratorError, OrchestratorError } from '../../engine/errors.ts';
import { readEventId } from '../../engine/model/cursor.ts';
import { type ExecutionStatus, isFinal } from '../../engine/model/execution.ts';
import { NAME_PATTERN } from '../../engine/model/name.ts';
import { isStillAllowed } from '../authenticate.ts';
import type { Call } from '../call.ts';
import { noSuch, readExecutionId, readId } from '../read-id.ts';
import { readLimit, readQuery } from '../read-query.ts';
import { EVENT_STREAM, type Reply } from '../reply.ts';
import { eventStream } from './event-stream.ts';

/** Agents that run alone are executions too, of `agent:` and their name. */
const ENSEMBLE_FORM = /^(?:agent:)?(.*)$/s;

export async function listExecutions({ parts, request }: Call): Promise<Reply> {
  const keys = ['ensemble', 'status', 'parentId', 'limit', 'cursor'] as const;
  const { ensemble, status, parentId: parent, limit, cursor } = readQuery(request.query, keys);
  if (ensemble !== undefined && !NAME_PATTERN.test(ENSEMBLE_FORM.exec(ensemble)?.[1] ?? '')) {
    throw new OrchestratorError('INVALID_REQUEST', '`ensemble` must be the name of an ensemble');
  }
  const parentId = readExecutionId(parent, 'parentId');
  // Whether there is such a status is said by the listing itself.
  const page = { ensemble, status: status as ExecutionStatus | undefined, parentId, limit: readLimit(limit), cursor };
  return { status: 200, json: await parts.orchestrator.executions.list(page) };
}

export async function getExecution(call: Call): Promise<Reply> {
  const id = readId(call, 'execution');
  const { executions } = call.parts.orchestrator;
  return { status: 200, json: await known(isHead(call) ? executions.status(id) : executions.get(id)) };
}

export async function listAgentRuns(call: Call): Promise<Reply> {
  const id = readId(call, 'execution');
  const { limit, cursor } = readQuery(call.request.query, ['limit', 'cursor']);
  const page = { limit: isHead(call) ? 1 : readLimit(limit), cursor };
  return { status: 200, json: await known(call.parts.orchestrator.executions.agents(id, page)) };
}

export async function getAgentRun(call: Call): Promise<Reply> {
  const id = readId(call, 'execution');
  const { executions } = call.parts.orchestrator;
  await known(executions.status(id));
  return { status: 200, json: await executions.agent(id, call.params.key ?? '') };
}

/** Server-sent events; `Last-Event-ID`, or `?after`, takes up behind an event. */
export async function streamEvents(call: Call): Promise<Reply> {
  const { parts, request } = call;
  const id = readId(call, 'execution');
  const query = readQuery(request.query, ['after']);
  const after = request.header('last-event-id') ?? query.after;
  // An answer's status can't be taken back once the stream is open.
  readEventId(after);
  const { status } = await known(parts.orchestrator.executions.status(id));
  // Readers take a stream up again when it ends, until they are told that nothing comes any more (the event source's 204).
  if (after !== undefined && isFinal(status) && !(await hasMore(parts, id, after))) return { status: 204 };
  const headers = { 'x-accel-buffering': 'no', 'content-type': EVENT_STREAM };
  if (isHead(call)) return { status: 200, headers };
  const reader = {
    stillAllowed: () => isStillAllowed(request, parts.orchestrator, 'read:executions'),
    release: parts.streams.take(call.principal?.tokenId ?? ''),
  };
  return { status: 200, stream: eventStream(parts, id, after, reader), headers };
}

/** Whose answer has no body: none is made. */
function isHead({ request }: Call): boolean {
  return request.method === 'HEAD';
}

/** Of an execution that has ended. */
async function hasMore({ orchestrator }: Call['parts'], id: string, after: string): Promise<boolean> {
  const events = orchestrator.executions.events(id, { after });
  const { done } = await events.next();
  await events.return?.();
  return !done;
}

/** @throws NOT_FOUND in the words that every unknown id is told in */
export async function known<T>(found: Promise<T>): Promise<T> {
  try {
    return await found;
  } catch (thrown) {
    throw isOrchestratorError(thrown, 'NOT_FOUND') ? noSuch('execution') : thrown;
  }
}
