/** Checks definitions beside each other: names that stand once, webhooks that do not collide, ensembles that steps start. */

import type { EnsembleDefinition } from '../model/ensemble.ts';
import { suggestForMany } from '../suggest-name.ts';
import type { DroppedParts } from './dropped-parts.ts';
import type { Path, Problem } from './problem.ts';
import type { Call } from './resolve-agent.ts';

/** One of the definitions. */
export interface Member {
  readonly definition: Pick<EnsembleDefinition, 'name' | 'trigger'>;
  readonly calls: readonly Call[];
  readonly dropped: DroppedParts;
  /** The author's path of a path in `definition`. */
  sourceOf(path: Path): Path;
}

/** @returns for each definition, in their order, what is wrong with it beside those ahead of it */
export function checkTogether(members: readonly Member[]): Problem[][] {
  const names = new Set<string>();
  const webhooks = new Map<string, string>();
  return members.map(({ definition, dropped, sourceOf }) => {
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
      for (const method of entry.methods ?? ['POST']) {
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

/** @returns the steps that start an ensemble which is not among the known ones, as problems */
export function unknownCalls(calls: readonly Call[], known: ReadonlySet<string>): Problem[] {
  const suggest = suggestForMany();
  return calls
    .filter(({ ensemble }) => !known.has(ensemble))
    .map(({ ensemble, path }) => ({
      path,
      message: `there is no ensemble \`${ensemble}\``,
      suggestion: suggest(ensemble, known),
    }));
}
