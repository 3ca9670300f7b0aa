/** Compiles the outputs of an ensemble: each by itself, so that one which can't be computed leaves the others. */

import type { Json, JsonObject } from '../json.ts';
import type { CompiledField, FieldCompiler } from './compile-fields.ts';
import type { EvaluateOutputs } from './compiled-ensemble.ts';

export interface CompiledOutputs {
  readonly evaluate: EvaluateOutputs;
  /** What they read; places are those in the map. */
  readonly references: CompiledField['references'];
}

export function compileOutputs(definition: JsonObject, fields: FieldCompiler): CompiledOutputs {
  const compiled = Object.entries(definition).map(([name, value]) => {
    return { name, field: fields.value(value, ['outputs', name]) };
  });
  const outputs = compiled.map(({ name, field }) => ({ name, part: `outputs.${name}`, evaluate: field.evaluate }));
  return {
    evaluate(scope, take) {
      const values: Record<string, Json> = {};
      for (const { name, part, evaluate } of outputs) values[name] = take(name, () => evaluate(scope.begin('', part)));
      return values;
    },
    references: compiled.flatMap(({ name, field }) =>
      field.references.map((reference) => ({ ...reference, at: [name, ...reference.at] })),
    ),
  };
}
