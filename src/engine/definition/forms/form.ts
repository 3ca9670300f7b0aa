/** The building blocks of the forms of the language: strict maps with a name, keys and hints. */

import * as z from 'zod/mini';
import { once } from '../../base/once.ts';
import { MAX_NAMED, suggestForMany } from '../../base/suggest-name.ts';
import { durationSchema } from '../../base/time/duration-schema.ts';
import { NAME_PATTERN, NAME_RULE } from '../../ensemble/name.ts';

/** What to report for a key that authors write in a form by mistake. */
export interface KeyHint {
  /** What to do instead, as text. */
  readonly says?: string;
  /** The key that the author probably meant. */
  readonly means?: string;
}

/** Facts that a form passes to `explainIssue` in the message of zod. */
export interface FormFacts {
  readonly what: string;
  readonly keys: readonly string[];
  readonly hints?: Readonly<Record<string, KeyHint>>;
}

/**
 * A strict map. Its issue about an unknown key names the form and its keys, so that a similar key can be suggested. All schemas
 * are functions that create the schema at the first call: creating all of them would slow down every import.
 *
 * @param what - the name of the form, such as: an agent
 * @param example - what to write when the value is not a map
 */
export function form<S extends z.core.$ZodLooseShape>(
  what: string,
  example: string,
  shape: () => S,
  hints?: () => FormFacts['hints'],
): () => z.ZodMiniObject<S, z.core.$strict> {
  return once(() => {
    const keys = shape();
    const facts: FormFacts = { what, keys: Object.keys(keys), ...(hints && { hints: hints() }) };
    return z.strictObject(keys, {
      error: (issue) => {
        if (issue.code === 'unrecognized_keys') return JSON.stringify(facts);
        return issue.code === 'invalid_type' ? `must be a map such as \`${example}\`` : undefined;
      },
    });
  });
}

/** A list whose entries are checked one by one, each against its own form. */
export function listOf(what: string, example: string) {
  return z.array(z.unknown(), { error: `must be a list of ${what} (\`- ${example}\`)` });
}

/** The facts of the form of an issue; undefined for messages of other schemas. */
export function formFacts(message: string): FormFacts | undefined {
  return message.startsWith('{"what":') ? (JSON.parse(message) as FormFacts) : undefined;
}

/** What other systems call a key, wherever a form has it. */
const OTHER_KEYS: Readonly<Record<string, string>> = { retries: 'retry', do: 'steps', json: 'body' };

/** The hints for unknown keys. In a very long list, only the first keys get one. */
export function keyHints(facts: FormFacts, keys: readonly string[]): (KeyHint & { readonly key: string })[] {
  const suggest = suggestForMany();
  return keys.slice(0, MAX_NAMED).map((key) => {
    if (facts.hints && Object.hasOwn(facts.hints, key)) return { key, ...facts.hints[key] };
    const other = Object.hasOwn(OTHER_KEYS, key) ? (OTHER_KEYS[key] as string) : '';
    const means = facts.keys.includes(other) ? other : suggest(key, facts.keys);
    return means === undefined ? { key } : { key, means };
  });
}

/** One hint for several keys. */
export function hintsFor(keys: readonly string[], hint: KeyHint): Record<string, KeyHint> {
  return Object.fromEntries(keys.map((key) => [key, hint]));
}

/** What `ensemble schema` reads in addition to a schema. A registry of the library's own, not the one that an app may use. */
export const editorNotes = once(() => z.registry<Readonly<Record<string, unknown>>>());
export const jsonObject = once(() => z.record(z.string(), z.unknown()));
export const name = once(() => z.string().check(z.regex(NAME_PATTERN, { error: `must be a name (${NAME_RULE})` })));
export const text = once(() => z.string());
export const nonEmpty = once(() => z.string().check(z.minLength(1, { error: 'must not be empty' })));
export const guard = once(() => z.union([text(), z.boolean()], { error: 'must be an expression, `true` or `false`' }));
export const flag = once(() => z.optional(z.boolean()));
/** At most ten years. */
export const duration = once(() => durationSchema());
/** Marks the lists of steps. Their items are checked one by one, each against its own form. */
export const STEP_LIST = 'x-step-list';
export const steps = once(() => withEditorNotes(listOf('steps', 'agent: ...'), { [STEP_LIST]: true }));

/** A whole number within bounds. */
export function wholeNumber(min: number, max: number, error?: string) {
  return z.int(error === undefined ? {} : { error }).check(z.gte(min), z.lte(max));
}

/** A list with at least one entry. */
export function nonEmptyList<S extends z.ZodMiniType>(entry: S, error?: string) {
  return z.array(entry, error === undefined ? {} : { error }).check(z.minLength(1));
}

/** A schema with notes for editors. */
export function withEditorNotes<S extends z.ZodMiniType>(schema: S, notes: Readonly<Record<string, unknown>>): S {
  editorNotes().add(schema, notes);
  return schema;
}
