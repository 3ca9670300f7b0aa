/** A fixed world for expression tests: the data that the vectors read, and an evaluation that draws fixed values. */

import type { CompileOptions, NameResolver } from '../../src/engine/expression/compile-expression.ts';
import type { Evaluation } from '../../src/engine/expression/evaluation.ts';
import { DEFAULT_BUDGET } from '../../src/engine/expression/limits.ts';
import type { Json } from '../../src/engine/json.ts';
import data from '../vectors/expressions-data.json' with { type: 'json' };

export { data };

/** Reads names from plain data, as the engine's resolver does from a run. */
export function resolverOf(values: Readonly<Record<string, Json>>): NameResolver<Evaluation> {
  return {
    hyphenated: Object.keys(values).filter((name) => name.includes('-')),
    resolve(name) {
      if (!Object.hasOwn(values, name)) return { problem: `unknown name ${name}` };
      return { read: () => values[name] as Json, consumed: 0 };
    },
  };
}

export function optionsOf(values: Readonly<Record<string, Json>>): CompileOptions<Evaluation> {
  return { names: resolverOf(values) };
}

export const options = optionsOf(data);

export function createEvaluation(budget = DEFAULT_BUDGET): Evaluation {
  return {
    budget,
    random: () => 0.5,
    now: () => 1_700_000_000_000,
    uuid: () => '00000000-0000-4000-8000-000000000000',
  };
}
