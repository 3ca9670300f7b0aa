/** The part of the Standard Schema interface (v1) that the library uses. zod, valibot, arktype and others implement it. */

import type { JsonObject } from '../base/json/json.ts';

export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** A Standard Schema, or a JSON Schema. */
export type AnySchema = JsonObject | StandardSchema<unknown, unknown>;

// A schema of arktype is a function.
export function isStandardSchema(schema: unknown): schema is StandardSchema<unknown, unknown> {
  return ((typeof schema === 'object' && schema !== null) || typeof schema === 'function') && '~standard' in schema;
}

/** The JSON Schema of what a schema takes, or of what it returns, if its library gives one. */
export function jsonSchemaOf(
  schema: StandardSchema<unknown, unknown>,
  side: 'input' | 'output' = 'input',
): Readonly<Record<string, unknown>> | undefined {
  const { jsonSchema } = schema['~standard'] as StandardJson;
  for (const target of ['draft-07', 'draft-2020-12']) {
    try {
      return jsonSchema?.[side]?.({ target });
    } catch {
      // The library can't express the schema in this form.
    }
  }
  return undefined;
}

interface StandardJson {
  readonly jsonSchema?: Readonly<
    Partial<Record<'input' | 'output', (options: { readonly target: string }) => Readonly<Record<string, unknown>>>>
  >;
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type of the values that a schema takes. */
export type InputOf<S> = S extends StandardSchema<infer Input, infer _Output> ? Input : unknown;

/** The type of the values that a schema returns. */
export type OutputOf<S> = S extends StandardSchema<infer _Input, infer Output> ? Output : unknown;

/** What to say about the schema of a config that answers with a promise. */
export const ASYNC_SCHEMA = 'the schema of its config must be synchronous; make asynchronous checks in `run`';

/** The path of an issue, as names and indexes. */
export function issuePath(issue: StandardIssue): (string | number)[] {
  return (issue.path ?? []).map((part) => {
    const key = typeof part === 'object' ? part.key : part;
    return typeof key === 'symbol' ? String(key) : key;
  });
}
