/** Registers the operations that agents can use: the built-in ones, and those of the options. */

import type { Clock } from '../../engine/host/clock.port.ts';
import type { AnyOperation } from '../../engine/operation/operation.port.ts';
import type { ToolServers } from '../../engine/operation/tool-server.port.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import type { BuiltIn } from './built-in.ts';
import type { OrchestratorOptions } from './options.ts';

/** The key of an option for this library alone. The runner of test files sets it. */
export const STAND_IN = Symbol('stand-in');

export interface WithStandIn {
  readonly [STAND_IN]?:
    | {
        /** What runs in place of an operation. */
        operation(operation: AnyOperation): AnyOperation;
        /** The ensembles, if they are loaded already. */
        readonly ensembles?: ReadonlyMap<string, LoadedEnsemble> | undefined;
      }
    | undefined;
}

/**
 * @returns the operations by name
 * @throws TypeError if two operations have the same name
 */
export function registerOperations(
  options: OrchestratorOptions,
  builtIn: BuiltIn,
  dependencies: { readonly clock: Clock; readonly storage: Storage; readonly servers: ToolServers },
): ReadonlyMap<string, AnyOperation> {
  const own = builtIn.operations.map((operation) => operation.make({ options, ...dependencies }));
  const operations = new Map<string, AnyOperation>();
  const standIn = (options as WithStandIn)[STAND_IN];
  for (const operation of [...own, ...(options.operations ?? [])]) {
    const { name } = operation;
    if (operations.has(name))
      throw new TypeError(`createOrchestrator: operation \`${name}\` exists already; give yours another name`);
    operations.set(name, standIn ? standIn.operation(operation) : operation);
  }
  return operations;
}

/** The tool servers of the options, for the operations that call tools. The caller closes them. */
export function connectToolServers(options: OrchestratorOptions, builtIn: BuiltIn, clock: Clock): ToolServers {
  const using = builtIn.operations.find(({ connect }) => connect !== undefined);
  return using?.connect?.(options, clock) ?? NO_SERVERS;
}

const unused = () => Promise.reject(new Error('no operation calls tools'));
const NO_SERVERS: ToolServers = { names: [], list: unused, call: unused, close: async () => undefined };
