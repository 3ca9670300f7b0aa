/** `/jobs...`: what cancels, retries, moves or deletes many executions. */

import * as z from 'zod/mini';
import { once } from '../../engine/base/once.ts';
import { EXECUTION_STATUSES } from '../../engine/execution/execution.ts';
import { agentAlone } from '../../engine/ensemble/name.ts';
import { hasScope, type Principal } from '../../engine/access/token.ts';
import { demandScope } from '../access/authorize.ts';
import { instantField, moveFields, readInstantField, textField } from '../request/body-fields.ts';
import { byId, pageOfList } from '../reply/page-of-list.ts';
import { readExecutionId } from '../request/read-id.ts';
import { page } from '../request/read-query.ts';
import { LIST_BYTES } from '../reply/response-sizes.ts';
import { call } from './define-call.ts';

const jobBody = once(() =>
  z.strictObject({
    action: z.enum(['cancel', 'retry', 'move', 'delete'], { error: 'must be `cancel`, `retry`, `move` or `delete`' }),
    ...moveFields(),
    filter: z.strictObject(
      {
        ...{ ensemble: textField(), parentId: textField(), tag: textField(), search: textField() },
        ...{ errorCode: textField(), unresolved: z.optional(z.boolean('must be true or false')) },
        status: z.optional(z.enum(EXECUTION_STATUSES, { error: `must be one of ${EXECUTION_STATUSES.join(', ')}` })),
        ...{ since: instantField(), until: instantField() },
      },
      { error: 'must be an object with the filters of GET /api/v1/executions' },
    ),
  }),
);

export const jobCalls = [
  call('GET /jobs', {
    id: 'listJobs',
    summary: 'Lists jobs, newest first',
    scope: 'read:executions',
    query: page,
    maxBytes: LIST_BYTES,
    replies: { 200: 'Jobs' },
    run: async (given) =>
      pageOfList(given, 'jobs', await given.orchestrator.jobs.list(), {
        idOf: ({ id }) => id,
        compare: (a, b) => byId(b, a),
      }),
  }),
  call('POST /jobs', {
    id: 'createJob',
    summary: 'Cancels, retries, moves or deletes many executions',
    scope: 'execute:ensembles',
    body: jobBody,
    replies: { 202: 'Job' },
    async run({ orchestrator, principal, body: { action, filter, to, map } }) {
      refuseDeletion(action, principal);
      refuseAgents(filter.ensemble, principal);
      return orchestrator.jobs.create({
        ...{ action, to, map },
        filter: {
          ...filter,
          parentId: readExecutionId(filter.parentId, 'filter.parentId'),
          since: readInstantField(filter.since, 'filter.since'),
          until: readInstantField(filter.until, 'filter.until'),
        },
        ...(principal && { principal }),
      });
    },
    location: ({ id }) => `/jobs/${id}`,
  }),
  call('GET /jobs/:id', {
    id: 'getJob',
    summary: 'A job with its progress',
    scope: 'read:executions',
    of: 'job',
    replies: { 200: 'Job' },
    run: ({ orchestrator, id }) => orchestrator.jobs.get(id),
  }),
  // Who may not create a job may not stop it.
  call('POST /jobs/:id/stop', {
    id: 'stopJob',
    summary: 'Stops a job',
    scope: 'execute:ensembles',
    of: 'job',
    replies: { 200: 'StoppedJob' },
    async run({ orchestrator: { jobs }, id, principal }) {
      const { action } = await jobs.get(id);
      refuseDeletion(action, principal);
      const { status, ...job } = await jobs.stop(id);
      // Who may not read executions learns of none.
      const mayRead = !principal || hasScope(principal, 'read:executions');
      return mayRead ? { status, ...job } : { id, action, status };
    },
  }),
] as const;

function refuseDeletion(action: string, principal: Principal | undefined): void {
  if (action === 'delete') demandScope('admin', principal);
}

/** A filter that does not name an ensemble also finds agents that ran alone. */
function refuseAgents(ensemble: string | undefined, principal: Principal | undefined): void {
  const isEnsemble = ensemble !== undefined && agentAlone(ensemble) === undefined;
  if (!isEnsemble) demandScope('execute:agents', principal);
}
