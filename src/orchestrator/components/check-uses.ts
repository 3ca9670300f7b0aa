/** Checks the references that definitions have written out: whether they lead to a version, and whether its variables are in the input of the agent. */

import { isOrchestratorError } from '../../engine/base/errors.ts';
import { formatPath } from '../../engine/base/json/json.ts';
import type { CompiledEnsemble, ComponentUse } from '../../engine/compiled/compiled-ensemble.ts';
import { variableProblem } from '../../engine/definition/compile/config/compile-references.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { Components } from './components.ts';

export interface UseProblem {
  readonly path: string;
  readonly message: string;
  /** It leads to no version yet. */
  readonly isMissing: boolean;
}

/** Of the versions of a split, one is enough to look at. */
const ANY_KEY = { key: 'load' };

/** @returns the problems. That the source can't be reached is none */
export async function checkUses(
  uses: readonly ComponentUse[],
  components: Pick<Components, 'resolve'>,
): Promise<readonly UseProblem[]> {
  const problems = await Promise.all(
    uses.map(async ({ reference, agent, fields, path: at }) => {
      const path = formatPath(at);
      try {
        const component = await components.resolve(reference, ANY_KEY);
        const message = fields && variableProblem(component, agent, fields);
        return message === undefined ? [] : [{ path, message, isMissing: false }];
      } catch (error) {
        if (!isOrchestratorError(error, 'VERSION_NOT_FOUND')) return [];
        return [{ path, message: error.message, isMissing: true }];
      }
    }),
  );
  return problems.flat();
}

/** Logs the problems of the ensembles that code defines. */
export async function warnOfUses(
  ensembles: Iterable<{ readonly compiled: CompiledEnsemble }>,
  components: Pick<Components, 'resolve'>,
  logger: Logger,
): Promise<void> {
  for (const { compiled } of ensembles)
    for (const { path, message } of await checkUses(compiled.components, components))
      logger.warn({ ensemble: compiled.name, path }, `ensemble \`${compiled.name}\`: ${path}: ${message}`);
}
