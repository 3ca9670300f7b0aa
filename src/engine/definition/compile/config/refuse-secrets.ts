/** Refuses at load that a secret flows into stored or shown data, also through items, prompts and keys. */

import type { ValueReference } from '../../../expression/compile/compile-value.ts';
import type { Reference } from '../../../expression/compile/compiled-expression.ts';
import type { Report } from '../../forms/check-shape.ts';
import type { Path } from '../../source/problem.ts';

/** The references of a field. */
interface ReadingField {
  readonly references: readonly ValueReference[];
}

/**
 * @param path - the path of the field in the definition
 * @param where - the destination of the field's value, for the message
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

/** @param where - the destination of the reference, and why no secret may go there, for the message */
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

/** The paths of the values that read secrets. */
export function secretPaths({ references }: ReadingField, secretNames: ReadonlySet<string>): Path[] {
  return references.filter((one) => secretOf(one, secretNames) !== undefined).map(({ at }) => at);
}

/** The name of the secret in a reference, for messages. */
function secretOf({ name, path: [variable], secret }: Reference, secretNames: ReadonlySet<string>): string | undefined {
  // A function that returns a secret. No name of a flow contains brackets.
  if (name.endsWith('()')) return name;
  const isSecret = name === 'env' && typeof variable === 'string' && secretNames.has(variable);
  return isSecret ? `env.${variable}` : secret;
}
