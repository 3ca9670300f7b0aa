/** Calls that change executions: cancel, pause, retry, complete, move, delete, signals, and tickets for events. */

import * as z from 'zod/mini';
import { hasScope, type Principal } from '../../engine/access/token.ts';
import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import { once } from '../../engine/base/once.ts';
import { agentAlone } from '../../engine/ensemble/name.ts';
import { EXECUTION_STATUSES, type Execution, type ExecutionStatus } from '../../engine/execution/execution.ts';
import type { Orchestrator } from '../../orchestrator/create-orchestrator.ts';
import { demandScope } from '../access/authorize.ts';
import { deliver } from '../await-end.ts';
import {
  changeOf,
  instantField,
  moveFields,
  objectField,
  readInstantField,
  textField,
} from '../request/body-fields.ts';
import { readExecutionId } from '../request/read-id.ts';
import { call } from './define-call.ts';

export interface Accepted {
  readonly executionId: string;
  readonly status: ExecutionStatus;
}

const retryBody = once(() =>
  z.strictObject({
    newKeys: z.optional(z.boolean({ error: 'must be true or false' })),
    input: objectField(),
    ...{ from: textField(), definition: textField(), reason: textField() },
  }),
);

const completeBody = once(() =>
  z.strictObject({ key: z.string({ error: 'must be the key of a step' }), output: z.any(), reason: textField() }),
);

const changeBody = once(() => z.strictObject({ reason: textField() }));

const pauseBody = once(() =>
  z
    .strictObject({
      ensemble: textField(),
      all: z.optional(z.literal(true, { error: 'must be true' })),
      reason: textField(),
    })
    .check(
      z.refine(({ ensemble, all }) => (ensemble === undefined) === (all === true), {
        error: 'must be `{ "ensemble": name }` or `{ "all": true }`',
      }),
    ),
);

const moveBody = once(() =>
  z.strictObject({
    ...{ id: textField(), ensemble: textField(), parentId: textField(), tag: textField(), search: textField() },
    status: z.optional(z.enum(EXECUTION_STATUSES, { error: `must be one of ${EXECUTION_STATUSES.join(', ')}` })),
    ...{ since: instantField(), until: instantField(), ...moveFields() },
    dryRun: z.optional(z.boolean({ error: 'must be true or false' })),
    reason: textField(),
  }),
);

export const executionControlCalls = [
  // Only an execution that has ended is deleted.
  call('DELETE /executions/:id', {
    id: 'deleteExecution',
    summary: 'Deletes the record of an execution that has ended',
    scope: 'admin',
    of: 'execution',
    replies: { 200: 'Deleted' },
    run: ({ orchestrator, id, http }) => orchestrator.executions.delete(id, changeOf(http)),
  }),
  // If the caller has an API token, the ticket ends together with this token.
  call('POST /executions/:id/events/ticket', {
    id: 'createEventTicket',
    summary: 'A ticket for the event stream',
    scope: 'read:executions',
    of: 'execution',
    replies: { 201: 'Ticket' },
    run: ({ orchestrator, id, principal: { tokenId: holder } = {} as Partial<Principal> }) =>
      orchestrator.executions.ticket(id, holder === undefined ? {} : { holder }),
  }),
  // Replies with the record after the call. A running execution stops at its next step boundary, so it may still be `running`.
  call('POST /executions/:id/cancel', {
    id: 'cancelExecution',
    summary: 'Cancels an execution',
    scope: 'execute:ensembles',
    of: 'execution',
    body: changeBody,
    replies: { 200: 'ExecutionOrStatus' },
    async run({ orchestrator: { executions }, id, principal, body, http }) {
      await refuseAgent(executions, id, principal);
      return toReadableRecord(principal, await executions.cancel(id, changeOf(http, body)));
    },
  }),
  ...(['pause', 'resume'] as const).map((action) =>
    call(`POST /executions/:id/${action}`, {
      id: `${action}Execution`,
      summary: action === 'pause' ? 'Pauses an execution' : 'Ends the pause of an execution',
      scope: 'execute:ensembles',
      of: 'execution',
      body: changeBody,
      replies: { 200: 'ExecutionOrStatus' },
      async run({ orchestrator: { executions }, id, principal, body, http }) {
        await refuseAgent(executions, id, principal);
        return toReadableRecord(principal, await executions[action](id, changeOf(http, body)));
      },
    }),
  ),
  // Replies 202, as an asynchronous start does, with the record of the newest execution of the chain.
  call('POST /executions/:id/retry', {
    id: 'retryExecution',
    summary: 'Retries the newest execution of a chain',
    scope: 'execute:ensembles',
    of: 'execution',
    body: retryBody,
    replies: { 202: 'ExecutionOrStatus' },
    async run({ orchestrator: { executions }, id, principal, body: { newKeys = false, reason, ...body }, http }) {
      await refuseAgent(executions, id, principal);
      const { dependencies, host, requestId } = http;
      const started = executions.retry(id, { ...body, newKeys, ...changeOf(http, { reason }) });
      const run = await started.catch((thrown) => Promise.reject(withoutSteps(thrown, principal)));
      // After the response, a Worker continues only what was passed to `waitUntil`.
      host.waitUntil?.(
        run
          .result()
          .catch((err: unknown) => {
            dependencies.logger.error(
              { err, requestId, executionId: run.id },
              'the end of an execution could not be read',
            );
          })
          .then(() => deliver(http)),
      );
      return toReadableRecord(principal, await executions.get(run.id));
    },
    location: (record) => `/executions/${'id' in record ? record.id : record.executionId}`,
  }),
  call('POST /executions/:id/complete', {
    id: 'completeStep',
    summary: 'Gives a step its result by hand',
    scope: 'execute:ensembles',
    of: 'execution',
    body: completeBody,
    replies: { 200: 'ExecutionOrStatus' },
    async run({ orchestrator: { executions }, id, principal, body: { key, output, reason }, http }) {
      await refuseAgent(executions, id, principal);
      const completed = executions.complete(id, key, output, changeOf(http, { reason }));
      const record = await completed.catch((thrown) => Promise.reject(withoutSteps(thrown, principal)));
      return toReadableRecord(principal, record);
    },
  }),
  ...(['pause', 'resume'] as const).map((action) =>
    call(`POST /${action}`, {
      id: `${action}All`,
      summary:
        action === 'pause' ? 'Pauses an ensemble, or everything' : 'Ends the pause of an ensemble, or of everything',
      scope: 'execute:ensembles',
      body: pauseBody,
      replies: { 200: 'Changed' },
      run: ({ orchestrator: { executions }, body, http }) =>
        executions[`${action}All`](
          body.ensemble === undefined ? { all: true } : { ensemble: body.ensemble },
          changeOf(http, body),
        ),
    }),
  ),
  call('GET /pauses', {
    id: 'listPauses',
    summary: 'The ensembles that are paused, and everything if it is',
    scope: 'read:executions',
    replies: { 200: 'Pauses' },
    run: async ({ orchestrator: { executions } }) => ({ pauses: await executions.pauses() }),
  }),
  // A difference is a part of the answer.
  call('POST /moves', {
    id: 'moveExecutions',
    summary: 'Gives executions that have not ended another definition of their ensemble',
    scope: 'execute:ensembles',
    body: moveBody,
    replies: { 200: 'Moves' },
    async run({
      orchestrator: { executions },
      principal,
      body: { to = '', since, until, id, parentId, reason, ...filter },
      http,
    }) {
      const moves = await executions.move({
        ...filter,
        to,
        id: readExecutionId(id, 'id'),
        parentId: readExecutionId(parentId, 'parentId'),
        since: readInstantField(since, 'since'),
        until: readInstantField(until, 'until'),
        ...changeOf(http, { reason }),
      });
      // What is refused shows inputs and steps.
      return !principal || hasScope(principal, 'read:executions') ? moves : { ...moves, refusals: [] };
    },
  }),
  // The body is the payload. A second request with the same `Idempotency-Key` changes nothing.
  call('POST /executions/:id/signals/:signal', {
    id: 'signalExecution',
    summary: 'Sends a signal; the body is its payload',
    scope: 'execute:ensembles',
    of: 'execution',
    readsKey: true,
    body: 'json',
    replies: { 200: 'ExecutionOrStatus' },
    async run({ orchestrator: { executions }, id, signal, body, principal, http }) {
      await refuseAgent(executions, id, principal);
      const idempotencyKey = http.request.header('idempotency-key');
      const options = idempotencyKey === undefined ? {} : { idempotencyKey };
      const sent = executions.signal(id, signal, body, options);
      return toReadableRecord(principal, await sent.catch((thrown) => Promise.reject(withoutWaits(thrown, principal))));
    },
  }),
] as const;

// Only a caller that may read definitions or records sees the names of the steps.
function withoutSteps(thrown: unknown, principal: Principal | undefined): unknown {
  if (!isOrchestratorError(thrown) || mayReadSteps(principal)) return thrown;
  const { code } = thrown;
  if (code !== 'INVALID_REQUEST' && code !== 'INVALID_INPUT' && code !== 'CONFLICT') return thrown;
  return new OrchestratorError(
    code,
    'the execution or its steps do not allow it; a token that may read executions sees why',
  );
}

function mayReadSteps(principal: Principal | undefined): boolean {
  return !principal || hasScope(principal, 'read:ensembles') || hasScope(principal, 'read:executions');
}

// And the names of the waits.
function withoutWaits(thrown: unknown, principal: Principal | undefined): unknown {
  if (!isOrchestratorError(thrown, 'INVALID_INPUT') || !thrown.details.waits || mayReadSteps(principal)) return thrown;
  return new OrchestratorError('INVALID_INPUT', 'no `wait` of this execution takes a signal of this name');
}

/** The record of an execution, or only its id and status for a caller that may not read executions. */
function toReadableRecord(principal: Principal | undefined, record: Execution<unknown>): Execution<unknown> | Accepted {
  if (principal && hasScope(principal, 'read:executions')) return record;
  return { executionId: record.id, status: record.status };
}

/** An agent that ran alone is an execution too, but controlling it needs `execute:agents`. @throws NOT_FOUND; FORBIDDEN */
async function refuseAgent(executions: Orchestrator['executions'], id: string, principal?: Principal): Promise<void> {
  if (!principal || hasScope(principal, 'execute:agents')) return;
  const { ensemble } = await executions.status(id);
  if (agentAlone(ensemble) !== undefined) demandScope('execute:agents', principal);
}
