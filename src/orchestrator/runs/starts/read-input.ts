/** Prepares the input of an execution: by the `inputSchema` of the ensemble, then as JSON by its `inputs`. */

import { OrchestratorError } from '../../../engine/base/errors.ts';
import { copyJson, type Json, JsonError } from '../../../engine/base/json/json.ts';
import { isPromise, type MaybePromise } from '../../../engine/base/maybe-promise.ts';
import { shortList } from '../../../engine/base/read-shape.ts';
import type { CompiledEnsemble } from '../../../engine/compiled/compiled-ensemble.ts';
import type { LoadedEnsemble } from '../../definitions/load-definitions.ts';

/** @throws INVALID_INPUT; what the schema throws. The promise of an asynchronous schema rejects with them */
export function readInput({ compiled, checkInput }: LoadedEnsemble, given: unknown): MaybePromise<Json> {
  if (!checkInput) return acceptInput(compiled, given);
  const checked = checkInput(given);
  return isPromise(checked) ? checked.then((value) => acceptInput(compiled, value)) : acceptInput(compiled, checked);
}

/** The input of an execution, as it is recorded: with `batch`, a list of inputs. @throws as {@link readInput} */
export async function readRecordedInput(ensemble: LoadedEnsemble, given: unknown): Promise<Json> {
  if (ensemble.compiled.gather?.kind !== 'batch') return readInput(ensemble, given);
  if (Array.isArray(given) && given.length > 0) return Promise.all(given.map(async (one) => readInput(ensemble, one)));
  throw invalidInput(ensemble.compiled.name, [{ path: '', message: 'must be a list of inputs, because of `batch`' }]);
}

/** @throws INVALID_INPUT when the value is not JSON, or doesn't fit the declared `inputs` */
function acceptInput(compiled: CompiledEnsemble, given: unknown): Json {
  let input: Json;
  try {
    input = copyJson(given === undefined ? {} : given);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw invalidInput(compiled.name, [error.problem]);
  }
  const checked = compiled.checkInput(input);
  if ('problems' in checked) throw invalidInput(compiled.name, checked.problems);
  return checked.value;
}

function invalidInput(
  name: string,
  issues: readonly { readonly path: string; readonly message: string }[],
): OrchestratorError {
  const text = shortList(issues.map(({ path, message }) => `${path || 'the input'} ${message}`));
  return new OrchestratorError('INVALID_INPUT', `the input of \`${name}\` does not fit: ${text}`, {
    details: { issues },
  });
}
