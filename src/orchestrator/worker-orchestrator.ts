/** `createOrchestrator()` of the entry for Workers: it bundles only the operations that its options name. */

import type { AgentSource, EnsembleSource, EnsembleTypes, TypedOptions } from '../authoring/define.ts';
import { isRecord } from '../engine/base/read-options.ts';
import { SPECIFIED_OPERATIONS } from '../engine/ensemble/name.ts';
import type { AnyOperation } from '../engine/operation/operation.port.ts';
import type { Storage } from '../engine/storage/storage.port.ts';
import type { Script } from '../operations/code/script.ts';
import { assembleOrchestrator, type Orchestrator } from './create-orchestrator.ts';
import type { BuiltInOperation } from './options/built-in.ts';
import { isBuiltIn, type OrchestratorOptions } from './options/options.ts';

/** What a Worker must name. */
export interface WorkerParts {
  /** All operations that definitions may name: `code()`, `api()` and the others of this entry, and results of `defineOperation`. */
  readonly operations: readonly (BuiltInOperation | AnyOperation)[];
  /** `durableObjectStorage(state)`, a storage on Postgres, or `memoryStorage()`. */
  readonly storage: Storage;
}

/** The options that only one of the operations reads. */
const READ_BY: { readonly [Option in keyof OrchestratorOptions]?: readonly string[] } = {
  ...{ scripts: ['code'], sms: ['sms'], pdf: ['pdf'], bindings: ['storage'], models: ['think'] },
  ...{ mcpServers: ['tools', 'think'], mcp: ['tools', 'think'] },
};

/**
 * Creates an orchestrator with the operations that `operations` lists, and no others: what is not listed is not in the bundle. All other
 * options are those of `createOrchestrator` of the main entry.
 *
 * @throws INVALID_DEFINITION, also for a definition that names another operation, with what to add; NOT_CONFIGURED; TypeError if
 *   `operations` or `storage` is missing, and for an option of an operation that is not listed
 *
 * @example
 * ```ts
 * import { memoryStorage } from 'ensemble-orchestrator';
 * import { code, createOrchestrator } from 'ensemble-orchestrator/workers';
 *
 * const orchestrator = createOrchestrator({
 *   operations: [code()],
 *   storage: memoryStorage(),
 *   ensembles: ['name: greet\nflow:\n  - { agent: hello, operation: code, config: { script: hello } }'],
 *   scripts: { hello: ({ input }) => `Hello ${input.who}` },
 * });
 * console.log((await orchestrator.execute('greet', { who: 'Ada' })).agents[0]?.output); // Hello Ada
 * ```
 */
export function createOrchestrator<
  const E extends readonly EnsembleSource[] = readonly EnsembleSource[],
  const A extends readonly AgentSource[] = readonly AgentSource[],
  S extends Readonly<Record<string, Script>> = Record<never, never>,
>(
  options: Omit<TypedOptions<OrchestratorOptions<E>, E, A, S>, keyof WorkerParts> & WorkerParts,
): Orchestrator<EnsembleTypes<E>>;
export function createOrchestrator(given: Omit<OrchestratorOptions, keyof WorkerParts> & WorkerParts): Orchestrator {
  const { operations, storage } = given ?? {};
  if (!Array.isArray(operations))
    throw misuse('`operations` must list all operations of its definitions, such as [code(), api()]');
  if (!isRecord(storage)) throw misuse('`storage` must be a storage, such as durableObjectStorage(state)');
  for (const [i, operation] of operations.entries()) checkOperation(operation, i);
  const builtIn = operations.filter((operation): operation is BuiltInOperation => isBuiltIn(operation));
  for (const [option, names] of Object.entries(READ_BY)) {
    const value: unknown = given[option as keyof typeof given];
    if (value === undefined || (isRecord(value) && Object.keys(value as object).length === 0)) continue;
    if (!builtIn.some(({ name }) => names.includes(name)))
      throw misuse(
        `\`${option}\` is for an operation that is not in \`operations\`; add ${names.map((name) => `${name}()`).join(' or ')}`,
      );
  }
  const own = operations.filter((operation): operation is AnyOperation => !isBuiltIn(operation));
  return assembleOrchestrator({ ...given, operations: own }, { operations: builtIn, storage: () => storage });
}

function checkOperation(operation: unknown, index: number): void {
  const what = `\`operations[${index}]\``;
  if (typeof operation === 'function')
    throw misuse(`${what} is a function; call it, as in \`${operation.name || 'code'}()\``);
  if (!isRecord(operation)) throw misuse(`${what} must be a call such as code(), or a result of defineOperation`);
  const { name } = operation as Partial<AnyOperation>;
  if (isBuiltIn(operation) || !SPECIFIED_OPERATIONS.some((one) => one === name)) return;
  throw misuse(`${what}: \`${name}\` is an operation of this library; add \`${name}()\`, or give yours another name`);
}

function misuse(problem: string): TypeError {
  return new TypeError(`createOrchestrator of ensemble-orchestrator/workers: ${problem}`);
}
