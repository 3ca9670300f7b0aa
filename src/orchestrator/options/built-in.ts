/** The operations of the specification, each as a part that an orchestrator may have or lack. */

import { fetchHttp } from '../../adapters/http/fetch-http.ts';
import { memoryStorage } from '../../adapters/storage/memory/memory-storage.ts';
import { toolServers } from '../../adapters/tool-servers/tool-servers.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { AnyOperation } from '../../engine/operation/operation.port.ts';
import type { ToolServers } from '../../engine/operation/tool-server.port.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import { apiOperation } from '../../operations/api/api-operation.ts';
import { codeOperation } from '../../operations/code/code-operation.ts';
import { emailOperation } from '../../operations/email/email-operation.ts';
import { pdfOperation } from '../../operations/pdf/pdf-operation.ts';
import { smsOperation } from '../../operations/sms/sms-operation.ts';
import { storageOperation } from '../../operations/storage/storage-operation.ts';
import { thinkOperation } from '../../operations/think/think-operation.ts';
import { toolsOperation } from '../../operations/tools/tools-operation.ts';
import { builtInSenders } from './mail.ts';
import { createProviders } from './models.ts';
import { DEFAULT_BRAND, type OrchestratorOptions } from './options.ts';

/** What an operation is made from. */
interface OperationDependencies {
  readonly options: OrchestratorOptions;
  readonly clock: Clock;
  readonly storage: Storage;
  readonly servers: ToolServers;
}

/** One of the operations of the specification, for the option `operations` of a Worker. */
export interface BuiltInOperation {
  readonly name: string;
  /** @internal */
  make(dependencies: OperationDependencies): AnyOperation;
  /** Connects to the tool servers of the options, for an operation that calls tools. @internal */
  readonly connect?: (options: OrchestratorOptions, clock: Clock) => ToolServers;
}

/** The built-in parts of an orchestrator. */
export interface BuiltIn {
  readonly operations: readonly BuiltInOperation[];
  /** Makes the storage if the options name none. */
  storage(): Storage;
}

const httpOf = ({ http }: OrchestratorOptions) => http ?? fetchHttp();

const connect: BuiltInOperation['connect'] = (options, clock) => {
  const { mcpServers: servers = {}, mcp, brand = DEFAULT_BRAND } = options;
  return toolServers({ servers, mcp, http: httpOf(options), clock, brand });
};

/** The operation `api`: HTTP calls. */
export const api = (): BuiltInOperation => ({
  name: 'api',
  make: ({ options, clock }) => apiOperation({ http: httpOf(options), now: () => clock.now() }),
});

/** The operation `code`: the scripts of the app. */
export const code = (): BuiltInOperation => ({
  name: 'code',
  make: ({ options }) => codeOperation(options.scripts ?? {}),
});

/** The operation `email`. */
export const email = (): BuiltInOperation => ({
  name: 'email',
  make: ({ options, clock }) =>
    emailOperation({ senders: options.mail ?? {}, builtIn: builtInSenders(), http: httpOf(options), clock }),
});

/** The operation `sms`. */
export const sms = (): BuiltInOperation => ({
  name: 'sms',
  make: ({ options, clock }) => smsOperation({ senders: options.sms ?? {}, http: httpOf(options), clock }),
});

/** The operation `pdf`. */
export const pdf = (): BuiltInOperation => ({
  name: 'pdf',
  make: ({ options, clock }) => pdfOperation({ renderer: options.pdf, http: httpOf(options), clock }),
});

/** The operation `storage`: the key-value store, objects and the bindings of the app. */
export const storage = (): BuiltInOperation => ({
  name: 'storage',
  make: ({ options, clock, storage: { kv, objects } }) =>
    storageOperation({ bindings: { kv, objects, ...options.bindings }, now: () => clock.now() }),
});

/** The operation `think`: language models, with tools. */
export const think = (): BuiltInOperation => ({
  name: 'think',
  connect,
  make({ options, clock, servers }) {
    const models = createProviders(options.models ?? {}, { http: httpOf(options), now: () => clock.now() });
    return thinkOperation({ models, servers, clock });
  },
});

/** The operation `tools`: tools of the servers in `mcpServers`. */
export const tools = (): BuiltInOperation => ({
  name: 'tools',
  connect,
  make: ({ options, clock, servers }) => toolsOperation({ servers, clock, hasMcp: options.mcp !== undefined }),
});

/** All operations, and a storage in memory. A function, so that a Worker that has its own parts does not bundle them. */
export function everything(): BuiltIn {
  const operations = [api(), code(), email(), sms(), pdf(), storage(), think(), tools()];
  return { operations, storage: memoryStorage };
}
