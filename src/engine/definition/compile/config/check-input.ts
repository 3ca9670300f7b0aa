/** Compiles the declared `inputs` of an ensemble to a check that also fills in the defaults. */

import { isMap } from '../../../base/json/is-map.ts';
import { equalJson, formatPath, type Json, type JsonObject } from '../../../base/json/json.ts';
import { KIND_NAMES } from '../../../base/json/kind-names.ts';
import { suggestForMany } from '../../../base/suggest-name.ts';
import { describeValue } from '../../../base/wording.ts';
import type { EnsembleDefinition, InputField } from '../../../ensemble/ensemble.ts';
import { checkJsonSchema } from '../../../json-schema/check-json-schema.ts';
import { compileJsonSchema } from '../../../json-schema/compile-json-schema.ts';
import { hasType, typeMessage, valueMessage } from '../../../json-schema/json-limits.ts';
import type { ValueCheck, ValueProblem } from '../../../json-schema/rule.ts';
import type { Report } from '../../forms/check-shape.ts';
import { isJsonSchema } from '../../forms/forms.ts';
import type { Path } from '../../source/problem.ts';
import { refuseExpressions } from './refuse-expressions.ts';

const OPEN_KEYWORDS = ['$ref', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas', 'dependencies'].concat([
  'patternProperties',
  'additionalProperties',
]);

/** The names of the declared fields; undefined when expressions may read any field. */
export function declaredInputs(inputs: EnsembleDefinition['inputs']): ReadonlySet<string> | undefined {
  if (inputs === undefined) return undefined;
  if (!isJsonSchema(inputs)) return new Set(Object.keys(inputs));
  const { properties } = inputs as JsonObject;
  // These keywords may allow fields that are not in `properties`.
  if (OPEN_KEYWORDS.some((key) => Object.hasOwn(inputs, key))) return undefined;
  return properties && typeof properties === 'object' ? new Set(Object.keys(properties)) : undefined;
}

/** @param path - the path of `inputs` in the definition */
export function compileInputCheck(inputs: EnsembleDefinition['inputs'], path: Path, report: Report): ValueCheck {
  if (inputs === undefined) return (input) => ({ value: input });
  if (isJsonSchema(inputs)) return checkedJsonSchema(inputs as JsonObject, path, report);
  const fields = Object.entries(inputs as Record<string, InputField>);
  for (const [name, field] of fields) checkDefault(name, field, path, report);
  return (input) => checkFields(input, fields);
}

function checkDefault(name: string, field: InputField, path: Path, report: Report): void {
  const { default: fallback, enum: values, type = 'any' } = field;
  for (const [i, value] of (values ?? []).entries()) {
    if (hasType(value, type)) continue;
    const message = `must be ${KIND_NAMES[type]}, as \`type\` says, not ${describeValue(value)}`;
    report({ path: [...path, name, 'enum', i], message });
  }
  if (fallback === undefined) return;
  const at = [...path, name, 'default'];
  if (field.required)
    report({ path: at, key: true, message: '`default` is never used: the input is `required`; keep one of them' });
  const wrong = fieldProblem(fallback, field);
  if (wrong) report({ path: at, message: wrong });
  refuseExpressions(fallback, at, report);
}

function checkFields(input: Json, fields: readonly (readonly [string, InputField])[]): ReturnType<ValueCheck> {
  if (!isMap(input)) return { problems: [{ path: '', message: `must be an object, not ${describeValue(input)}` }] };
  let value = input;
  const problems: ValueProblem[] = [];
  const suggest = suggestForMany();
  let undeclared: readonly string[] | undefined;
  for (const [name, field] of fields) {
    const found = Object.hasOwn(input, name) ? (input[name] as Json) : null;
    if (found !== null) {
      const wrong = fieldProblem(found, field);
      if (wrong) problems.push({ path: formatPath([name]), message: wrong });
    } else if (field.required) {
      undeclared ??= undeclaredKeys(input, fields);
      const near = suggest(name, undeclared);
      problems.push({ path: formatPath([name]), message: near ? `is required; \`${near}\` was given` : 'is required' });
    } else if (field.default !== undefined) {
      if (value === input) value = { ...input };
      (value as Record<string, Json>)[name] = field.default;
    }
  }
  return problems.length > 0 ? { problems } : { value };
}

function undeclaredKeys(given: JsonObject, fields: readonly (readonly [string, InputField])[]): string[] {
  const declared = new Set(fields.map(([name]) => name));
  return Object.keys(given).filter((key) => !declared.has(key));
}

function fieldProblem(value: Json, field: InputField): string | undefined {
  const type = field.type ?? 'any';
  if (!hasType(value, type)) return typeMessage([type], value);
  if (!field.enum || field.enum.some((allowed) => equalJson(allowed, value))) return undefined;
  return valueMessage(field.enum, value);
}

function checkedJsonSchema(schema: JsonObject, path: Path, report: Report): ValueCheck {
  let isFaulty = false;
  const reportFault: Report = (problem) => {
    isFaulty = true;
    report(problem);
  };
  if (schema.type === 'object') checkJsonSchema(schema, path, reportFault);
  else {
    reportFault({
      path: [...path, 'type'],
      message: `must be \`object\`, not ${describeValue(schema.type)}: the input of an execution is an object`,
    });
  }
  return isFaulty ? (input) => ({ value: input }) : compileJsonSchema(schema);
}
