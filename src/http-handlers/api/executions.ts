/** `GET /executions...`: what ran and how it went. */

import { isOrchestratorError, OrchestratorError } from '../../engine/errors.ts';
import type { ExecutionStatus } from '../../engine/model/execution.ts';
import { NAME_PATTERN } from '../../engine/model/name.ts';
import type { Call } from '../call.ts';
import { noSuch, readExecutionId, readId } from '../read-id.ts';
import { readLimit, readQuery } from '../read-query.ts';
import type { Reply } from '../reply.ts';
import { eventStream } from './event-stream.ts';

const STATUSES: Readonly<Record<ExecutionStatus, true>> = {
  queued: true,
  running: true,
  waiting: true,
  completed: true,
  failed: true,
  timed_out: true,
  cancelled: true,
};

export async function listExecutions({ parts, request }: Call): Promise<Reply> {
  const keys = ['ensemble', 'status', 'parentId', 'limit', 'cursor'] as const;
  const { ensemble, status, parentId: parent, limit, cursor } = readQuery(request.query, keys);
  if (ensemble !== undefined && !NAME_PATTERN.test(ensemble)) {
    throw new OrchestratorError('INVALID_REQUEST', '`ensemble` must be the name of an ensemble');
  }
  const parentId = readExecutionId(parent, 'parentId');
  const page = { ensemble, status: readStatus(status), parentId, limit: readLimit(limit), cursor };
  return { status: 200, json: await parts.orchestrator.executions.list(page) };
}

export async function getExecution(call: Call): Promise<Reply> {
  const id = readId(call, 'execution');
  return { status: 200, json: await known(call.parts.orchestrator.executions.get(id)) };
}

export async function listAgentRuns(call: Call): Promise<Reply> {
  const id = readId(call, 'execution');
  const { limit, cursor } = readQuery(call.request.query, ['limit', 'cursor']);
  const page = { limit: readLimit(limit), cursor };
  return { status: 200, json: await known(call.parts.orchestrator.executions.agents(id, page)) };
}

/** Server-sent events; `Last-Event-ID`, or `?after`, takes up behind an event. */
export async function streamEvents(call: Call): Promise<Reply> {
  const { parts, request } = call;
  const id = readId(call, 'execution');
  const query = readQuery(request.query, ['after']);
  const after = request.header('last-event-id') ?? query.after;
  if (after !== undefined && !/^\d{1,9}$/.test(after)) {
    throw new OrchestratorError('INVALID_REQUEST', 'an event id is a whole number, as the stream gave it');
  }
  // An answer's status can't be taken back once the stream is open.
  await known(parts.orchestrator.executions.get(id));
  return { status: 200, stream: eventStream(parts, id, after), headers: { 'x-accel-buffering': 'no' } };
}

function readStatus(status: string | undefined): ExecutionStatus | undefined {
  if (status === undefined || isStatus(status)) return status;
  throw new OrchestratorError('INVALID_REQUEST', `\`status\` must be one of ${Object.keys(STATUSES).join(', ')}`);
}

function isStatus(text: string): text is ExecutionStatus {
  return Object.hasOwn(STATUSES, text);
}

/** @throws NOT_FOUND in the words that every unknown id is told in */
export async function known<T>(found: Promise<T>): Promise<T> {
  try {
    return await found;
  } catch (thrown) {
    throw isOrchestratorError(thrown, 'NOT_FOUND') ? noSuch('execution') : thrown;
  }
}
