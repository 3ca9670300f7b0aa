/** Checks several definitions together: unique names, webhooks without conflicts, and ensembles that steps start. */

import { suggestForMany } from '../../../base/suggest-name.ts';
import type { EnsembleDefinition } from '../../../ensemble/ensemble.ts';
import { methodsOf } from '../../../webhook/webhook.ts';
import type { DroppedParts } from '../../forms/dropped-parts.ts';
import type { Path, Problem } from '../../source/problem.ts';
import type { EnsembleCall } from '../resolve-agent.ts';

/** One of the definitions that are checked together. */
export interface LoadedDefinition {
  readonly definition: Pick<EnsembleDefinition, 'name' | 'trigger'>;
  readonly calls: readonly EnsembleCall[];
  readonly dropped: DroppedParts;
  /** The path in the source for a path in `definition`. */
  sourceOf(path: Path): Path;
}

/** @returns for each definition, in order, its conflicts with the earlier definitions */
export function checkTogether(definitions: readonly LoadedDefinition[]): Problem[][] {
  const names = new Set<string>();
  const webhooks = new Map<string, string>();
  return definitions.map(({ definition, dropped, sourceOf }) => {
    const { name, trigger } = definition;
    const problems: Problem[] = [];
    if (names.has(name)) {
      const message = `two ensembles are named \`${name}\`; rename one of them`;
      return [{ path: sourceOf(['name']), message }];
    }
    names.add(name);
    trigger?.forEach((entry, i) => {
      const isBroken = ['path', 'methods'].some((key) => dropped.has(sourceOf(['trigger', i, key])));
      if (entry.type !== 'webhook' || isBroken) return;
      for (const method of methodsOf(entry)) {
        const route = `${method} ${entry.path}`;
        const other = webhooks.get(route) ?? name;
        if (other !== name) {
          const message = `ensembles \`${other}\` and \`${name}\` both have a trigger for ${route}; change one of them`;
          problems.push({ path: sourceOf(['trigger', i, 'path']), message });
        }
        webhooks.set(route, other);
      }
    });
    return problems;
  });
}

/** @returns a problem for each step that starts an unknown ensemble */
export function unknownCalls(calls: readonly EnsembleCall[], known: ReadonlySet<string>): Problem[] {
  const suggest = suggestForMany();
  return calls
    .filter(({ ensemble }) => !known.has(ensemble))
    .map(({ ensemble, path }) => ({
      path,
      message: `there is no ensemble \`${ensemble}\``,
      suggestion: suggest(ensemble, known),
    }));
}
