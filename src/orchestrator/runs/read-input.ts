/** Prepares the input of an execution: by the `inputSchema` of the ensemble, then as JSON by its `inputs`. */

import type { Json } from '../../engine/base/json.ts';
import { isPromise, type MaybePromise } from '../../engine/base/maybe-promise.ts';
import { acceptInput } from '../../engine/definition/compile/accept-input.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';

/** @throws INVALID_INPUT; what the schema throws. The promise of an asynchronous schema rejects with them */
export function readInput({ compiled, checkInput }: LoadedEnsemble, given: unknown): MaybePromise<Json> {
  if (!checkInput) return acceptInput(compiled, given);
  const checked = checkInput(given);
  return isPromise(checked) ? checked.then((value) => acceptInput(compiled, value)) : acceptInput(compiled, checked);
}
