/** Prepares the input of an execution: it copies and checks the value of the caller, and fills in the defaults. */

import { OrchestratorError } from '../../base/errors.ts';
import { copyJson, type Json, JsonError } from '../../base/json.ts';
import { shortList } from '../../base/read-shape.ts';
import type { CompiledEnsemble } from '../../compiled/compiled-ensemble.ts';

/** @throws INVALID_INPUT when the value is not JSON, or doesn't fit the declared `inputs` */
export function acceptInput(compiled: CompiledEnsemble, given: unknown): Json {
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
