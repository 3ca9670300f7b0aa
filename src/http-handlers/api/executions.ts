/** `GET /executions...`: lists executions, and shows one, its agent runs and its events. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { agentAlone, NAME_PATTERN } from '../../engine/ensemble/name.ts';
import { STATS_BUCKETS } from '../../engine/events/tallies/stats.ts';
import { EXECUTION_STATUSES, isFinal } from '../../engine/execution/execution.ts';
import { readEventId } from '../../engine/storage/cursor.ts';
import { isStillAllowed } from '../access/authenticate.ts';
import type { HttpCall } from '../call.ts';
import { EVENT_STREAM } from '../reply/reply.ts';
import { LIST_BYTES, PAGE_BYTES, VALUE_BYTES } from '../reply/response-sizes.ts';
import { asUnknown } from '../request/read-id.ts';
import { count, executionId, flag, instant, page, text, word } from '../request/read-query.ts';
import { Answer, call, type Given, type Queries } from './define-call.ts';
import { eventStream } from './event-stream.ts';

const one = { scope: 'read:executions', of: 'execution', maxBytes: VALUE_BYTES } as const;
/** What is missing below an execution is not mistaken for the execution, so that one is found first. */
const part = { ...one, findsItself: true } as const;

export const executionCalls = [
  call('GET /executions', {
    id: 'listExecutions',
    summary: 'Lists executions',
    scope: 'read:executions',
    query: {
      ensemble: text,
      status: word(EXECUTION_STATUSES),
      parentId: executionId,
      retryOf: executionId,
      tag: text,
      since: instant,
      until: instant,
      search: text,
      ...page,
      errorCode: text,
      unresolved: flag,
      order: word(['newest', 'oldest'] as const, { default: 'newest' }),
      values: { ...flag, schema: { ...flag.schema, default: true, description: 'false: without inputs and outputs' } },
    },
    maxBytes: LIST_BYTES,
    replies: { 200: 'Executions' },
    // `list()` refuses an unknown status or order, and texts that are no tags.
    run({ orchestrator, query }) {
      const { ensemble } = query;
      if (ensemble !== undefined && !NAME_PATTERN.test(agentAlone(ensemble) ?? ensemble))
        throw new OrchestratorError('INVALID_REQUEST', '`ensemble` must be the name of an ensemble');
      return orchestrator.executions.list(query);
    },
  }),
  call('GET /open', {
    id: 'getOpen',
    summary: 'How many executions are queued, running and waiting',
    scope: 'read:executions',
    replies: { 200: 'OpenCounts' },
    run: ({ orchestrator }) => orchestrator.executions.open(),
  }),
  call('GET /stats', {
    id: 'getStats',
    summary: 'How many executions ended, how, why, and how long they took',
    scope: 'read:executions',
    query: { since: instant, until: instant, bucket: word(STATS_BUCKETS), ensemble: text },
    maxBytes: LIST_BYTES,
    replies: { 200: 'Stats' },
    run: ({ orchestrator, query }) => orchestrator.executions.stats(query),
  }),
  call('GET /executions/:id', {
    ...{ id: 'getExecution', summary: 'The record of an execution', ...one, replies: { 200: 'Execution' } },
    run: ({ orchestrator: { executions }, id, http }) =>
      isHead(http) ? (executions.status(id) as never) : executions.get(id),
  }),
  call('GET /executions/:id/agents', {
    ...{ id: 'listAgentRuns', summary: 'Lists the agent runs of an execution', ...one, maxBytes: PAGE_BYTES },
    query: page,
    replies: { 200: 'AgentResults' },
    run: ({ orchestrator, id, query, http }) => orchestrator.executions.agents(id, forHead(query, http)),
  }),
  call('GET /executions/:id/agents/:key', {
    ...{ id: 'getAgentRun', summary: 'An agent run with its output', ...part, replies: { 200: 'AgentResult' } },
    run: async (given) => (await executionsWith(given)).agent(given.id, given.key),
  }),
  call('GET /executions/:id/steps', {
    ...{ id: 'listSteps', summary: 'Lists the steps of an execution, of every kind', ...one, maxBytes: PAGE_BYTES },
    query: { ...page, maxOutput: count },
    replies: { 200: 'Steps' },
    run: ({ orchestrator, id, query, http }) => orchestrator.executions.steps(id, forHead(query, http)),
  }),
  call('GET /executions/:id/steps/:key', {
    ...{ id: 'getStep', summary: 'A step with its output', ...part, replies: { 200: 'Step' } },
    run: async (given) => (await executionsWith(given)).step(given.id, given.key),
  }),
  call('GET /executions/:id/steps/:key/input', {
    ...{ id: 'getStepInput', summary: 'What an agent got as its input', ...part, replies: { 200: 'StepInput' } },
    run: async (given) => (await executionsWith(given)).stepInput(given.id, given.key),
  }),
  call('GET /executions/:id/running', {
    ...{ id: 'getRunning', summary: 'The agents that are at work', ...one, maxBytes: undefined },
    replies: { 200: 'RunningSteps' },
    run: ({ orchestrator, id }) => orchestrator.executions.running(id),
  }),
  // Like every response, it is masked.
  call('GET /executions/:id/history', {
    ...{ id: 'getHistory', summary: 'All that is stored of an execution, with its secrets masked', ...part },
    replies: { 200: 'History' },
    run: async (given) => (await executionsWith(given)).history(given.id),
  }),
  call('GET /executions/:id/definition', {
    ...{ id: 'getExecutedDefinition', summary: 'The definition with which an execution began', ...part },
    scope: 'read:ensembles',
    replies: { 200: 'ExecutedDefinition' },
    run: async (given) => (await executionsWith(given)).definition(given.id),
  }),
  // `Last-Event-ID`, or `?after`, continues after the event with this id.
  call('GET /executions/:id/events', {
    ...{ id: 'streamEvents', summary: 'The events of an execution, as server-sent events', of: 'execution' },
    scope: 'read:executions',
    takesTicket: true,
    query: { after: text, ticket: text },
    sends: ['Last-Event-ID'],
    replies: { 200: undefined, 204: undefined },
    async run({ orchestrator, id, query, http }) {
      const { dependencies, request } = http;
      const after = request.header('last-event-id') ?? query.after;
      // Checked before the response begins: its status can't change once the stream is open.
      readEventId(after);
      const { status } = await orchestrator.executions.status(id);
      // An EventSource reconnects when a stream ends. Status 204 makes it stop.
      if (after !== undefined && isFinal(status) && !(await hasMore(dependencies, id, after)))
        return new Answer({ status: 204 });
      const headers = { 'x-accel-buffering': 'no', 'content-type': EVENT_STREAM };
      if (isHead(http)) return new Answer({ status: 200, headers });
      const reader = {
        stillAllowed: () => isStillAllowed(http, http),
        release: dependencies.streams.take(http.principal?.tokenId ?? ''),
      };
      return new Answer({ status: 200, stream: eventStream(dependencies, id, after, reader), headers });
    },
  }),
] as const;

/** @throws NOT_FOUND when there is no such execution, before anything below it is read */
async function executionsWith({
  orchestrator: { executions },
  id,
}: Pick<Given<'/:id', Queries, undefined>, 'orchestrator' | 'id'>) {
  try {
    await executions.status(id);
    return executions;
  } catch (thrown) {
    throw asUnknown(thrown, 'execution');
  }
}

/** A response to HEAD has no body, so less is read for it. */
function isHead({ request }: HttpCall): boolean {
  return request.method === 'HEAD';
}

function forHead<Q extends object>(query: Q, http: HttpCall): Q {
  return isHead(http) ? { ...query, limit: 1 } : query;
}

/** Whether an execution that has ended has events after this one. */
async function hasMore({ orchestrator }: HttpCall['dependencies'], id: string, after: string): Promise<boolean> {
  const events = orchestrator.executions.events(id, { after });
  const { done } = await events.next();
  await events.return?.();
  return !done;
}
