/** Parts of a JSON Schema that give an editor one problem for one mistake. */

import * as z from 'zod/mini';
import { DURATION } from '../../engine/base/time/duration.ts';
import { TIMEOUT_RULE } from '../../engine/definition/forms/flow-forms.ts';
import { editorNotes, STEP_LIST } from '../../engine/definition/forms/form.ts';
import { NAME_PATTERN, NAME_RULE } from '../../engine/ensemble/name.ts';

export type Schema = Record<string, unknown>;
export type ObjectSchema = Schema & { properties: Record<string, Schema>; required?: readonly string[] };

/** A form of the language as JSON Schema. Its lists of steps refer to `step`. */
export function formToJson(form: z.core.$ZodType): ObjectSchema {
  return toJsonSchema(form, { metadata: editorNotes() });
}

/** @param options - more options for zod */
export function toJsonSchema(schema: z.core.$ZodType, options: z.core.ToJSONSchemaParams = {}): ObjectSchema {
  const json = z.toJSONSchema(schema, { target: 'draft-7', io: 'input', unrepresentable: 'any', ...options });
  return simplify(json as Schema) as ObjectSchema;
}

/** Writes a JSON Schema so that an editor reports one problem for one mistake. */
export function simplify(schema: Schema): Schema {
  const { $schema: _dialect, [STEP_LIST]: isStepList, propertyNames, additionalProperties, required, ...out } = schema;
  if (out.properties) out.properties = mapValues(out.properties as Record<string, Schema>, simplify);
  if (out.items) out.items = simplify(out.items as Schema);
  for (const key of ['anyOf', 'oneOf', 'allOf']) if (out[key]) out[key] = (out[key] as readonly Schema[]).map(simplify);
  // Any text is a key, and any value has no schema: said again, they would make an editor offer a key `property`.
  if ((propertyNames as Schema | undefined)?.pattern) out.propertyNames = propertyNames;
  if (additionalProperties === false) out.additionalProperties = false;
  else if (Object.keys(additionalProperties ?? {}).length > 0)
    out.additionalProperties = simplify(additionalProperties as Schema);
  if (required) Object.assign(out, requireKeys(required as readonly string[], out as ObjectSchema));
  if (out.anyOf) Object.assign(out, anyOf(...(out.anyOf as readonly Schema[])));
  if (out.pattern === NAME_PATTERN.source) out.errorMessage = `must be a name (${NAME_RULE})`;
  if (String(out.pattern).endsWith(DURATION.source)) out.errorMessage = TIMEOUT_RULE;
  return isStepList ? { ...out, items: ref('step') } : out;
}

// A key that is written wrong is the mistake, and not also the key that is missing then.
function requireKeys(required: readonly string[], { properties, additionalProperties }: ObjectSchema): Schema {
  if (additionalProperties !== false) return { allOf: [{ required }] };
  const isKnown = { propertyNames: { enum: Object.keys(properties) } };
  return { allOf: [{ if: isKnown, then: { required } }] };
}

// yaml-language-server shows garbage over a key when the alternatives of its value look equal. It compares their `properties`. It reports
// the problem of the first of the nearest alternatives, so those with a message of their own come first.
function alternative(schema: Schema): Schema {
  return schema.properties ? schema : { ...schema, properties: {} };
}

export function anyOf(...alternatives: readonly Schema[]): Schema {
  const hasMessage = ({ errorMessage }: Schema) => errorMessage !== undefined;
  const ordered = [...alternatives.filter(hasMessage), ...alternatives.filter((one) => !hasMessage(one))];
  return { anyOf: ordered.map(alternative) };
}

export function ref(name: string): Schema {
  return { $ref: `#/definitions/${encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))}` };
}

/** A schema whose values an editor can complete with these names. */
export function suggest(names: readonly string[], schema: Schema): Schema {
  return names.length === 0 ? schema : anyOf({ enum: names }, schema);
}

/** A schema with further rules about the same value. */
export function addRules(schema: ObjectSchema, ...rules: readonly Schema[]): ObjectSchema {
  return { ...schema, allOf: [...((schema.allOf as readonly Schema[] | undefined) ?? []), ...rules] };
}

/** Spellings of one key, of which only one may be given. */
export function keepOne(...groups: readonly (readonly string[])[]): Schema {
  const dependencies: Schema = {};
  for (const spellings of groups) {
    spellings.slice(0, -1).forEach((key, index) => {
      const others = spellings.slice(index + 1);
      dependencies[key] = {
        properties: Object.fromEntries(others.map((other) => [other, false])),
        errorMessage: `means the same as \`${key}\`; keep one of them`,
      };
    });
  }
  return { dependencies };
}

/**
 * One of several maps. The text under one key decides which one. A wrong map gets the problems of the one that it names, and not those of all.
 *
 * @param options - each has a `const` under the key
 */
export function chosenBy(key: string, options: readonly ObjectSchema[]): Schema {
  const constOf = ({ properties }: ObjectSchema) => (properties[key] as Schema).const;
  const [first] = options as readonly [ObjectSchema];
  const { const: _const, ...described } = first.properties[key] as Schema;
  return {
    type: 'object',
    properties: { [key]: { ...described, enum: options.map(constOf) } },
    required: [key],
    allOf: options.map((option) => ({
      if: { type: 'object', properties: { [key]: { const: constOf(option) } }, required: [key] },
      then: option,
    })),
  };
}

export function mapValues<T>(
  record: Readonly<Record<string, T>>,
  change: (value: T, key: string) => T,
): Record<string, T> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]));
}
