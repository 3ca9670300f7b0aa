/** Mastra: a workflow of five chained steps, stored in a SQLite file by its libsql store. */

import { join } from 'node:path';
import { LibSQLStore } from '@mastra/libsql';
import { checkRuns, fiveSteps } from './five-steps.mjs';

const MODES = ['OFF', 'NORMAL', 'FULL', 'EXTRA'];

export async function setup({ folder }) {
  const file = join(folder, 'mastra.db');
  const storage = new LibSQLStore({ id: 'bench', url: `file:${file}` });
  await storage.init();
  const run = fiveSteps(storage);
  await run();
  return {
    file,
    note: `synchronous=${await synchronousOf(storage)}`,
    run,
    check: (executions) => checkRuns(storage, executions + 1),
  };
}

/** The mode of the store's connection after a run was stored. The store chooses the mode. */
async function synchronousOf(storage) {
  const { rows } = await storage.client.execute('PRAGMA synchronous');
  return MODES[Object.values(rows[0])[0]];
}
