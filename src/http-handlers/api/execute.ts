/** `POST /execute/...`: starts an ensemble or an agent, and waits for its end up to the limits of the caller and the host. */

import * as z from 'zod/mini';
import { hasScope } from '../../engine/access/token.ts';
import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import { once } from '../../engine/base/once.ts';
import { readShape } from '../../engine/base/read-shape.ts';
import { type Execution, type ExecutionStatus, isFinal } from '../../engine/execution/execution.ts';
import { areTags, isOwnId, START_RULES } from '../../engine/execution/start-once.ts';
import type { ExecutionHandle } from '../../orchestrator/runs/handles.ts';
import type { ExecuteOptions } from '../../orchestrator/runs/starts/execute-options.ts';
import { demandScope } from '../access/authorize.ts';
import { awaitEnd } from '../await-end.ts';
import type { HttpCall } from '../call.ts';
import { locationOf } from '../reply/location.ts';
import { errorReply, type Reply } from '../reply/reply.ts';
import { objectField, withBodyNotes } from '../request/body-fields.ts';
import { readCallChain } from '../request/read-call-chain.ts';
import { isObject, readJson } from '../request/read-json.ts';
import { executionId, flag } from '../request/read-query.ts';
import { readIdempotencyKey } from '../run-once.ts';
import { Answer, call, type QueryOf } from './define-call.ts';
import type { Accepted } from './execution-control.ts';

const TAGS = { type: 'array', items: { type: 'string', maxLength: 128 }, maxItems: 16 };

/** The body of a start. */
const executeBody = once(() =>
  z.strictObject({
    // The values are checked when the execution starts.
    input: objectField(),
    async: z.optional(z.boolean()),
    id: z.optional(
      withBodyNotes(z.custom<string>(isOwnId, { error: START_RULES.id }), { type: 'string', maxLength: 128 }),
    ),
    tags: z.optional(withBodyNotes(z.custom<readonly string[]>(areTags, { error: START_RULES.tags }), TAGS)),
  }),
);

// The handle's events have no reader here: the route of the event stream reads the stored ones.
const FROM_HTTP: ExecuteOptions = { trigger: 'http', events: false };

interface ExecuteBody {
  readonly input?: object | undefined;
  readonly async?: boolean | undefined;
  readonly id?: string | undefined;
  readonly tags?: readonly string[] | undefined;
}

// Nearly every body has this form. The schema checks all others.
function isInputAlone(json: unknown): json is { readonly input: object } {
  if (!isObject(json) || !isObject(json.input)) return false;
  for (const key in json) if (key !== 'input') return false;
  return true;
}

/** `body: 'own'`: the bodies of most starts are not checked by the form. */
const start = { body: 'own', bodyShown: executeBody, readsKey: true, sends: ['Prefer'] } as const;
const replies = { 200: 'ExecutionResult', 202: 'Accepted' } as const;
const query = {
  dryRun: flag,
  like: executionId,
  runScripts: flag,
};

export const executeCalls = [
  call('POST /execute/ensemble/:name', {
    id: 'executeEnsemble',
    summary: 'Starts an ensemble, and waits for its end unless it is asynchronous',
    scope: 'execute:ensembles',
    ...{ of: 'ensemble', ...start, replies, headers: ['Location'] },
    query,
    run: async ({ orchestrator, name, http, query }) =>
      new Answer<Started>(
        await execute(http, 'ensemble', query, (input, options) => orchestrator.start(name, input, options)),
      ),
  }),
  call('POST /execute/agent/:name', {
    id: 'executeAgent',
    summary: 'Starts a shared agent, and waits for its end unless it is asynchronous',
    scope: 'execute:agents',
    ...{ of: 'agent', ...start, replies, headers: ['Location'] },
    query,
    run: async ({ orchestrator, name, http, query }) =>
      new Answer<Started>(
        await execute(http, 'agent', query, (input, options) => orchestrator.startAgent(name, input, options)),
      ),
  }),
] as const;

type Started =
  | Accepted
  | (Pick<Execution<unknown>, 'status' | 'output' | 'metrics' | 'duration' | 'dryRun' | 'plan' | 'error'> & Accepted);

type Start = (input: unknown, options: ExecuteOptions) => Promise<ExecutionHandle>;

type Asked = QueryOf<typeof query>;

async function execute(call: HttpCall, what: 'ensemble' | 'agent', asked: Asked, start: Start): Promise<Reply> {
  const dryRun = dryRunOf(asked, call);
  const { run, isAsync, prefersAsync } = await accept(call, what, start, dryRun);
  call.held.release();
  if (dryRun) return planReply(await run.result(), call);
  const finished = await awaitEnd(call, run, isAsync);
  if (finished) return finishedReply(finished, call);
  const reply = await acceptedReply(call, run.id);
  return prefersAsync ? { ...reply, headers: { ...reply.headers, 'preference-applied': 'respond-async' } } : reply;
}

// A separate function, so that the body and the input can be freed while `execute` waits for the end.
async function accept(call: HttpCall, what: 'ensemble' | 'agent', start: Start, dryRun: ExecuteOptions['dryRun']) {
  const json = await readJson(call);
  const body: ExecuteBody = isInputAlone(json) ? json : readShape(executeBody(), json, 'the body is not valid');
  const prefersAsync = isAsyncPreferred(call.request.header('prefer'));
  const isAsync = prefersAsync || body.async === true;
  const options = optionsOf(call, body, dryRun);
  let run: ExecutionHandle;
  try {
    // Only an asynchronous caller waits for a slot.
    const input = body.input ?? (dryRun ? undefined : {});
    run = await start(input, isAsync ? options : { ...options, overLimit: 'refuse' });
  } catch (thrown) {
    throw withoutNearName(thrown, call, what);
  }
  return { run, isAsync, prefersAsync };
}

/** @throws INVALID_REQUEST for an option of a dry run without `dryRun`; FORBIDDEN for `like` without the scope to read executions */
function dryRunOf({ dryRun, like, runScripts }: Asked, { principal }: HttpCall): ExecuteOptions['dryRun'] {
  if (!dryRun) {
    if (like === undefined && runScripts === undefined) return undefined;
    throw new OrchestratorError('INVALID_REQUEST', '`like` and `runScripts` are for a dry run: add `dryRun=true`');
  }
  if (like !== undefined) demandScope('read:executions', principal);
  return { like, runScripts };
}

/** A dry run that fails is a plan, and not a failed request. */
function planReply(execution: Execution<unknown>, { principal }: HttpCall): Reply {
  const { id: executionId, status, output = null, metrics, duration, plan, error } = execution;
  const dryRun = true;
  // The plan shows the configs of agents.
  const isShown = !principal || hasScope(principal, 'read:executions');
  const json = {
    executionId,
    status,
    dryRun,
    output,
    metrics,
    duration,
    ...(isShown && { plan }),
    ...(error && { error }),
  };
  return { status: 200, json };
}

/** The key of a caller is in the scope of its token, so that no caller finds the executions of another one by a key. */
function optionsOf(
  { request, principal }: HttpCall,
  { id, tags }: ExecuteBody,
  dryRun: ExecuteOptions['dryRun'],
): ExecuteOptions {
  const idempotencyKey = readIdempotencyKey(request);
  const chain = readCallChain(request);
  if (dryRun) {
    if (id !== undefined || idempotencyKey !== undefined)
      throw new OrchestratorError(
        'INVALID_REQUEST',
        'a dry run takes no `id` and no `Idempotency-Key`: the real start under it would find the dry run',
      );
    const dry = { ...FROM_HTTP, dryRun, ...readCallChain(request), ...(tags !== undefined && { tags }) };
    return principal ? { ...dry, principal } : dry;
  }
  const from: ExecuteOptions = principal ? { ...FROM_HTTP, principal } : FROM_HTTP;
  if (idempotencyKey === undefined && id === undefined && tags === undefined && chain === undefined) return from;
  return {
    ...from,
    ...(idempotencyKey !== undefined && { idempotencyKey, idempotencyScope: principal?.tokenId ?? 'http' }),
    ...chain,
    ...(id !== undefined && { id }),
    ...(tags !== undefined && { tags }),
  };
}

// Only a caller that may list the names sees the nearest one.
function withoutNearName(thrown: unknown, { principal }: HttpCall, what: 'ensemble' | 'agent'): unknown {
  if (!isOrchestratorError(thrown, 'NOT_FOUND') || (principal && hasScope(principal, `read:${what}s`))) return thrown;
  return new OrchestratorError('NOT_FOUND', `there is no ${what} with this name`);
}

function isAsyncPreferred(prefer: string | undefined): boolean {
  if (prefer === undefined) return false;
  return prefer.split(',').some((part) => part.split(';', 1)[0]?.trim().toLowerCase() === 'respond-async');
}

function finishedReply(execution: Execution<unknown>, call: HttpCall): Reply {
  const { id: executionId, status, output, metrics, duration } = execution;
  switch (status) {
    case 'failed':
      return failedExecution('EXECUTION_FAILED', execution.error?.message ?? 'the execution failed', execution, call);
    case 'timed_out':
      return failedExecution(
        'EXECUTION_TIMEOUT',
        `the execution exceeded its timeout and was stopped after ${duration} ms`,
        execution,
        call,
      );
    case 'cancelled':
      return failedExecution('EXECUTION_CANCELLED', 'the execution was cancelled', execution, call);
    default:
      return { status: 200, json: { executionId, status, output, metrics, duration } };
  }
}

function failedExecution(
  code: 'EXECUTION_FAILED' | 'EXECUTION_TIMEOUT' | 'EXECUTION_CANCELLED',
  message: string,
  { id, status, error, metrics, duration }: Execution<unknown>,
  { principal }: HttpCall,
): Reply {
  const cause = error && { reason: error.code, ...(error.agent !== undefined && { agent: error.agent }) };
  const isShown = error?.details !== undefined && principal !== undefined && hasScope(principal, 'read:executions');
  const details = { executionId: id, status, ...cause, ...(isShown && { details: error.details }), metrics, duration };
  return errorReply(new OrchestratorError(code, message, { details }));
}

/**
 * Never rejects: the execution was accepted, so no error may make the caller start it again.
 *
 * @param id - of an execution that was accepted
 */
async function acceptedReply(call: HttpCall, id: string): Promise<Reply> {
  return {
    status: 202,
    json: { executionId: id, status: await statusOf(call, id) },
    headers: locationOf(call, `/executions/${id}`),
  };
}

/** An execution that has ended in the meantime is reported as `running`: only its record says how it ended. */
async function statusOf({ dependencies, requestId }: HttpCall, id: string): Promise<ExecutionStatus> {
  try {
    const { status } = await dependencies.orchestrator.executions.status(id);
    return isFinal(status) ? 'running' : status;
  } catch (thrown) {
    dependencies.logger.warn(
      { err: thrown, requestId, executionId: id },
      'the status of an accepted execution could not be read',
    );
    return 'running';
  }
}
