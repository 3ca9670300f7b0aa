/** Whether the steps that an execution has come to are the same in another definition, where their records alone do not say it. */

import { equalJson, type Json } from '../../engine/base/json/json.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import type { EnsembleDefinition, StepDefinition } from '../../engine/ensemble/ensemble.ts';
import { placeOf, stepsByPlace, titleOf, verbOf } from '../../engine/ensemble/flow-places.ts';
import { isMark, isPart } from '../../engine/ensemble/step-kind.ts';
import { type Execution, isAtStep } from '../../engine/execution/execution.ts';
import type { StepRecord } from '../../engine/execution/stored-execution.ts';
import { placeOf as stepOf } from '../../engine/running/describe-record.ts';
import type { ReplayDifference } from '../../engine/running/replay-journal.ts';

/** Old names of agents, signals and ensembles, and their new ones. */
export type NameMap = Readonly<Record<string, string>>;

type Parts = Readonly<Record<string, Json>>;

interface Compared {
  readonly key: string;
  /** What must be equal. */
  parts(step: StepDefinition): Parts;
}

/**
 * @param before - the definition that the execution has, as it is stored: with the shared agents that it uses
 * @param after - the other one
 * @param names - old names of agents, signals and ensembles, and their new ones
 * @returns the first difference
 */
export function differentStep(
  { steps, waitingFor }: { readonly steps: readonly StepRecord[]; readonly waitingFor: Execution['waitingFor'] },
  before: EnsembleDefinition,
  after: EnsembleDefinition,
  names: NameMap,
): ReplayDifference | undefined {
  const [old, fresh] = [stepsByPlace(before.flow), stepsByPlace(after.flow)];
  const seen = new Set<string>();
  const compared = [
    ...steps.flatMap(comparedOf),
    ...waitingFor.filter(isAtStep).map(({ key }) => ({ key, parts: partsOfWait })),
  ];
  for (const { key, parts } of compared) {
    const place = placeOf(`${key.replace(/\.(?:while|foreach)\[\d+\]$/, '')}.`).slice(0, -1);
    const id = `${place} ${parts.name}`;
    if (seen.has(id)) continue;
    seen.add(id);
    const [was, is] = [old.get(place), fresh.get(place)];
    // The replay says where a step is missing.
    if (!was || !is) continue;
    const [expected, found] = [renamed(parts(was), names), parts(is)];
    if (equalJson(expected as Json, found as Json)) continue;
    const what = titleOf(was) === titleOf(is) ? `${titleOf(was)}, with ${changedIn(expected, found)}` : titleOf(is);
    const reason = `the execution has come to \`${titleOf(was)}\` at ${key}, and the definition has \`${what}\` there`;
    return { at: key, expected: expected as Json, found: found as Json, reason };
  }
  return undefined;
}

/** The place of the first record whose step the definition does not have. */
export function missingStep(steps: readonly StepRecord[], after: EnsembleDefinition): string | undefined {
  const fresh = stepsByPlace(after.flow);
  return steps.flatMap(comparedOf).find(({ key }) => !fresh.has(placeOf(key)))?.key;
}

/** A new name of a map that the definition does not have. */
export function unknownName(after: EnsembleDefinition, names: NameMap): ReplayDifference | undefined {
  const wanted = Object.entries(names);
  if (wanted.length === 0) return undefined;
  const known = new Set<string>((after.agents ?? []).map(({ name }) => name));
  for (const step of stepsByPlace(after.flow).values()) {
    if ('agent' in step) known.add(step.agent);
    if ('wait' in step) known.add(step.wait);
    if ('ensemble' in step) known.add(step.ensemble);
  }
  const [from, to] = wanted.find(([, name]) => !known.has(name)) ?? [];
  if (from === undefined || to === undefined) return undefined;
  const near = suggestName(to, known);
  const reason = `\`map\` gives \`${from}\` the name \`${to}\`, which no agent, signal or ensemble of the definition has${near ? `; did you mean \`${near}\`?` : ''}`;
  return { at: 'map', expected: to, found: near ?? null, reason };
}

function comparedOf(record: StepRecord): Compared[] {
  if (isMark(record) || isPart(record)) return [];
  const { key, note } = record;
  if (!note) return [{ key, parts: partsOfAgent }];
  const step = stepOf(key);
  if (key.endsWith('.wait')) return [{ key: step, parts: partsOfSignal }];
  if (key.endsWith('.wait.until')) return [];
  if (key.endsWith('.ensemble') || key.endsWith('.ensemble.begun')) return [{ key: step, parts: partsOfChild }];
  // Of a block that has ended, the steps inside are not asked for again.
  if (key.endsWith('.foreach') || key.endsWith('.parallel')) return [{ key: step, parts: partsOfBlock }];
  if (/(?:\?|\.switch|\.items)$/.test(key)) return [{ key: step, parts: partsOfGuard }];
  return [];
}

/** Its script and its config may be others: its result is recorded. */
function partsOfAgent(step: StepDefinition): Parts {
  return 'agent' in step ? { agent: step.agent } : { verb: verbOf(step) };
}

function partsOfSignal(step: StepDefinition): Parts {
  return 'wait' in step ? { signal: step.wait } : { verb: verbOf(step) };
}

/** Of a step that waits now. */
function partsOfWait(step: StepDefinition): Parts {
  if ('wait' in step) return { signal: step.wait, timeout: (step.timeout ?? null) as Json };
  if ('ensemble' in step) return partsOfChild(step);
  return partsOfAgent(step);
}

function partsOfChild(step: StepDefinition): Parts {
  return 'ensemble' in step ? { ensemble: step.ensemble, detached: step.detached ?? false } : { verb: verbOf(step) };
}

function partsOfBlock(step: StepDefinition): Parts {
  return { block: step as unknown as Json };
}

/** Of a decision that read the state. */
function partsOfGuard(step: StepDefinition): Parts {
  const { condition = null, ...of } = step as unknown as Record<string, Json>;
  const guard = ['if', 'while', 'switch', 'foreach'].map((verb) => of[verb] ?? null);
  return { condition, guard };
}

function renamed(parts: Parts, names: NameMap): Parts {
  const name = (value: Json) =>
    (typeof value === 'string' && Object.hasOwn(names, value) ? names[value] : value) as Json;
  const known = ['agent', 'signal', 'ensemble'];
  return Object.fromEntries(
    Object.entries(parts).map(([key, value]) => [key, known.includes(key) ? name(value) : value]),
  );
}

function changedIn(expected: Parts, found: Parts): string {
  const keys = Object.keys(found).filter((key) => !equalJson(expected[key] ?? null, found[key] ?? null));
  return keys.map((key) => (key === 'block' ? 'other steps or options' : `another ${key}`)).join(' and ');
}
