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

import type { DefineTestsOptions } from '../test-files/register-tests.ts';
import type { CreateForTest } from '../test-files/run-test.ts';

export type { ProjectOptions } from '../project/load-project.ts';
export { loadProject } from '../project/load-project.ts';
export type { DefineTestsOptions, RegisterTest } from '../test-files/register-tests.ts';

/**
 * Registers the tests of a project's test files (`ensembles/NAME.test.yaml`) with the test runner that loads the file: vitest,
 * node:test, Deno or Bun. They run in virtual time, and nothing leaves the process.
 *
 * @param directory - path (relative to the working directory) or `file:` URL of the project folder
 * @param options - options of `createOrchestrator` to add, as for `loadProject`, and `test`: the function of another runner
 * @throws NOT_FOUND if the folder does not exist, or has no test files
 *
 * @example
 * ```ts no-run
 * import { defineTests } from 'ensemble-orchestrator/node';
 *
 * await defineTests(new URL('..', import.meta.url));
 * ```
 */
export async function defineTests(directory: string | URL, options: DefineTestsOptions = {}): Promise<void> {
  // A host that only serves needs none of it.
  const [{ registerTests }, { createTestOrchestrator }] = await Promise.all([
    import('../test-files/register-tests.ts'),
    import('./testing.ts'),
  ]);
  await registerTests(directory, options, createTestOrchestrator as CreateForTest);
}
