/** Registers the operations that agents can use: the built-in ones, and those of the options. */

import { fetchHttp } from '../adapters/http/fetch-http.ts';
import type { Clock } from '../engine/ports/clock.ts';
import type { AnyOperation } from '../engine/ports/operation.ts';
import type { Storage } from '../engine/ports/storage.ts';
import { apiOperation } from '../operations/api/api-operation.ts';
import { codeOperation } from '../operations/code/code-operation.ts';
import { storageOperation } from '../operations/storage/storage-operation.ts';
import type { OrchestratorOptions } from './options.ts';

/**
 * @returns the operations by name
 * @throws TypeError if two operations have the same name
 */
export function registerOperations(
  options: OrchestratorOptions,
  { clock, storage }: { readonly clock: Clock; readonly storage: Storage },
): ReadonlyMap<string, AnyOperation> {
  const now = () => clock.now();
  const builtIn: readonly AnyOperation[] = [
    apiOperation({ http: options.http ?? fetchHttp(), now }),
    codeOperation(options.scripts ?? {}),
    storageOperation({ bindings: { kv: storage.kv, objects: storage.objects, ...options.bindings }, now }),
  ];
  const operations = new Map<string, AnyOperation>();
  for (const operation of [...builtIn, ...(options.operations ?? [])]) {
    const { name } = operation;
    if (operations.has(name))
      throw new TypeError(`createOrchestrator: operation \`${name}\` exists already; give yours another name`);
    operations.set(name, operation);
  }
  return operations;
}
