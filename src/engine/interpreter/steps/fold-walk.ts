/** What a round can read of the rounds before it, so that a later run begins with that round. */

import type { Json, JsonObject } from '../../base/json/json.ts';
import { countedBytes } from '../../base/json/measure-json.ts';
import type { NameResult } from '../../compiled/expression-scope.ts';
import type { NameSlot } from '../../compiled/name-slot.ts';
import type { RunScope } from '../run-scope.ts';

/** What the next round can read of the rounds before. */
interface Walk {
  readonly failed: number;
  readonly lastCommitAt: number;
  readonly lastOutput: Json;
  /** The results that differ from those before the first round; null for a name without a result. */
  readonly results: readonly (readonly [string, NameResult | null])[];
}

type Names = ReadonlyMap<string, NameSlot>;

/** Whether nothing before a block is open that its rounds or items could settle: a later run would find it open again. */
export function startsClean(scope: RunScope): boolean {
  for (let level: RunScope | undefined = scope; level; level = level.outer) if (!isClean(level)) return false;
  return true;
}

/** Whether all that the rounds of a level leave is in its results. */
export function isClean({ failures, prompt }: RunScope): boolean {
  return !failures?.length && prompt === undefined;
}

/** @param first - the results before the first round @returns a function that describes the walk as it is now, also later */
export function walkOf(names: Names, first: readonly (NameResult | undefined)[], scope: RunScope): () => JsonObject {
  const { run, lastCommitAt, lastOutput } = scope;
  const { failed } = run;
  const now = scope.results.slice();
  return () => {
    const results: [string, NameResult | null][] = [];
    for (const [name, { slot }] of names) if (now[slot] !== first[slot]) results.push([name, resultOf(now[slot])]);
    const walk: Walk = { failed, lastCommitAt, lastOutput, results };
    return walk as unknown as JsonObject;
  };
}

/** A result may be the whole record of an agent: expressions read no more than this. */
function resultOf(result: NameResult | undefined): NameResult | null {
  if (!result) return null;
  const { status, output, error, executed } = result;
  return { status, output, ...(error && { error }), ...(executed === false && { executed }) };
}

export function restoreWalk(walk: JsonObject, names: Names, scope: RunScope): void {
  const { failed, lastCommitAt, lastOutput, results } = walk as unknown as Walk;
  const { run } = scope;
  run.failed = Math.max(run.failed, failed);
  scope.lastCommitAt = lastCommitAt;
  scope.lastOutput = lastOutput;
  for (const [name, result] of results) {
    const { slot } = names.get(name) as NameSlot;
    scope.put(slot, result ?? undefined, result ? countedBytes(result.output) : 0);
  }
}
