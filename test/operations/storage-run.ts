/** Runs configs of `storage` agents, for tests. */

import type { JsonObject } from '../../src/engine/base/json/json.ts';
import { sqliteDatabase } from '../../src/entries/sqlite.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import type { Binding } from '../../src/operations/storage/storage-operation.ts';

export type Bindings = Readonly<Record<string, Binding>>;

/** Runs one config after the other in one execution. @returns their outputs and errors */
export async function runConfigs(
  configs: readonly JsonObject[],
  { bindings, input = {} }: { readonly bindings?: Bindings; readonly input?: JsonObject } = {},
  // biome-ignore lint/suspicious/noExplicitAny: outputs of any form
): Promise<any[]> {
  const flow = configs.map((config, i) => ({ agent: `s${i}`, operation: 'storage', config, continueOnError: true }));
  const orchestrator = createTestOrchestrator({
    errors: { stack: false },
    ensembles: [{ name: 'e', flow }],
    bindings: bindings ?? { sql: sqliteDatabase({ path: ':memory:' }) },
  });
  const { agents } = await orchestrator.execute('e', input);
  await orchestrator.close();
  return agents.map(({ output, error }) => error ?? output);
}

export const execute = (query: string, more: JsonObject = {}): JsonObject => ({
  type: 'sql',
  action: 'execute',
  query,
  ...more,
});
export const query = (text: string, more: JsonObject = {}): JsonObject => ({
  type: 'sql',
  action: 'query',
  query: text,
  ...more,
});
export const TABLE = execute('CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)');
