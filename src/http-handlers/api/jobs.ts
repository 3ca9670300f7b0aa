/** `/jobs...`: what changes many executions. */

import * as z from 'zod/mini';
import { hasScope, type Principal } from '../../engine/access/token.ts';
import { once } from '../../engine/base/once.ts';
import { agentAlone } from '../../engine/ensemble/name.ts';
import { EXECUTION_STATUSES, JOB_ACTIONS } from '../../engine/execution/execution.ts';
import { demandScope } from '../access/authorize.ts';
import { byId, pageOfList } from '../reply/page-of-list.ts';
import { LIST_BYTES } from '../reply/response-sizes.ts';
import {
  changeOf,
  instantField,
  moveFields,
  objectField,
  readInstantField,
  textField,
} from '../request/body-fields.ts';
import { readExecutionId } from '../request/read-id.ts';
import { page } from '../request/read-query.ts';
import { call } from './define-call.ts';

const jobBody = once(() =>
  z.strictObject({
    action: z.enum(JOB_ACTIONS, { error: `must be one of ${JOB_ACTIONS.join(', ')}` }),
    ...moveFields(),
    ...{ from: textField(), definition: textField(), input: objectField(), reason: textField() },
    ...{ newKeys: z.optional(z.boolean('must be true or false')), key: textField(), output: z.optional(z.any()) },
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
    summary: 'Cancels, retries, pauses, completes, moves or deletes many executions',
    scope: 'execute:ensembles',
    body: jobBody,
    replies: { 202: 'Job' },
    async run({ orchestrator, principal, body: { filter, reason, ...body }, http }) {
      const { action } = body;
      refuseDeletion(action, principal);
      refuseAgents(filter.ensemble, principal);
      return orchestrator.jobs.create({
        ...body,
        filter: {
          ...filter,
          parentId: readExecutionId(filter.parentId, 'filter.parentId'),
          since: readInstantField(filter.since, 'filter.since'),
          until: readInstantField(filter.until, 'filter.until'),
        },
        ...changeOf(http, { reason }),
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
    async run({ orchestrator: { jobs }, id, principal, http }) {
      const { action } = await jobs.get(id);
      refuseDeletion(action, principal);
      const { status, ...job } = await jobs.stop(id, changeOf(http));
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
