/** What the steps of a dry run give: what an execution has recorded, or a value of their types. */

import type { Json } from '../../engine/base/json/json.ts';
import type { Type } from '../../engine/definition/types/type.ts';
import { unknownParts } from '../../engine/definition/types/type-text.ts';
import { sampleOf } from '../../engine/definition/types/values-of-type.ts';
import { definitionPathOf } from '../../engine/ensemble/flow-places.ts';
import type { ExecutionOutcome, InterpretedRun } from '../../engine/execution/execution-engine.port.ts';
import type { StepRecord } from '../../engine/execution/stored-execution.ts';
import type { DryAnswer } from '../../engine/running/dry-journal.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';

/** What the execution of `like` has recorded. */
export class RecordedSteps {
  /** The most rounds of a loop. */
  rounds = 0;
  readonly #byKey = new Map<string, StepRecord>();
  readonly #byName = new Map<string, StepRecord[]>();
  readonly #given = new Set<StepRecord>();

  add(record: StepRecord): void {
    const { key, name, note } = record;
    this.#byKey.set(key, record);
    for (const [, round] of key.matchAll(/\.while\[(\d+)\]/g)) this.rounds = Math.max(this.rounds, Number(round) + 1);
    if (note && !key.endsWith('.wait')) return;
    const of = `${note ? 'signal' : 'agent'} ${name}`;
    const known = this.#byName.get(of);
    if (known) known.push(record);
    else this.#byName.set(of, [record]);
  }

  /** The record of a step: the one at its position if it has its name, or else the first one of that name that no step has got. */
  find(key: string, name: string): StepRecord | undefined {
    const at = this.#byKey.get(key);
    const of = `${key.endsWith('.wait') ? 'signal' : 'agent'} ${name}`;
    const found =
      at?.name === name && !this.#given.has(at) ? at : this.#byName.get(of)?.find((one) => !this.#given.has(one));
    if (found) this.#given.add(found);
    return found;
  }
}

/** The run of a child whose end is recorded. */
export function endedRun(recorded: Json): InterpretedRun {
  const { payload } = recorded as unknown as { readonly payload: ExecutionOutcome };
  const { status, output, error } = payload;
  const outcome = error ? { status, output, error } : { status, output };
  return { outcome: Promise.resolve(outcome), stop() {}, abandon() {} };
}

/** The type of what the step at a position gives. */
export function typeAt({ answers }: LoadedEnsemble, key: string): Type | undefined {
  const known = answers?.();
  const place = definitionPathOf(key);
  const own = known?.get(place);
  if (own) return own;
  // The member to which a route leads: its output is a part of that of the route.
  const route = known?.get(place.replace(/\.[^.]+$/, ''));
  return route?.kind === 'record' && route.fields.has('target') ? route.fields.get('output')?.type : undefined;
}

export function nameAt(key: string): string {
  return /\.?(\w+)$/.exec(key)?.[1] ?? 'value';
}

export function answerOf(type: Type | undefined, name: string, turn: number): DryAnswer {
  if (!type) return { output: null, from: 'types', unknown: ['output'] };
  const unknown = unknownParts(type).map((part) => `output${part}`);
  return { output: sampleOf(type, name, turn), from: 'types', unknown };
}
