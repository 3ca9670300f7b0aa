/** Compiles the outputs of an ensemble: each by itself, so that one which can't be computed leaves the others. */

import type { Evaluate } from '../expression/evaluation.ts';
import type { Json, JsonObject } from '../json.ts';
import type { CompiledField, FieldCompiler } from './compile-fields.ts';
import type { EvaluateOutputs } from './compiled-ensemble.ts';
import type { Scope } from './scope.ts';

export interface CompiledOutputs {
  readonly evaluate: EvaluateOutputs;
  /** What they read; places are those in the map. */
  readonly references: CompiledField['references'];
}

export function compileOutputs(outputs: JsonObject, fields: FieldCompiler): CompiledOutputs {
  const compiled = Object.entries(outputs).map(([name, value]) => {
    return { name, field: fields.value(value, ['outputs', name]) };
  });
  const evaluates = compiled.map(({ name, field }): readonly [string, Evaluate<Scope>] => [name, field.evaluate]);
  return {
    evaluate(scope, take) {
      const values: Record<string, Json> = {};
      for (const [name, evaluate] of evaluates) {
        values[name] = take(name, () => evaluate(scope.begin('', `outputs.${name}`)));
      }
      return values;
    },
    references: compiled.flatMap(({ name, field }) =>
      field.references.map((reference) => ({ ...reference, at: [name, ...reference.at] })),
    ),
  };
}
