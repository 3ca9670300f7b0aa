/** `POST /execute/...`: runs an ensemble or an agent, and waits for it as long as the caller and the host like to. */

import * as z from 'zod';
import { isOrchestratorError, OrchestratorError } from '../../engine/errors.ts';
import type { Execution } from '../../engine/model/execution.ts';
import { hasScope } from '../../engine/model/token.ts';
import { readShape } from '../../engine/read-shape.ts';
import type { ExecuteOptions, ExecutionHandle } from '../../runner.ts';
import type { Call } from '../call.ts';
import { readName } from '../read-id.ts';
import { readJson } from '../read-json.ts';
import { errorReply, type Reply } from '../reply.ts';
import { within } from '../within.ts';
import { acceptedReply } from './accepted.ts';

const executeBody = z.strictObject({
  // Not z.record(): that one copies, and leaves `__proto__` out without a word; what is wrong with a value is said at the start of the run.
  input: z.custom<object>(isObject, { error: 'must be an object' }).optional(),
  async: z.boolean().optional(),
});

/** A caller is not kept while a run waits for longer than this, ms. */
const LONGEST_WAIT_MS = 10_000;
// Nobody hears a run's events through its handle here: the stream of events reads what is stored.
const FROM_HTTP: ExecuteOptions = { trigger: 'http', events: false };

function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// What nearly every request is; the schema has its say on the others.
function isInputAlone(json: unknown): json is { readonly input: object; readonly async?: undefined } {
  if (!isObject(json) || !isObject(json.input)) return false;
  for (const key in json) if (key !== 'input') return false;
  return true;
}

export function executeEnsemble(call: Call): Promise<Reply> {
  const name = readName(call, 'ensemble');
  return execute(call, 'ensemble', (input) => call.parts.orchestrator.start(name, input, FROM_HTTP));
}

export function executeAgent(call: Call): Promise<Reply> {
  const name = readName(call, 'agent');
  return execute(call, 'agent', (input) => call.parts.orchestrator.startAgent(name, input, FROM_HTTP));
}

type Start = (input: unknown) => Promise<ExecutionHandle>;

async function execute(call: Call, what: 'ensemble' | 'agent', start: Start): Promise<Reply> {
  const { parts, host } = call;
  const { run, isAsync, prefersAsync } = await accept(call, what, start);
  call.held.release();
  // Nobody asks for the end of a run that nobody waits for: it may be weeks away.
  const ended = !isAsync || host.waitUntil ? endOf(call, run) : undefined;
  // The caller may go away at any moment: the run goes on, and on a Worker only what the host was told of does.
  if (ended) host.waitUntil?.(ended);
  if (ended && !isAsync) {
    const finished = await within(ended, parts.syncTimeoutMs, parts.setTimer);
    if (finished) return finishedReply(finished);
  }
  const reply = await acceptedReply(call, run.id);
  return prefersAsync ? { ...reply, headers: { ...reply.headers, 'preference-applied': 'respond-async' } } : reply;
}

// Apart from what waits for the end: body and input are not kept for as long as a run takes.
async function accept(call: Call, what: 'ensemble' | 'agent', start: Start) {
  const json = await readJson(call);
  const body = isInputAlone(json) ? json : readShape(executeBody, json, 'the body does not fit');
  const prefersAsync = isAsyncPreferred(call.request.header('prefer'));
  let run: ExecutionHandle;
  try {
    run = await start(body.input ?? {});
  } catch (thrown) {
    throw withoutNearName(thrown, call, what);
  }
  return { run, isAsync: prefersAsync || body.async === true, prefersAsync };
}

// The nearest name is told to those alone who may list the names.
function withoutNearName(thrown: unknown, { principal }: Call, what: 'ensemble' | 'agent'): unknown {
  if (!isOrchestratorError(thrown, 'NOT_FOUND') || (principal && hasScope(principal, `read:${what}s`))) return thrown;
  return new OrchestratorError('NOT_FOUND', `there is no ${what} of this name`);
}

/** The finished record; undefined when it is far off, or this process does not learn of it. The execution was accepted, and goes on without it. */
async function endOf({ parts, requestId }: Call, run: ExecutionHandle): Promise<Execution<unknown> | undefined> {
  try {
    return await run.resultUnlessWaiting(LONGEST_WAIT_MS);
  } catch (thrown) {
    parts.logger.error({ err: thrown, requestId, executionId: run.id }, 'the end of a run was lost');
    return undefined;
  }
}

function isAsyncPreferred(prefer: string | undefined): boolean {
  if (prefer === undefined) return false;
  return prefer.split(',').some((part) => part.split(';', 1)[0]?.trim().toLowerCase() === 'respond-async');
}

function finishedReply(execution: Execution<unknown>): Reply {
  const { id: executionId, status, output, metrics, duration } = execution;
  switch (status) {
    case 'failed':
      return failed('EXECUTION_FAILED', execution.error?.message ?? 'the run failed', execution);
    case 'timed_out':
      return failed(
        'EXECUTION_TIMEOUT',
        `the run did not end in time, and was stopped after ${duration} ms`,
        execution,
      );
    case 'cancelled':
      return failed('EXECUTION_CANCELLED', 'the run was cancelled', execution);
    default:
      return { status: 200, json: { executionId, status, output, metrics, duration } };
  }
}

function failed(
  code: 'EXECUTION_FAILED' | 'EXECUTION_TIMEOUT' | 'EXECUTION_CANCELLED',
  message: string,
  { id, status, error, metrics, duration }: Execution<unknown>,
): Reply {
  const cause = error && { reason: error.code, ...(error.agent !== undefined && { agent: error.agent }) };
  return errorReply(
    new OrchestratorError(code, message, { details: { executionId: id, status, ...cause, metrics, duration } }),
  );
}
