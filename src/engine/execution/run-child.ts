/**
 * Runs an `ensemble` step: an execution of its own, whose end is the step's result.
 *
 * | what comes first | noted | then |
 * |---|---|---|
 * | it is refused: its input, its depth, how many there are | why | the step fails |
 * | it is started, and detached | that it was | the flow goes on with `{ executionId }` |
 * | it completes | its end | the flow goes on with its output |
 * | it ends in another way | its end | the step fails |
 * | a stop of the run, or of the block around it | nothing | it is cancelled |
 * | the run is given up here | nothing | it goes on; its end reaches the run by a signal |
 */

import type { CompiledEnsembleStep } from '../definition/compiled-ensemble.ts';
import { LONGEST_SLEEP_MS } from '../duration.ts';
import { type ErrorCode, OrchestratorError } from '../errors.ts';
import { type Json, sizeOfJson } from '../json.ts';
import { type ChildEnd, childSignalName, toChildEnd } from '../model/child.ts';
import type { StartedChild } from '../ports/children.ts';
import { JournalLostError } from '../ports/journal.ts';
import { toFailure } from './failure.ts';
import { OUT_OF_TIME, unlessStopped } from './halt.ts';
import { afterSnapshot, type GuardChain, isLetIn, markLed, noteFailure, noteOnce, stopsRecall } from './level.ts';
import type { RunScope } from './run-scope.ts';
import { durationValue } from './run-sleep.ts';

/** What is noted of a child that is over for the flow. */
interface NotedEnd {
  readonly payload: ChildEnd;
  /** Unix ms. */
  readonly at: number;
}

/** What is noted before a child is started. */
interface NotedStart {
  readonly id: string;
  readonly [key: string]: Json;
}

export async function runChild(
  step: CompiledEnsembleStep,
  scope: RunScope,
  guards: GuardChain | undefined,
): Promise<boolean> {
  const { slot } = step;
  if (step.readsState || step.condition?.readsState) await afterSnapshot(scope, () => undefined);
  if (!(await isLetIn(step, scope, step.continueOnError))) return true;
  markLed(step, guards, scope);
  const key = `${scope.keyPrefix}${step.key}.ensemble`;
  const { journal, ports } = scope.run;
  const known = journal.recalled(key)?.output as NotedEnd | undefined;
  if (known) return (await isOutOfTime(known, scope)) ? false : conclude(known, step, scope);
  const begun = journal.recalled(`${key}.begun`)?.output as Partial<NotedStart> | undefined;
  const isRepeated = begun !== undefined;
  if (stopsRecall(key, scope)) {
    // Whoever stopped the block may have died before the child heard of it.
    if (begun?.id !== undefined) await stop({ step, scope, key, id: begun.id, isRepeated });
    return false;
  }
  const work = (): NotedStart => {
    readRequest(step, scope);
    return { id: ports.children.newId() };
  };
  const noted = await noteOnce(`${key}.begun`, work, scope, slot, step.continueOnError);
  if (!noted) return true;
  await scope.goLive();
  const end = await endOf({ step, scope, key, id: noted.id, isRepeated });
  return end && !(await isOutOfTime(end, scope)) ? conclude(end, step, scope) : false;
}

/** A child whose time was that of the run: what ended the one ends the other, whichever is told first. */
async function isOutOfTime({ payload, at }: NotedEnd, scope: RunScope): Promise<boolean> {
  const { run, halt } = scope;
  const { deadlineAt } = run.accepted;
  if (payload.status !== 'timed_out' || deadlineAt === undefined || at < deadlineAt || halt.recall) return false;
  await scope.goLive();
  run.halt.stop('timed_out');
  return halt.reason !== undefined;
}

interface Child {
  readonly step: CompiledEnsembleStep;
  readonly scope: RunScope;
  readonly key: string;
  readonly id: string;
  readonly isRepeated: boolean;
}

/** @returns undefined when the run, or the block around the step, was stopped */
async function endOf(child: Child): Promise<NotedEnd | undefined> {
  const { step, scope, key, id, isRepeated } = child;
  const { run, halt } = scope;
  if (halt.reason !== undefined) return isRepeated ? stop(child) : undefined;
  const note = async (payload: ChildEnd) => {
    const at = run.ports.clock.now();
    const end = { signal: childSignalName(id), payload, at };
    return (await run.journal.note(key, () => end as unknown as Json)) as unknown as NotedEnd;
  };
  let started: StartedChild;
  try {
    started = await start(child);
  } catch (thrown) {
    if (thrown instanceof JournalLostError) throw thrown;
    const { code, message } = toFailure(thrown, run.ports.mask);
    return note({ status: 'failed', output: null, error: { code, message } });
  }
  const about = { executionId: run.accepted.id, key: scope.keyPrefix + step.key, ensemble: step.ensemble, childId: id };
  if (!isRepeated) run.ports.emit?.('child.started', about);
  if (step.detached) return note({ status: 'completed', output: { executionId: id } });

  const own = await untilStopped(started.finished, scope);
  if (halt.reason !== undefined) return stop(child);
  const end = own ? await note(toChildEnd(own)) : await awaitSignal(child);
  if (!end) return stop(child);
  run.ports.emit?.('child.ended', { ...about, status: end.payload.status });
  return end;
}

function start({ step, scope, id, isRepeated }: Child): Promise<StartedChild> {
  const { accepted: parent, ports } = scope.run;
  const { ensemble, detached } = step;
  const { input, timeoutMs } = readRequest(step, scope);
  return ports.children.start({
    id,
    ensemble,
    input,
    parent,
    key: scope.keyPrefix + step.key,
    detached,
    timeoutMs,
    isRepeated,
  });
}

/** @throws what the expressions throw, EXPRESSION_ERROR when `timeout` gives no duration */
function readRequest(step: CompiledEnsembleStep, scope: RunScope) {
  const place = scope.keyPrefix + step.key;
  const input = step.input(scope.begin(place, 'input'));
  if (!step.timeout) return { input, timeoutMs: undefined };
  const value = step.timeout(scope.begin(place, 'timeout'));
  const ms = durationValue(value);
  // Instants are whole milliseconds.
  if (ms !== undefined && ms > 0 && ms <= LONGEST_SLEEP_MS) return { input, timeoutMs: Math.ceil(ms) };
  const wanted = 'a duration such as `10m`, or milliseconds, above 0 and of at most ten years';
  const message = `\`timeout\` of the \`ensemble\` at ${place} needs ${wanted}, and its expression gave ${JSON.stringify(value)}`;
  throw new OrchestratorError('EXPRESSION_ERROR', message);
}

/** @returns undefined also when the step is stopped first */
function untilStopped<T>(work: Promise<T>, { halt }: RunScope): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const forget = halt.onStop(() => resolve(undefined));
    work.then(resolve, reject).finally(forget);
  });
}

/** Waits until the child's end is told, for however long: the run may be given up meanwhile. */
function awaitSignal({ scope, key, id }: Child): Promise<NotedEnd | undefined> {
  const { journal } = scope.run;
  const wait = (signal: AbortSignal) =>
    journal.waitForSignal(key, childSignalName(id), Number.POSITIVE_INFINITY, signal, () => {});
  return unlessStopped(scope.halt, wait) as Promise<NotedEnd | undefined>;
}

/** Nobody waits for it any more. One whose run ran out of time does so itself; one whose run goes on elsewhere is needed there. */
async function stop({ step, scope, id }: Child): Promise<undefined> {
  const { run, halt } = scope;
  if (step.detached || halt.reason === 'timed_out' || run.givenUp.reason !== undefined) return;
  try {
    await run.ports.children.cancel(id);
  } catch (err) {
    if (err instanceof JournalLostError) throw err;
    run.ports.logger.warn({ err, executionId: id, parentId: run.accepted.id }, 'a child could not be cancelled');
  }
}

/** What is known beyond the status. */
function reasonOf(status: string, message: string): string {
  if (status === 'failed') return `: ${message}`;
  // Whose timeout it was: its own, or the one that its parent gave it.
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

function conclude({ payload, at }: NotedEnd, step: CompiledEnsembleStep, scope: RunScope): true {
  const { status, output, error } = payload;
  if (at > scope.lastCommitAt) scope.lastCommitAt = at;
  if (status === 'completed') {
    scope.lastOutput = output;
    scope.put(step.slot.slot, { status: 'completed', output }, sizeOfJson(output));
    return true;
  }
  const why = error ? reasonOf(status, error.message) : '';
  const message = `ensemble \`${step.ensemble}\` ${ENDED[status] ?? status}${why}`;
  noteFailure(
    new OrchestratorError(CODES[status] ?? 'EXECUTION_FAILED', message),
    scope,
    step.slot,
    step.continueOnError,
  );
  return true;
}
