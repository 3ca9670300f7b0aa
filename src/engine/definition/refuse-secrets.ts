/** Refuses at load that a secret flows straight into what is kept and shown. */

import type { Reference } from '../expression/compiled-expression.ts';
import type { Report } from './check-shape.ts';
import type { CompiledField } from './compile-fields.ts';
import type { Path } from './problem.ts';

/**
 * @param path - where the field stands
 * @param where - what the field fills, in words
 */
export function refuseSecrets(
  field: Pick<CompiledField, 'references'>,
  path: Path,
  where: string,
  secretNames: ReadonlySet<string>,
  report: Report,
): void {
  for (const reference of field.references) {
    const secret = secretOf(reference, secretNames);
    if (secret === undefined) continue;
    report({
      path: [...path, ...reference.at],
      offset: reference.index,
      length: reference.length,
      message: `\`${secret}\` is a secret and may not flow into ${where}, which is stored and shown`,
    });
  }
}

/** What of a reference is secret, as messages name it. */
function secretOf({ name, path: [variable] }: Reference, secretNames: ReadonlySet<string>): string | undefined {
  // A function that gives a secret; no name of a flow has brackets.
  if (name.endsWith('()')) return name;
  const isSecret = name === 'env' && typeof variable === 'string' && secretNames.has(variable);
  return isSecret ? `env.${variable}` : undefined;
}
