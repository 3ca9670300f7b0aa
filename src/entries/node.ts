/**
 * The public names for hosts with Node's modules: Node, Deno and Bun.
 *
 * @module ensemble-orchestrator/node
 */

export type { NodeRequest, NodeResponse } from '../adapters/hosts/node/node-types.ts';
export type { NodeListener } from '../adapters/hosts/node/to-node-listener.ts';
export { toNodeListener } from '../adapters/hosts/node/to-node-listener.ts';
export type { NodeHttpClient, NodeHttpOptions } from '../adapters/http/node-http.ts';
export { nodeHttp } from '../adapters/http/node-http.ts';
export { folderObjects } from '../adapters/storage/folder/folder-objects.ts';
export type { ProjectOptions } from '../project/load-project.ts';
export { loadProject } from '../project/load-project.ts';
