/** The functions that expressions may call: the built-in ones, and those that the options add. */

import { signalUrlFunction } from '../../engine/definition/compile/config/signal-url.ts';
import { extendFunctions } from '../../engine/expression/functions/builtin-functions.ts';
import type { FunctionTable } from '../../engine/expression/functions/function-table.ts';
import { type OrchestratorOptions, secretsOf } from './options.ts';

/** @returns undefined for the built-in functions alone */
export function functionsOf({ functions, signalLinks }: OrchestratorOptions): FunctionTable | undefined {
  if (!signalLinks) return functions && extendFunctions(functions);
  const [secret = ''] = secretsOf(signalLinks);
  const signalUrl = signalUrlFunction(signalLinks.url.replace(/\/+$/, ''), secret);
  return extendFunctions(functions ?? {}, { signalUrl });
}
