/** Runs a `sleep`: the instant is stored once, and the wait costs nothing. */

import type { CompiledSleepStep } from '../definition/compiled-ensemble.ts';
import { LONGEST_SLEEP_MS, parseDuration } from '../duration.ts';
import { OrchestratorError } from '../errors.ts';
import { EvaluationProblem } from '../expression/evaluation-problem.ts';
import { parseInstant } from '../expression/functions/instant.ts';
import type { Json } from '../json.ts';
import { afterSnapshot, type GuardChain, isLetIn, markLed, NO_NAME, noteOnce, stopsRecall } from './level.ts';
import type { RunScope } from './run-scope.ts';
import { waitUntil } from './wait-until.ts';

export async function runSleep(
  step: CompiledSleepStep,
  scope: RunScope,
  guards: GuardChain | undefined,
): Promise<boolean> {
  if (step.readsState || step.condition?.readsState) await afterSnapshot(scope, () => undefined);
  if (!(await isLetIn(step, scope))) return true;
  markLed(step, guards, scope);
  const key = `${scope.keyPrefix}${step.key}.sleep`;
  if (stopsRecall(key, scope)) return false;
  const noted = await noteOnce(key, () => ({ until: instantOf(step, scope) }), scope, step.slot ?? NO_NAME);
  if (!noted) return true;
  const { until } = noted;
  emitWait(step, until, scope);
  if (!(await waitUntil(until, key, scope))) return false;
  if (until > scope.lastCommitAt) scope.lastCommitAt = until;
  scope.lastOutput = until;
  if (step.slot) scope.put(step.slot.slot, { status: 'completed', output: until }, 0);
  return true;
}

function emitWait({ key }: CompiledSleepStep, until: number, { run, keyPrefix, halt }: RunScope): void {
  // One that is over is walked again by a run that goes on behind it.
  if (halt.recall !== undefined || until <= run.ports.clock.now()) return;
  run.ports.emit?.('step.waiting', { executionId: run.accepted.id, key: keyPrefix + key, until });
}

/** @throws what the expression throws, EXPRESSION_ERROR when it gives neither a duration nor an instant */
function instantOf(step: CompiledSleepStep, scope: RunScope): number {
  const now = scope.run.ports.clock.now();
  const value = step.value(scope.begin(scope.keyPrefix + step.key, 'sleep'));
  const ms = step.isInstant ? distanceTo(value, now) : durationValue(value);
  if (ms !== undefined && ms <= LONGEST_SLEEP_MS) return now + Math.max(0, Math.round(ms));
  const wanted = step.isInstant ? 'an instant (Unix ms or ISO text)' : 'a duration such as `90s`, or milliseconds';
  throw new OrchestratorError(
    'EXPRESSION_ERROR',
    `\`${step.isInstant ? 'until' : 'sleep'}\` at ${scope.keyPrefix}${step.key} needs ${wanted} of at most ten years, and its expression gave ${JSON.stringify(value)}`,
  );
}

/** @returns ms; undefined for what is no instant */
function distanceTo(value: Json, now: number): number | undefined {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined;
  try {
    return parseInstant(value) - now;
  } catch (thrown) {
    if (thrown instanceof EvaluationProblem) return undefined;
    throw thrown;
  }
}

/** @returns ms; undefined for what is no duration */
export function durationValue(value: Json): number | undefined {
  if (typeof value === 'string') return parseDuration(value);
  return typeof value === 'number' && value >= 0 ? value : undefined;
}
