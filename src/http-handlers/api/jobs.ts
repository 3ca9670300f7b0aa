/** `/jobs...`: what cancels, retries or deletes many executions. */

import { agentAlone } from '../../engine/model/name.ts';
import * as z from 'zod/mini';
import { once } from '../../engine/base/once.ts';
import { readShape } from '../../engine/base/read-shape.ts';
import { EXECUTION_STATUSES } from '../../engine/model/execution.ts';
import { hasScope } from '../../engine/model/token.ts';
import { requireScope } from '../authorize.ts';
import { instantField, readInstantField, textField } from '../body-fields.ts';
import type { HttpCall } from '../call.ts';
import { locationOf } from '../location.ts';
import { byId, pageOfList } from '../page-of-list.ts';
import { known, readExecutionId, readId } from '../read-id.ts';
import { readJson } from '../read-json.ts';
import type { Reply } from '../reply.ts';
import { refuseContent } from './refuse-content.ts';

export const jobBody = once(() =>
  z.strictObject({
    action: z.enum(['cancel', 'retry', 'delete'], { error: 'must be `cancel`, `retry` or `delete`' }),
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

/** Replies 202 with the job. */
export async function createJob(call: HttpCall): Promise<Reply> {
  const { parts, principal } = call;
  const { action, filter } = readShape(jobBody(), await readJson(call), 'the body is not valid');
  const refusal = principal && (refuseDeletion(action, principal) ?? refuseAgents(filter.ensemble, principal));
  if (refusal) return refusal;
  const job = await parts.orchestrator.jobs.create({
    action,
    filter: {
      ...filter,
      parentId: readExecutionId(filter.parentId, 'filter.parentId'),
      since: readInstantField(filter.since, 'filter.since'),
      until: readInstantField(filter.until, 'filter.until'),
    },
    ...(principal && { principal }),
  });
  return { status: 202, json: job, headers: locationOf(call, `/jobs/${job.id}`) };
}

type Caller = NonNullable<HttpCall['principal']>;

function refuseDeletion(action: string, principal: Caller): Reply | undefined {
  return action === 'delete' ? requireScope('admin', principal) : undefined;
}

/** A filter that does not name an ensemble also finds agents that ran alone. */
function refuseAgents(ensemble: string | undefined, principal: Caller): Reply | undefined {
  const isEnsemble = ensemble !== undefined && agentAlone(ensemble) === undefined;
  return isEnsemble ? undefined : requireScope('execute:agents', principal);
}

export async function listJobs(call: HttpCall): Promise<Reply> {
  const jobs = await call.parts.orchestrator.jobs.list();
  return pageOfList(call, 'jobs', jobs, { idOf: ({ id }) => id, compare: (a, b) => byId(b, a) });
}

export async function getJob(call: HttpCall): Promise<Reply> {
  const id = readId(call, 'job');
  return { status: 200, json: await known(call.parts.orchestrator.jobs.get(id), 'job') };
}

/** Stops a job. Who may not create it may not stop it. */
export async function stopJob(call: HttpCall): Promise<Reply> {
  const { parts, principal } = call;
  const { jobs } = parts.orchestrator;
  const id = readId(call, 'job');
  await refuseContent(call);
  const { action } = await known(jobs.get(id), 'job');
  const refusal = principal && refuseDeletion(action, principal);
  if (refusal) return refusal;
  const { status, ...job } = await known(jobs.stop(id), 'job');
  // Who may not read executions learns of none.
  const mayRead = !principal || hasScope(principal, 'read:executions');
  return { status: 200, json: mayRead ? { status, ...job } : { id, action, status } };
}
