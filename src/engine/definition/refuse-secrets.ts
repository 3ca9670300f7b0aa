/** Refuses at load that a secret flows straight into what is kept and shown. */

import type { Report } from './check-shape.ts';
import type { CompiledField } from './compile-fields.ts';
import type { Path } from './problem.ts';

/**
 * @param path - where the field stands
 * @param where - what the field fills, in words
 */
export function refuseSecrets(
  field: CompiledField,
  path: Path,
  where: string,
  secretNames: ReadonlySet<string>,
  report: Report,
): void {
  for (const reference of field.references) {
    const [variable] = reference.path;
    if (reference.name !== 'env' || typeof variable !== 'string' || !secretNames.has(variable)) continue;
    report({
      path: [...path, ...reference.at],
      offset: reference.index,
      length: reference.length,
      message: `\`env.${variable}\` is a secret and may not flow into ${where}, which is stored and shown`,
    });
  }
}
