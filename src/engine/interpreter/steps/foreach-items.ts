/** Reads the items of a `foreach`. */

import { OrchestratorError } from '../../base/errors.ts';
import type { Json } from '../../base/json/json.ts';
import { andThen, type MaybePromise } from '../../base/maybe-promise.ts';
import type { CompiledForeachStep } from '../../compiled/compiled-ensemble.ts';
import { MAX_FOREACH_ITEMS } from '../../ensemble/ensemble.ts';
import { JournalLostError } from '../../execution/journal.port.ts';
import { checkDecisionSize, markFailed, stopsReplay } from '../guards.ts';
import type { RunScope } from '../run-scope.ts';

/** @returns undefined when the expression gives no valid list; then the step is marked as failed */
export function readItems(step: CompiledForeachStep, scope: RunScope): MaybePromise<readonly Json[] | undefined> {
  const read = () => step.items(scope.begin(scope.keyPrefix + step.key, 'items'));
  try {
    if (!step.itemsReadState) return checkItems(read(), step, scope);
    // The state may differ when the run is resumed; the items must not.
    const key = `${scope.keyPrefix}${step.key}.items`;
    if (stopsReplay(key, scope)) return undefined;
    const decided = scope.run.journal.decide(key, () =>
      checkDecisionSize(read(), `the list of the \`foreach\` at ${scope.keyPrefix}${step.key}`),
    );
    return andThen(decided, (items) => checkItems(items, step, scope));
  } catch (thrown) {
    if (thrown instanceof JournalLostError) throw thrown;
    markFailed(thrown, scope, step.slot, step.continueOnError);
    return undefined;
  }
}

function checkItems(items: Json, step: CompiledForeachStep, scope: RunScope): readonly Json[] | undefined {
  try {
    if (!Array.isArray(items)) {
      const found = items === null ? 'null' : typeof items === 'object' ? 'an object' : `a ${typeof items}`;
      throw new OrchestratorError(
        'EXPRESSION_ERROR',
        `\`foreach\` at ${scope.keyPrefix}${step.key} needs a list, and its expression gave ${found}`,
      );
    }
    if (items.length > MAX_FOREACH_ITEMS) {
      const message = `\`foreach\` at ${scope.keyPrefix}${step.key} has ${items.length} items; at most ${MAX_FOREACH_ITEMS} are allowed`;
      throw new OrchestratorError('EXPRESSION_ERROR', message);
    }
    return items;
  } catch (thrown) {
    markFailed(thrown, scope, step.slot, step.continueOnError);
    return undefined;
  }
}
