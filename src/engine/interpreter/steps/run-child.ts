/**
 * Runs an `ensemble` step: starts a child execution, whose end is the result of the step.
 *
 * | what happens first to the child | recorded decision | then |
 * |---|---|---|
 * | it is refused: its input, its depth, or the number of children | the reason | the step fails |
 * | it is started, and detached | the start | the flow continues with `{ executionId }` |
 * | it completes | its end | the flow continues with its output |
 * | it ends in another way | its end | the step fails |
 * | the run, or the block around the step, is stopped | none | the child is cancelled |
 * | the run is suspended, released or lost | none | the child continues; a signal reports its end to the parent |
 */

import { type ErrorCode, OrchestratorError } from '../../base/errors.ts';
import type { Json, JsonObject } from '../../base/json/json.ts';
import { countedBytes } from '../../base/json/measure-json.ts';
import { MAX_SLEEP_MS } from '../../base/time/duration.ts';
import type { CompiledEnsembleStep } from '../../compiled/compiled-ensemble.ts';
import { type ChildEnd, childSignalName, toChildEnd } from '../../execution/child.ts';
import type { StartedChild } from '../../execution/children.port.ts';
import { JournalLostError } from '../../execution/journal.port.ts';
import { OUT_OF_TIME, unlessStopped } from '../cancellation-scope.ts';
import { toFailure } from '../failure.ts';
import { markFailed, recordDecision, stopsReplay } from '../guards.ts';
import { markStep } from '../marks.ts';
import type { RunScope } from '../run-scope.ts';
import { durationValue } from './run-sleep.ts';

/** The recorded decision: how the child ended. */
interface RecordedEnd {
  /** The signal that reports the end of the child. */
  readonly signal: string;
  readonly payload: ChildEnd;
  /** Unix ms. */
  readonly at: number;
}

/** The decision that is recorded before the child is started. */
interface RecordedStart {
  readonly id: string;
  readonly [key: string]: Json;
}

export async function runChild(step: CompiledEnsembleStep, scope: RunScope): Promise<boolean> {
  const key = `${scope.keyPrefix}${step.key}.ensemble`;
  const { journal, ports } = scope.run;
  const known = journal.replayed(key)?.output as RecordedEnd | undefined;
  if (known) return (await isOutOfTime(known, scope)) ? false : concludeChild(known, step, scope);
  const begun = journal.replayed(`${key}.begun`)?.output as Partial<RecordedStart> | undefined;
  const isRepeated = begun !== undefined;
  if (stopsReplay(key, scope)) {
    // The process that stopped the block may have died before it cancelled the child.
    if (begun?.id !== undefined) await stop({ step, scope, key, id: begun.id, isRepeated });
    return false;
  }
  const decideStart = (): RecordedStart => {
    readRequest(step, scope);
    return { id: ports.children.newId(step.ensemble), name: step.slot.name };
  };
  const decided = await recordDecision(`${key}.begun`, decideStart, scope, step.slot, step.continueOnError);
  if (!decided) return true;
  await scope.endReplay();
  const end = await endOf({ step, scope, key, id: decided.id, isRepeated });
  return end && !(await isOutOfTime(end, scope)) ? concludeChild(end, step, scope) : false;
}

/** Whether the child ran out of the time of the run: then the run is out of time too, whichever ends first. */
async function isOutOfTime({ payload, at }: RecordedEnd, scope: RunScope): Promise<boolean> {
  const { run, cancellation } = scope;
  const { deadlineAt } = run.accepted;
  if (payload.status !== 'timed_out' || deadlineAt === undefined || at < deadlineAt || cancellation.replay)
    return false;
  await scope.endReplay();
  run.cancellation.stop('timed_out');
  return cancellation.reason !== undefined;
}

interface Child {
  readonly step: CompiledEnsembleStep;
  readonly scope: RunScope;
  readonly key: string;
  readonly id: string;
  readonly isRepeated: boolean;
}

/** @returns undefined when the run, or the block around the step, was stopped */
async function endOf(child: Child): Promise<RecordedEnd | undefined> {
  const { step, scope, key, id, isRepeated } = child;
  const { run, cancellation } = scope;
  if (cancellation.reason !== undefined) return isRepeated ? stop(child) : undefined;
  const recordEnd = async (payload: ChildEnd) => {
    const at = run.ports.clock.now();
    const end = { signal: childSignalName(id), payload, at };
    return (await run.journal.decide(key, () => end as unknown as Json)) as unknown as RecordedEnd;
  };
  let running: StartedChild;
  try {
    running = await start(child);
  } catch (thrown) {
    if (thrown instanceof JournalLostError) throw thrown;
    const { error } = toFailure(thrown, run.ports.mask);
    return recordEnd({ status: 'failed', output: null, error, refused: true });
  }
  const { ensemble, detached } = step;
  const started = { ensemble, childId: id, ...(detached && { detached }) };
  markStep(step, 'started', scope, started);
  if (detached) return recordEnd({ status: 'completed', output: { executionId: id } });

  const own = await untilStopped(running.finished, scope);
  if (cancellation.reason !== undefined) return stop(child);
  const end = own ? await recordEnd(toChildEnd(own)) : await awaitSignal(child);
  if (!end) return stop(child);
  const { payload } = end;
  const about = { key: scope.keyPrefix + step.key, childEnsemble: ensemble, childId: id };
  run.emit?.('child.ended', { ...about, status: payload.status });
  return end;
}

function start({ step, scope, id, isRepeated }: Child): Promise<StartedChild> {
  const { accepted: parent, ports, span } = scope.run;
  const { ensemble, detached } = step;
  const { input, timeoutMs } = readRequest(step, scope);
  return ports.children.start({
    id,
    ensemble,
    input,
    parent,
    caller: span?.parent,
    key: scope.keyPrefix + step.key,
    detached,
    timeoutMs,
    isRepeated,
  });
}

/** @throws what the expressions throw, EXPRESSION_ERROR when the value of `timeout` is not a duration */
function readRequest(step: CompiledEnsembleStep, scope: RunScope) {
  const place = scope.keyPrefix + step.key;
  const input = step.input(scope.begin(place, 'input'));
  if (!step.timeout) return { input, timeoutMs: undefined };
  const value = step.timeout(scope.begin(place, 'timeout'));
  const ms = durationValue(value);
  // Instants are whole milliseconds.
  if (ms !== undefined && ms > 0 && ms <= MAX_SLEEP_MS) return { input, timeoutMs: Math.ceil(ms) };
  const wanted = 'a duration such as `10m`, or milliseconds, above 0 and of at most ten years';
  const message = `\`timeout\` of the \`ensemble\` at ${place} needs ${wanted}, and its expression gave ${JSON.stringify(value)}`;
  throw new OrchestratorError('EXPRESSION_ERROR', message);
}

/** @returns undefined when the step is stopped first */
function untilStopped<T>(work: Promise<T>, { cancellation }: RunScope): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const forget = cancellation.onStop(() => resolve(undefined));
    work.then(resolve, reject).finally(forget);
  });
}

/** Waits for the signal that reports the child's end, without a timeout: the run may be suspended meanwhile. */
function awaitSignal({ step, scope, key, id }: Child): Promise<RecordedEnd | undefined> {
  const { journal } = scope.run;
  const place = { key: scope.keyPrefix + step.key, kind: 'child', name: step.ensemble, executionId: id } as const;
  const wait = (signal: AbortSignal) =>
    journal.waitForSignal(key, childSignalName(id), Number.POSITIVE_INFINITY, signal, () => {}, place);
  return unlessStopped(scope.cancellation, wait) as Promise<RecordedEnd | undefined>;
}

/**
 * Cancels a child that the flow no longer waits for. A child of a run that is out of time ends by its own deadline. A child of a run
 * that was suspended, released or lost is still needed.
 */
async function stop({ step, scope, id }: Child): Promise<undefined> {
  const { run, cancellation } = scope;
  if (step.detached || cancellation.reason === 'timed_out' || run.exit.reason !== undefined) return;
  try {
    await run.ports.children.cancel(id);
  } catch (err) {
    if (err instanceof JournalLostError) throw err;
    const about = { executionId: id, ensemble: step.ensemble, parentId: run.accepted.id };
    run.ports.logger?.warn({ ...about, err }, 'a child could not be cancelled');
  }
}

/** The details of an end, for the message of the failure. */
function reasonOf(status: string, message: string): string {
  if (status === 'failed') return `: ${message}`;
  // The rest of the message says which timeout it was: the child's own, or the one from its parent.
  return message.startsWith(OUT_OF_TIME) ? message.slice(OUT_OF_TIME.length) : '';
}

const CODES: Readonly<Record<string, ErrorCode>> = {
  failed: 'EXECUTION_FAILED',
  timed_out: 'EXECUTION_TIMEOUT',
  cancelled: 'EXECUTION_CANCELLED',
};
const ENDED: Readonly<Record<string, string>> = {
  failed: 'failed',
  timed_out: 'ran out of time',
  cancelled: 'was cancelled',
};

/** @param signal - the name of the signal that reports the end of the child */
function detailsOf({ payload, signal }: RecordedEnd): JsonObject | undefined {
  const { status, error, refused } = payload;
  if (refused) return error?.details;
  return {
    ...{ executionId: signal.slice(childSignalName('').length), status },
    ...(error && { reason: error.code }),
    ...(error?.agent !== undefined && { agent: error.agent }),
    ...(error?.details && { details: error.details }),
  };
}

function concludeChild(end: RecordedEnd, step: CompiledEnsembleStep, scope: RunScope): true {
  const { payload, at } = end;
  const { status, output, error } = payload;
  if (at > scope.lastCommitAt) scope.lastCommitAt = at;
  if (status === 'completed') {
    scope.lastOutput = output;
    scope.put(step.slot.slot, { status: 'completed', output }, countedBytes(output));
    return true;
  }
  const why = error ? reasonOf(status, error.message) : '';
  const message = `ensemble \`${step.ensemble}\` ${ENDED[status] ?? status}${why}`;
  markFailed(
    new OrchestratorError(CODES[status] ?? 'EXECUTION_FAILED', message, { details: detailsOf(end) ?? {} }),
    scope,
    step.slot,
    step.continueOnError,
  );
  return true;
}
