/** Finds the keys that a schema of the host knows, so that a message about a wrong key can name the right ones. */

import { jsonSchemaOf, type StandardSchema } from '../../../operation/standard-schema.port.ts';

/** The parts of schemas of zod (in `_zod.def`) and valibot, and of JSON Schemas, that hold other schemas. */
interface SchemaParts {
  readonly type?: unknown;
  /** The fields of a map. */
  readonly shape?: object;
  readonly entries?: object;
  readonly properties?: object;
  /** The schema of each value of a list or a map. */
  readonly element?: unknown;
  readonly item?: unknown;
  readonly items?: unknown;
  readonly valueType?: unknown;
  readonly value?: unknown;
  /** Schemas of the same value. */
  readonly innerType?: unknown;
  readonly wrapped?: unknown;
  readonly in?: unknown;
  readonly left?: unknown;
  readonly right?: unknown;
  readonly options?: unknown;
  readonly anyOf?: unknown;
  readonly allOf?: unknown;
  readonly getter?: () => unknown;
}

// A schema may contain itself.
const MAX_NESTED = 20;

/**
 * The keys of the map at a path, if the schema shows them: schemas of zod and valibot do, and those with a JSON Schema, as of arktype.
 *
 * @param path - the path in the checked value
 */
export function schemaKeys(schema: StandardSchema | undefined, path: readonly PropertyKey[]): readonly string[] {
  // A schema of zod shows its parts, and has a JSON Schema only if no part of it transforms values.
  const shown = schema && '_zod' in schema ? schema : ((schema && jsonSchemaOf(schema)) ?? schema);
  let parts = partsOf(shown, 0);
  for (const key of path) parts = parts.flatMap((part) => innerOf(part, key));
  return [...new Set(parts.flatMap((part) => Object.keys(fieldsOf(part) ?? {})))];
}

// A schema and the schemas that it wraps or chooses from.
function partsOf(schema: unknown, depth: number): SchemaParts[] {
  if (typeof schema !== 'object' || schema === null || depth > MAX_NESTED) return [];
  const parts = ((schema as { _zod?: { def?: object } })._zod?.def ?? schema) as SchemaParts;
  const { innerType, wrapped, left, right, options, anyOf, allOf, getter } = parts;
  const same = [
    innerType,
    wrapped,
    parts.in,
    left,
    right,
    ...[options, anyOf, allOf].flatMap((one) => (Array.isArray(one) ? one : [])),
    getter?.(),
  ];
  return [parts, ...same.flatMap((inner) => partsOf(inner, depth + 1))];
}

function innerOf(parts: SchemaParts, key: PropertyKey): SchemaParts[] {
  const fields = fieldsOf(parts) as Readonly<Record<PropertyKey, unknown>> | undefined;
  const inner = fields && Object.hasOwn(fields, key) ? fields[key] : undefined;
  return [inner, parts.element, parts.item, parts.items, parts.valueType, parts.value].flatMap((schema) =>
    partsOf(schema, 0),
  );
}

// The `entries` of an enum of zod are its values.
function fieldsOf({ type, shape, entries, properties }: SchemaParts): object | undefined {
  return shape ?? properties ?? (type === 'enum' ? undefined : entries);
}
