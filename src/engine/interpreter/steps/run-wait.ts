/**
 * Runs a `wait`: its output is the payload of the first signal of its name that no other wait has taken.
 *
 * | what happens first | recorded decision | then |
 * |---|---|---|
 * | a signal arrives, or arrived before | the signal and its payload | the flow continues with the payload |
 * | its `timeout` ends | that there was no signal | the wait fails with `TIMEOUT`, or the flow continues with null |
 * | the run, or the block around it, is stopped | none | no signal is taken |
 */

import { OrchestratorError } from '../../base/errors.ts';
import type { Json, JsonObject } from '../../base/json/json.ts';
import { countedBytes } from '../../base/json/measure-json.ts';
import { MAX_SLEEP_MS } from '../../base/time/duration.ts';
import type { CompiledWaitStep } from '../../compiled/compiled-ensemble.ts';
import { toNote } from '../../ensemble/step-kind.ts';
import type { TakenSignal } from '../../execution/journal.port.ts';
import { unlessStopped } from '../cancellation-scope.ts';
import { markFailed, recordDecision, stopsReplay } from '../guards.ts';
import { emitRecord, markStep } from '../marks.ts';
import type { RunScope } from '../run-scope.ts';
import { durationValue } from './run-sleep.ts';

/** The recorded decision: how the wait ended. */
type WaitEnd =
  | TakenSignal
  | { readonly signal: null; readonly name: string; readonly at: number; readonly continues?: boolean };

export async function runWait(step: CompiledWaitStep, scope: RunScope): Promise<boolean> {
  const key = `${scope.keyPrefix}${step.key}.wait`;
  const { journal } = scope.run;
  const known = journal.replayed(key)?.output as WaitEnd | undefined;
  if (known) return concludeWait(known, step, scope);
  if (stopsReplay(key, scope)) return false;
  const until = await deadlineOf(step, key, scope);
  if (until === undefined) return true;
  await scope.endReplay();
  const taken = await takeSignal(step, key, until, scope);
  if (scope.cancellation.reason !== undefined) return false;
  if (taken) return concludeNow(taken, step, key, scope);
  // Recorded before anything follows from it: a later signal changes nothing.
  const end = { name: step.signal, at: until };
  const { continues } = step;
  const late = await journal.decide(key, (): JsonObject => ({ signal: null, ...end, continues }), end);
  return concludeNow(late as unknown as WaitEnd, step, key, scope);
}

function concludeNow(end: WaitEnd, step: CompiledWaitStep, key: string, scope: RunScope): boolean {
  emitRecord(toNote(key, { at: end.at, name: step.signal, output: { payload: null, ...end } }), scope.run);
  return concludeWait(end, step, scope);
}

/** @returns Unix ms, infinity without a timeout; undefined when `timeout` can't be evaluated: then the wait has failed */
async function deadlineOf(step: CompiledWaitStep, key: string, scope: RunScope): Promise<number | undefined> {
  const { timeout } = step;
  if (!timeout) return Number.POSITIVE_INFINITY;
  const compute = () => {
    const ms = timeoutMs(timeout(scope.begin(key, 'timeout')), step, scope);
    return { until: scope.run.ports.clock.now() + ms };
  };
  return (await recordDecision(`${key}.until`, compute, scope, step.slot))?.until;
}

/** @throws EXPRESSION_ERROR when the value is not a duration */
function timeoutMs(value: Json, { key }: CompiledWaitStep, { keyPrefix }: RunScope): number {
  const ms = durationValue(value);
  if (ms !== undefined && ms <= MAX_SLEEP_MS) return Math.round(ms);
  throw new OrchestratorError(
    'EXPRESSION_ERROR',
    `\`timeout\` of the \`wait\` at ${keyPrefix}${key} needs a duration such as \`24h\`, or milliseconds, of at most ten years, and its expression gave ${JSON.stringify(value)}`,
  );
}

async function takeSignal(step: CompiledWaitStep, key: string, until: number, scope: RunScope) {
  const { run, cancellation, keyPrefix } = scope;
  if (cancellation.reason !== undefined) return undefined;
  const onWait = () =>
    markStep(step, 'begun', scope, { signal: step.signal, ...(Number.isFinite(until) && { until }) });
  const place = { key: keyPrefix + step.key, kind: 'signal', name: step.signal } as const;
  return unlessStopped(cancellation, (signal) =>
    run.journal.waitForSignal(key, step.signal, until, signal, onWait, place),
  );
}

function concludeWait(end: WaitEnd, step: CompiledWaitStep, scope: RunScope): boolean {
  if (end.at > scope.lastCommitAt) scope.lastCommitAt = end.at;
  if (end.signal === null && !step.continues) {
    const message = `no signal \`${step.signal}\` came in time for the \`wait\` at ${scope.keyPrefix}${step.key}`;
    markFailed(new OrchestratorError('TIMEOUT', message), scope, step.slot);
    return true;
  }
  const output = end.signal === null ? null : end.payload;
  scope.lastOutput = output;
  if (step.slot) scope.put(step.slot.slot, { status: 'completed', output }, countedBytes(output));
  return true;
}
