/** The Standard Schemas of a definition in TypeScript: `inputSchema` and `outputSchema`. They are code, and no part of the definition. */

import type { EnsembleSource } from '../../authoring/define.ts';
import { messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import type { Json } from '../../engine/base/json/json.ts';
import { isPromise, type MaybePromise } from '../../engine/base/maybe-promise.ts';
import { shortList } from '../../engine/base/read-shape.ts';
import type { OutputCheck } from '../../engine/interpreter/run-ensemble.ts';
import { issuePath, type StandardResult, type StandardSchema } from '../../engine/operation/standard-schema.port.ts';

export interface DefinitionSchemas {
  readonly inputSchema?: StandardSchema;
  readonly outputSchema?: StandardSchema;
}

/** Checks an input by the schema. @returns what the schema returns @throws INVALID_INPUT; what the schema throws */
export type InputCheck = (given: unknown) => MaybePromise<unknown>;

const KEYS = ['inputSchema', 'outputSchema'] as const;

/** Separates a definition from its schemas. @throws TypeError for a schema that is not a Standard Schema */
export function takeSchemas(source: EnsembleSource): DefinitionSchemas & { readonly definition: string | object } {
  if (typeof source !== 'object' || source === null || !KEYS.some((key) => key in source))
    return { definition: source };
  const { inputSchema, outputSchema, ...definition } = source as DefinitionSchemas & { readonly name?: unknown };
  for (const [key, schema] of Object.entries({ inputSchema, outputSchema })) {
    if (schema === undefined || typeof schema['~standard']?.validate === 'function') continue;
    throw new TypeError(`ensemble \`${String(definition.name)}\`: \`${key}\` must be a Standard Schema`);
  }
  return { definition, ...(inputSchema && { inputSchema }), ...(outputSchema && { outputSchema }) };
}

export function inputCheck(name: string, schema: StandardSchema): InputCheck {
  const toInput = (result: StandardResult<unknown>) => {
    if (!result.issues) return result.value;
    const issues = result.issues.map((issue) => ({ path: issuePath(issue).join('.'), message: issue.message }));
    const text = shortList(issues.map(({ path, message }) => `${path || 'the input'}: ${message}`));
    throw new OrchestratorError('INVALID_INPUT', `the input of \`${name}\` does not fit: ${text}`, {
      details: { issues },
    });
  };
  return (given) => {
    const result = schema['~standard'].validate(given === undefined ? {} : given);
    return isPromise(result) ? result.then(toInput) : toInput(result);
  };
}

export function outputCheck(schema: StandardSchema): OutputCheck {
  return async (output: Json) => {
    let result: StandardResult<unknown>;
    try {
      result = await schema['~standard'].validate(output);
    } catch (thrown) {
      return `the ensemble's outputSchema failed: ${messageOf(thrown)}`;
    }
    if (!result.issues) return undefined;
    const problems = result.issues.map((issue) =>
      [issuePath(issue).join('.'), issue.message].filter((part) => part !== '').join(': '),
    );
    return `the outputs don't fit the ensemble's outputSchema: ${problems.join('; ')}`;
  };
}
