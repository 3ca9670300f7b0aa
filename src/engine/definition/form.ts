/** The stuff that the forms of the language are made of: strict maps that know their own name and keys. */

import * as z from 'zod';
import { NAME_PATTERN, NAME_RULE } from '../model/name.ts';
import { MAX_NAMED, suggestForMany } from '../suggest-name.ts';

/** What to say of a key that people write in a form though the form has it not. */
export interface KeyHint {
  /** What to do instead, in words. */
  readonly says?: string;
  /** The key that was meant. */
  readonly means?: string;
}

/** Facts that a form hands to the writer of issues through zod's message. */
export interface FormFacts {
  readonly what: string;
  readonly keys: readonly string[];
  readonly hints?: Readonly<Record<string, KeyHint>>;
}

/**
 * A strict map whose unknown-key issue names the form and its keys, so that the nearest key can be suggested.
 *
 * @param what - the form in words, such as: an agent
 * @param example - what to write where something else than a map stands
 */
export function form<S extends z.core.$ZodLooseShape>(
  what: string,
  example: string,
  shape: S,
  hints?: FormFacts['hints'],
) {
  const facts: FormFacts = { what, keys: Object.keys(shape), ...(hints && { hints }) };
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code === 'unrecognized_keys') return JSON.stringify(facts);
      return issue.code === 'invalid_type' ? `must be a map such as \`${example}\`` : undefined;
    },
  });
}

/** A list whose entries are checked one by one, each by its own form. */
export function listOf(what: string, example: string) {
  return z.array(z.unknown(), { error: `must be a list of ${what} (\`- ${example}\`)` });
}

/** The facts of the form that an issue is about; undefined for messages of other schemas. */
export function formFacts(message: string): FormFacts | undefined {
  return message.startsWith('{"what":') ? (JSON.parse(message) as FormFacts) : undefined;
}

/** What is known of the keys that a form has not; of very many, of the first ones. */
export function keyHints(facts: FormFacts, keys: readonly string[]): (KeyHint & { readonly key: string })[] {
  const suggest = suggestForMany();
  return keys.slice(0, MAX_NAMED).map((key) => {
    if (facts.hints && Object.hasOwn(facts.hints, key)) return { key, ...facts.hints[key] };
    const means = suggest(key, facts.keys);
    return means === undefined ? { key } : { key, means };
  });
}

/** The same hint for many keys. */
export function hintsFor(keys: readonly string[], hint: KeyHint): Record<string, KeyHint> {
  return Object.fromEntries(keys.map((key) => [key, hint]));
}

export const jsonObject = z.record(z.string(), z.unknown());
export const name = z.string().regex(NAME_PATTERN, { error: `must be a name (${NAME_RULE})` });
export const text = z.string();
export const nonEmpty = z.string().min(1, { error: 'must not be empty' });
export const guard = z.union([text, z.boolean()], { error: 'must be an expression, `true` or `false`' });
/** Up to ten years. */
export const milliseconds = z
  .int({ error: 'must be a whole number of milliseconds from 1 to 315360000000 (ten years)' })
  .min(1)
  .max(315_360_000_000);
/** Marks the lists that hold steps; their items are checked one by one, each by its own form. */
export const STEP_LIST = 'x-step-list';
export const steps = listOf('steps', 'agent: ...').meta({ [STEP_LIST]: true });
