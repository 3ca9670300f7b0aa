/** The items of a `foreach`: how they are read, and which of them were begun before. */

import { type CompiledForeachStep, MAX_FOREACH_ITEMS } from '../definition/compiled-ensemble.ts';
import { OrchestratorError } from '../errors.ts';
import type { Json } from '../json.ts';
import { JournalLostError } from '../ports/journal.ts';
import type { MaybePromise } from '../ports/operation.ts';
import { boundNote, NO_NAME, noteFailure, stopsRecall } from './level.ts';
import type { RunScope } from './run-scope.ts';

/** @returns undefined when there is no list; the failure is noted */
export function readItems(step: CompiledForeachStep, scope: RunScope): MaybePromise<readonly Json[] | undefined> {
  const read = () => step.items(scope.begin(scope.keyPrefix + step.key, 'items'));
  try {
    if (!step.readsState) return checkItems(read(), step, scope);
    // The state may be another one when the run is taken up again; its items must not be.
    const key = `${scope.keyPrefix}${step.key}.items`;
    if (stopsRecall(key, scope)) return undefined;
    const noted = scope.run.journal.note(key, () =>
      boundNote(read(), `the list of the \`foreach\` at ${scope.keyPrefix}${step.key}`),
    );
    return noted instanceof Promise
      ? noted.then((items) => checkItems(items, step, scope))
      : checkItems(noted as Json, step, scope);
  } catch (thrown) {
    if (thrown instanceof JournalLostError) throw thrown;
    noteFailure(thrown, scope, step.slot ?? NO_NAME, step.continueOnError);
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
    noteFailure(thrown, scope, step.slot ?? NO_NAME, step.continueOnError);
    return undefined;
  }
}

/** In a run that is taken up again: the items of which something is stored, and those that began with the block. */
export function begunBefore(items: readonly Json[], step: CompiledForeachStep, scope: RunScope): readonly number[] {
  const { run } = scope;
  const { journal } = run;
  if (run.isLive && !journal.recalls(`${scope.keyPrefix}${step.key}.foreach`)) return NONE;
  const isBegun = (index: number) =>
    index < step.concurrency || journal.recalls(`${scope.keyPrefix}${step.key}.foreach[${index}]`);
  return [...items.keys()].filter(isBegun);
}

const NONE: readonly number[] = [];
