/** Compiles the declared `inputs` of an ensemble to a check that fills in defaults. */

import * as z from 'zod';
import { formatPath, type Json, type JsonObject } from '../json.ts';
import type { EnsembleDefinition, InputField } from '../model/ensemble.ts';
import { describe, oneOf, type Report } from './check-shape.ts';
import type { InputCheck, InputProblem } from './compiled-ensemble.ts';
import type { Path } from './problem.ts';
import { isJsonSchema } from './schema.ts';
import { suggestName } from '../suggest-name.ts';

/** The names of the declared fields; undefined when any field may be read. */
export function declaredInputs(inputs: EnsembleDefinition['inputs']): ReadonlySet<string> | undefined {
  if (inputs === undefined) return undefined;
  if (!isJsonSchema(inputs)) return new Set(Object.keys(inputs));
  const properties = (inputs as JsonObject).properties;
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
    if (!hasType(value, type)) report({ path: [...path, name, 'enum', i], message: `must be ${TYPE_TEXT[type]}, as \`type\` says` });
  }
  if (fallback === undefined) return;
  if (field.required) report({ path: [...path, name, 'default'], key: true, message: 'a required input has no default' });
  const wrong = fieldProblem(fallback, field);
  if (wrong) report({ path: [...path, name, 'default'], message: wrong });
}

function checkFields(input: Json, fields: readonly (readonly [string, InputField])[]): ReturnType<InputCheck> {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    return { problems: [{ path: '', message: `must be an object, not ${describe(input)}` }] };
  }
  const given = input as JsonObject;
  let value: JsonObject = given;
  const problems: InputProblem[] = [];
  for (const [name, field] of fields) {
    const found = Object.hasOwn(given, name) ? (given[name] as Json) : null;
    if (found !== null) {
      const wrong = fieldProblem(found, field);
      if (wrong) problems.push({ path: formatPath([name]), message: wrong });
    } else if (field.required) {
      const others = Object.keys(given).filter((key) => !fields.some(([declared]) => declared === key));
      const near = suggestName(name, others);
      problems.push({ path: formatPath([name]), message: near ? `is required; \`${near}\` was given` : 'is required' });
    } else if (field.default !== undefined) {
      if (value === given) value = { ...given };
      (value as Record<string, Json>)[name] = field.default;
    }
  }
  return problems.length > 0 ? { problems } : { value };
}

function fieldProblem(value: Json, field: InputField): string | undefined {
  const type = field.type ?? 'any';
  if (!hasType(value, type)) return `must be ${TYPE_TEXT[type]}, not ${describe(value)}`;
  if (!field.enum || field.enum.some((allowed) => allowed === value)) return undefined;
  return `must be ${oneOf(field.enum.map((allowed) => (typeof allowed === 'string' ? allowed : JSON.stringify(allowed))))}, not ${describe(value)}`;
}

const TYPE_TEXT: Readonly<Record<NonNullable<InputField['type']>, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
  any: 'any value',
};

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
      // biome-ignore lint/suspicious/useValidTypeof: the remaining names are JavaScript's own
      return typeof value === type;
  }
}

function compileJsonSchema(schema: JsonObject, path: Path, report: Report): InputCheck {
  let check: z.ZodType;
  try {
    check = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  } catch (error) {
    report({ path, message: `is not a JSON Schema that can be checked: ${(error as Error).message}` });
    return (input) => ({ value: input });
  }
  return (input) => {
    const result = check.safeParse(input);
    if (result.success) return { value: result.data as Json };
    const problems = result.error.issues.map((issue) => ({ path: formatPath(issue.path as (string | number)[]), message: issue.message }));
    return { problems };
  };
}
