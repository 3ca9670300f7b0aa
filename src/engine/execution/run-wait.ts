/**
 * Runs a `wait`: the first signal of its name that no wait has taken yet is its output.
 *
 * | what comes first | noted | then |
 * |---|---|---|
 * | a signal; one that came before counts too | the signal and its payload | the flow goes on with the payload |
 * | the end of its `timeout` | that none came | the wait fails with `TIMEOUT`, or the flow goes on with null |
 * | a stop of the run, or of the block around it | nothing | no signal is taken |
 */

import type { CompiledWaitStep } from '../definition/compiled-ensemble.ts';
import { LONGEST_SLEEP_MS } from '../duration.ts';
import { OrchestratorError } from '../errors.ts';
import { type Json, type JsonObject, sizeOfJson } from '../json.ts';
import type { TakenSignal } from '../ports/journal.ts';
import { unlessStopped } from './halt.ts';
import {
  afterSnapshot,
  type GuardChain,
  isLetIn,
  markLed,
  NO_NAME,
  noteFailure,
  noteOnce,
  stopsRecall,
} from './level.ts';
import type { RunScope } from './run-scope.ts';
import { durationValue } from './run-sleep.ts';

/** How a wait ended: what is noted of it. */
type WaitEnd = TakenSignal | { readonly signal: null; readonly name: string; readonly at: number };

export async function runWait(
  step: CompiledWaitStep,
  scope: RunScope,
  guards: GuardChain | undefined,
): Promise<boolean> {
  if (step.readsState || step.condition?.readsState) await afterSnapshot(scope, () => undefined);
  if (!(await isLetIn(step, scope))) return true;
  markLed(step, guards, scope);
  const key = `${scope.keyPrefix}${step.key}.wait`;
  const { journal } = scope.run;
  const known = journal.recalled(key)?.output as WaitEnd | undefined;
  if (known) return conclude(known, step, scope);
  if (stopsRecall(key, scope)) return false;
  const until = await deadlineOf(step, key, scope);
  if (until === undefined) return true;
  await scope.goLive();
  const taken = await takeSignal(step, key, until, scope);
  if (scope.halt.reason !== undefined) return false;
  if (taken) return conclude(taken, step, scope);
  // Known before anything follows from it: a signal that comes late changes nothing any more.
  const end = { name: step.signal, at: until };
  const late = await journal.note(key, (): JsonObject => ({ signal: null, ...end }), end);
  return conclude(late as unknown as WaitEnd, step, scope);
}

/** @returns Unix ms, infinity where it has no end; undefined when that can't be worked out: then it has failed */
async function deadlineOf(step: CompiledWaitStep, key: string, scope: RunScope): Promise<number | undefined> {
  const { timeout } = step;
  if (!timeout) return Number.POSITIVE_INFINITY;
  const work = () => {
    const ms = timeoutMs(timeout(scope.begin(key, 'timeout')), step, scope);
    return { until: scope.run.ports.clock.now() + ms };
  };
  return (await noteOnce(`${key}.until`, work, scope, step.slot ?? NO_NAME))?.until;
}

/** @throws EXPRESSION_ERROR when the value is no duration */
function timeoutMs(value: Json, { key }: CompiledWaitStep, { keyPrefix }: RunScope): number {
  const ms = durationValue(value);
  if (ms !== undefined && ms <= LONGEST_SLEEP_MS) return Math.round(ms);
  throw new OrchestratorError(
    'EXPRESSION_ERROR',
    `\`timeout\` of the \`wait\` at ${keyPrefix}${key} needs a duration such as \`24h\`, or milliseconds, of at most ten years, and its expression gave ${JSON.stringify(value)}`,
  );
}

async function takeSignal(step: CompiledWaitStep, key: string, until: number, scope: RunScope) {
  const { run, halt, keyPrefix } = scope;
  if (halt.reason !== undefined) return undefined;
  const onWait = () => {
    const about = { executionId: run.accepted.id, key: keyPrefix + step.key, signal: step.signal };
    run.ports.emit?.('step.waiting', Number.isFinite(until) ? { ...about, until } : about);
  };
  return unlessStopped(halt, (signal) => run.journal.waitForSignal(key, step.signal, until, signal, onWait));
}

function conclude(end: WaitEnd, step: CompiledWaitStep, scope: RunScope): boolean {
  if (end.at > scope.lastCommitAt) scope.lastCommitAt = end.at;
  if (end.signal === null && !step.continues) {
    const message = `no signal \`${step.signal}\` came in time for the \`wait\` at ${scope.keyPrefix}${step.key}`;
    noteFailure(new OrchestratorError('TIMEOUT', message), scope, step.slot ?? NO_NAME);
    return true;
  }
  const output = end.signal === null ? null : end.payload;
  scope.lastOutput = output;
  if (step.slot) scope.put(step.slot.slot, { status: 'completed', output }, sizeOfJson(output));
  return true;
}
