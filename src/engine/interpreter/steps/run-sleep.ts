/** Runs a `sleep`: stores the instant once, then waits until it; a long wait suspends the run. */

import { OrchestratorError } from '../../base/errors.ts';
import type { Json } from '../../base/json/json.ts';
import { MAX_SLEEP_MS, parseDuration } from '../../base/time/duration.ts';
import type { CompiledSleepStep } from '../../compiled/compiled-ensemble.ts';
import { toNote } from '../../ensemble/step-kind.ts';
import { EvaluationProblem } from '../../expression/evaluation-problem.ts';
import { parseInstant } from '../../expression/functions/instant.ts';
import { recordDecision, stopsReplay } from '../guards.ts';
import { emitRecord, markStep } from '../marks.ts';
import type { RunScope } from '../run-scope.ts';
import { waitUntil } from './wait-until.ts';

export async function runSleep(step: CompiledSleepStep, scope: RunScope): Promise<boolean> {
  const key = `${scope.keyPrefix}${step.key}.sleep`;
  if (stopsReplay(key, scope)) return false;
  const isNew = scope.run.journal.replayed(key) === undefined;
  const named: { readonly name?: string } = step.slot ? { name: step.slot.name } : {};
  const decide = () => {
    const at = scope.run.ports.clock.now();
    return { at, until: instantOf(step, at, scope), ...named };
  };
  const decided = await recordDecision(key, decide, scope, step.slot);
  if (!decided) return true;
  const { at, until } = decided;
  if (isNew) emitRecord(toNote(key, { at, output: { until } }), scope.run);
  if (!(await waitUntil(until, key, { key: scope.keyPrefix + step.key, kind: 'sleep' }, scope))) return false;
  // A sleep that had nothing to wait for has no begin either. An older record has no `at`.
  if (until > (at ?? 0)) markStep(step, 'ended', scope);
  if (until > scope.lastCommitAt) scope.lastCommitAt = until;
  scope.lastOutput = until;
  if (step.slot) scope.put(step.slot.slot, { status: 'completed', output: until }, 0);
  return true;
}

/** @throws what the expression throws, EXPRESSION_ERROR when its value is neither a duration nor an instant */
function instantOf(step: CompiledSleepStep, now: number, scope: RunScope): number {
  const value = step.value(scope.begin(scope.keyPrefix + step.key, 'sleep'));
  const ms = step.isInstant ? distanceTo(value, now) : durationValue(value);
  if (ms !== undefined && ms <= MAX_SLEEP_MS) return now + Math.max(0, Math.round(ms));
  const wanted = step.isInstant ? 'an instant (Unix ms or ISO text)' : 'a duration such as `90s`, or milliseconds';
  throw new OrchestratorError(
    'EXPRESSION_ERROR',
    `\`${step.isInstant ? 'until' : 'sleep'}\` at ${scope.keyPrefix}${step.key} needs ${wanted} of at most ten years, and its expression gave ${JSON.stringify(value)}`,
  );
}

/** @returns ms; undefined for a value that is not an instant */
function distanceTo(value: Json, now: number): number | undefined {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined;
  try {
    return parseInstant(value) - now;
  } catch (thrown) {
    if (thrown instanceof EvaluationProblem) return undefined;
    throw thrown;
  }
}

/** @returns ms; undefined for a value that is not a duration */
export function durationValue(value: Json): number | undefined {
  if (typeof value === 'string') return parseDuration(value);
  return typeof value === 'number' && value >= 0 ? value : undefined;
}
