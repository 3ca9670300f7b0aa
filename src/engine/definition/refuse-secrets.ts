/** Refuses at load that a secret flows into what is kept and shown, also by way of items, prompts and keys. */

import type { ValueReference } from '../expression/compile-value.ts';
import type { Reference } from '../expression/compiled-expression.ts';
import type { Report } from './check-shape.ts';
import type { Path } from './problem.ts';

/** A field, as far as it reads names. */
interface ReadingField {
  readonly references: readonly ValueReference[];
}

/**
 * @param path - where the field stands
 * @param where - what the field fills, in words
 */
export function refuseSecrets(
  field: ReadingField,
  path: Path,
  where: string,
  secretNames: ReadonlySet<string>,
  report: Report,
): void {
  for (const reference of field.references) {
    refuseSecret(reference, [...path, ...reference.at], `${where}, which is stored and shown`, secretNames, report);
  }
}

/** @param where - what the reference flows into, and why it must not */
export function refuseSecret(
  reference: Reference,
  path: Path,
  where: string,
  secretNames: ReadonlySet<string>,
  report: Report,
): void {
  const secret = secretOf(reference, secretNames);
  if (secret === undefined) return;
  const { name, index: offset, length } = reference;
  const what = secret === reference.secret ? `\`${name}\` may hold \`${secret}\`, which` : `\`${secret}\``;
  report({ path, offset, length, message: `${what} is a secret and may not flow into ${where}` });
}

/** The first secret that a field reads. */
export function secretIn({ references }: ReadingField, secretNames: ReadonlySet<string>): string | undefined {
  for (const reference of references) {
    const secret = secretOf(reference, secretNames);
    if (secret !== undefined) return secret;
  }
  return undefined;
}

/** What of a reference is secret, as messages name it. */
function secretOf({ name, path: [variable], secret }: Reference, secretNames: ReadonlySet<string>): string | undefined {
  // A function that gives a secret; no name of a flow has brackets.
  if (name.endsWith('()')) return name;
  const isSecret = name === 'env' && typeof variable === 'string' && secretNames.has(variable);
  return isSecret ? `env.${variable}` : secret;
}
