/** Compiles the outputs of an ensemble. Each output is evaluated by itself, so a failing output does not affect the others. */

import type { Json, JsonObject } from '../../base/json/json.ts';
import type { EvaluateOutputs } from '../../compiled/compiled-ensemble.ts';
import type { CompiledField, FieldCompiler } from './config/compile-fields.ts';

export interface CompiledOutputs {
  readonly evaluate: EvaluateOutputs;
  /** The references of all outputs. Their paths begin with the name of the output. */
  readonly references: CompiledField['references'];
}

/** All outputs share one budget. Each output gets at least this many operations, even after another one used up the budget. */
const MIN_BUDGET = 50_000;

export function compileOutputs(definition: JsonObject, fields: FieldCompiler): CompiledOutputs {
  const compiled = Object.entries(definition).map(([name, value]) => {
    return { name, field: fields.value(value, ['outputs', name]) };
  });
  const outputs = compiled.map(({ name, field }) => ({ name, part: `outputs.${name}`, evaluate: field.evaluate }));
  return {
    evaluate(scope, take) {
      const values: Record<string, Json> = {};
      let budget = Number.POSITIVE_INFINITY;
      for (const { name, part, evaluate } of outputs) {
        values[name] = take(name, () => {
          const evaluation = scope.begin('', part);
          evaluation.budget = Math.min(evaluation.budget, budget);
          try {
            return evaluate(evaluation);
          } finally {
            budget = Math.max(evaluation.budget, MIN_BUDGET);
          }
        });
      }
      return values;
    },
    references: compiled.flatMap(({ name, field }) =>
      field.references.map((reference) => ({ ...reference, at: [name, ...reference.at] })),
    ),
  };
}
