/** Compiles the declared `inputs` of an ensemble to a check that fills in defaults. */

import * as z from 'zod';
import { equalJson, formatPath, type Json, type JsonObject } from '../json.ts';
import { KIND_NAMES } from '../kind-names.ts';
import type { EnsembleDefinition, InputField } from '../model/ensemble.ts';
import { MAX_NAMED, suggestForMany } from '../suggest-name.ts';
import { checkJsonSchema } from './check-json-schema.ts';
import type { Report } from './check-shape.ts';
import type { InputCheck, InputProblem } from './compiled-ensemble.ts';
import { explainIssue, foreignSchema } from './explain-issue.ts';
import { isJsonSchema } from './forms.ts';
import type { Path } from './problem.ts';
import { refuseExpressions } from './refuse-expressions.ts';
import { describe, oneOf } from './wording.ts';

const OPEN_KEYWORDS = ['$ref', 'allOf', 'anyOf', 'oneOf', 'if', 'patternProperties', 'additionalProperties'];

/** The names of the declared fields; undefined when any field may be read. */
export function declaredInputs(inputs: EnsembleDefinition['inputs']): ReadonlySet<string> | undefined {
  if (inputs === undefined) return undefined;
  if (!isJsonSchema(inputs)) return new Set(Object.keys(inputs));
  const { properties } = inputs as JsonObject;
  // Other keywords may allow fields that `properties` doesn't name.
  if (OPEN_KEYWORDS.some((key) => Object.hasOwn(inputs, key))) return undefined;
  return properties && typeof properties === 'object' ? new Set(Object.keys(properties)) : undefined;
}

/** @param path - where `inputs` stands in the source */
export function compileInputCheck(inputs: EnsembleDefinition['inputs'], path: Path, report: Report): InputCheck {
  if (inputs === undefined) return (input) => ({ value: input });
  if (isJsonSchema(inputs)) return compileJsonSchema(inputs as JsonObject, path, report);
  const fields = Object.entries(inputs as Record<string, InputField>);
  for (const [name, field] of fields) checkDefault(name, field, path, report);
  return (input) => checkFields(input, fields);
}

function checkDefault(name: string, field: InputField, path: Path, report: Report): void {
  const { default: fallback, enum: values, type = 'any' } = field;
  for (const [i, value] of (values ?? []).entries()) {
    if (hasType(value, type)) continue;
    const message = `must be ${KIND_NAMES[type]}, as \`type\` says, not ${describe(value)}`;
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

function checkFields(input: Json, fields: readonly (readonly [string, InputField])[]): ReturnType<InputCheck> {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    return { problems: [{ path: '', message: `must be an object, not ${describe(input)}` }] };
  }
  const given = input as JsonObject;
  let value: JsonObject = given;
  const problems: InputProblem[] = [];
  const suggest = suggestForMany();
  let undeclared: readonly string[] | undefined;
  for (const [name, field] of fields) {
    const found = Object.hasOwn(given, name) ? (given[name] as Json) : null;
    if (found !== null) {
      const wrong = fieldProblem(found, field);
      if (wrong) problems.push({ path: formatPath([name]), message: wrong });
    } else if (field.required) {
      undeclared ??= undeclaredKeys(given, fields);
      const near = suggest(name, undeclared);
      problems.push({ path: formatPath([name]), message: near ? `is required; \`${near}\` was given` : 'is required' });
    } else if (field.default !== undefined) {
      if (value === given) value = { ...given };
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
  if (!hasType(value, type)) return `must be ${KIND_NAMES[type]}, not ${describe(value)}`;
  if (!field.enum || field.enum.some((allowed) => equalJson(allowed, value))) return undefined;
  return `must be ${oneOf(field.enum.map((allowed) => (typeof allowed === 'string' ? allowed : JSON.stringify(allowed))))}, not ${describe(value)}`;
}

function hasType(value: Json, type: NonNullable<InputField['type']>): boolean {
  switch (type) {
    case 'any':
      return true;
    case 'integer':
      return Number.isSafeInteger(value);
    case 'array':
      return Array.isArray(value);
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    default:
      return typeof value === type;
  }
}

const SPEAKER = foreignSchema('the input');

function compileJsonSchema(schema: JsonObject, path: Path, report: Report): InputCheck {
  const open: InputCheck = (input) => ({ value: input });
  if (schema.type !== 'object') {
    report({
      path: [...path, 'type'],
      message: `must be \`object\`, not ${describe(schema.type)}: the input of a run is an object`,
    });
    return open;
  }
  let faulty = false;
  const note: Report = (problem) => {
    faulty = true;
    report(problem);
  };
  checkJsonSchema(schema, path, note);
  if (faulty) return open;
  let check: z.ZodType;
  try {
    check = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  } catch (error) {
    report({ path, message: `is a JSON Schema that can't be checked here: ${(error as Error).message}` });
    return open;
  }
  return (input) => {
    const result = check.safeParse(input);
    if (result.success) return { value: result.data as Json };
    const issues = result.error.issues.slice(0, MAX_NAMED);
    const problems = issues.flatMap((issue) => explainIssue(issue, input, [], SPEAKER));
    return { problems: problems.map(({ path: at, message }) => ({ path: formatPath(at), message })) };
  };
}
