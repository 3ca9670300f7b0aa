/** Mastra: a workflow of five chained steps, stored in Postgres. */

import { PostgresStore } from '@mastra/pg';
import { checkRuns, fiveSteps } from './five-steps.mjs';

export async function setup({ postgres }) {
  const storage = new PostgresStore({ id: 'bench', connectionString: postgres });
  await storage.init();
  return { run: fiveSteps(storage), check: (executions) => checkRuns(storage, executions) };
}
