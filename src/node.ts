/** The public names for hosts with Node's modules: Node, Deno and Bun. */

export type { NodeHttpClient, NodeHttpOptions } from './adapters/http/node-http.ts';
export { nodeHttp } from './adapters/http/node-http.ts';
export type { NodeRequest, NodeResponse } from './adapters/node/node-types.ts';
export type { NodeListener } from './adapters/node/to-node-listener.ts';
export { toNodeListener } from './adapters/node/to-node-listener.ts';
export type { ProjectOptions } from './load-project.ts';
export { loadProject } from './load-project.ts';
