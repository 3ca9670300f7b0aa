/** Registers the operations that agents can use: the built-in ones, and those of the options. */

import { fetchHttp } from '../../adapters/http/fetch-http.ts';
import { toolServers } from '../../adapters/tool-servers/tool-servers.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { AnyOperation } from '../../engine/operation/operation.port.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import type { ToolServers } from '../../engine/operation/tool-server.port.ts';
import { apiOperation } from '../../operations/api/api-operation.ts';
import { codeOperation } from '../../operations/code/code-operation.ts';
import { emailOperation } from '../../operations/email/email-operation.ts';
import { pdfOperation } from '../../operations/pdf/pdf-operation.ts';
import { smsOperation } from '../../operations/sms/sms-operation.ts';
import { storageOperation } from '../../operations/storage/storage-operation.ts';
import { thinkOperation } from '../../operations/think/think-operation.ts';
import { toolsOperation } from '../../operations/tools/tools-operation.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { builtInSenders } from './mail.ts';
import { createProviders } from './models.ts';
import { DEFAULT_BRAND, type OrchestratorOptions } from './options.ts';

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
  { clock, storage, servers }: { readonly clock: Clock; readonly storage: Storage; readonly servers: ToolServers },
): ReadonlyMap<string, AnyOperation> {
  const now = () => clock.now();
  const http = options.http ?? fetchHttp();
  const hasMcp = options.mcp !== undefined;
  const builtIn: readonly AnyOperation[] = [
    apiOperation({ http, now }),
    codeOperation(options.scripts ?? {}),
    emailOperation({ senders: options.mail ?? {}, builtIn: builtInSenders(), http, clock }),
    smsOperation({ senders: options.sms ?? {}, http, clock }),
    pdfOperation({ renderer: options.pdf, http, clock }),
    storageOperation({ bindings: { kv: storage.kv, objects: storage.objects, ...options.bindings }, now }),
    thinkOperation({ models: createProviders(options.models ?? {}, { http, now }), servers, clock }),
    toolsOperation({ servers, clock, hasMcp }),
  ];
  const operations = new Map<string, AnyOperation>();
  const standIn = (options as WithStandIn)[STAND_IN];
  for (const operation of [...builtIn, ...(options.operations ?? [])]) {
    const { name } = operation;
    if (operations.has(name))
      throw new TypeError(`createOrchestrator: operation \`${name}\` exists already; give yours another name`);
    operations.set(name, standIn ? standIn.operation(operation) : operation);
  }
  return operations;
}

/** The tool servers of the options. The caller closes them. */
export function connectToolServers(options: OrchestratorOptions, clock: Clock): ToolServers {
  const { mcpServers: servers = {}, mcp, http = fetchHttp(), brand = DEFAULT_BRAND } = options;
  return toolServers({ servers, mcp, http, clock, brand });
}
